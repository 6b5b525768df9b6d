/** The policy of one step: how often it is tried, after which pauses, and how long a try may take. */

import { nestingDepth } from '../job/envelope/nesting';
import { retryDelay } from '../job/retry/delay';
import type { BackoffStrategy, RetryPolicy } from '../job/retry/policy';
import type { Duration } from '../producer/envelope';
import { camelName, wired } from '../producer/names';
import { requireDuration } from './duration';
import { failureOf, isListed } from './failure';
import { type StepFailure, snoozeOf } from './outcomes';
import { isObject } from './protocol';
import { clip, hasHalfCharacter } from './text';
import { atMost } from './timing';
import type { StepContext, StepOptions } from './types';

export interface StepPolicy {
  /** Absent: a failed step fails the attempt. */
  retry?: RetryPolicy;
  timeoutMs?: number;
}

/** What steps need of their run. */
export interface RunOfSteps {
  jobId: string;
  aborter: { readonly signal: AbortSignal };
  isAborted(): boolean;
  limitMs: number;
  warn(message: string): void;
  canUndo(name: string): boolean;
}

export interface Plan {
  name: string;
  run: (step: StepContext) => unknown;
  policy: StepPolicy;
}

/** What follows a try that failed. */
export type NextTry =
  | { delayMs: number; failed: StepFailure }
  /** No try is left, or none would help. */
  | { error: StepFailure };

/** One try took longer than the `timeout` of its step. Its `type` is `step_timeout`, for policies. */
export class StepTimeoutError extends Error {
  readonly type = 'step_timeout';
}

const NONE: StepPolicy = {};
/** What a retry of a step may set. */
const FIELDS =
  'maxAttempts, backoffStrategy, initialInterval, backoffCoefficient, maxInterval, jitter, nonRetryableErrors';
const STRATEGIES: unknown[] = ['exponential', 'linear', 'constant', 'polynomial'] satisfies BackoffStrategy[];
const MOST_TRIES = 2_147_483_647;
const DEFAULT_JITTER = { kind: 'multiply', min: 0.5, max: 1.5, deterministic: false } as const;
/** As for jobs. */
const DEFAULT: Omit<RetryPolicy, 'jitter'> = {
  ...{ max_attempts: 3, backoff_strategy: 'exponential', initial_interval: 1000, backoff_coefficient: 2 },
  ...{ max_interval: 300_000, offset: 0, first_index: 1, non_retryable_errors: [] },
  ...{ on_exhaustion: 'discard', on_crash: 'retry' },
};
/** Longest message on record, in characters. */
const MAX_MESSAGE = 2_048;
/** Largest details on record, in characters of JSON. */
const MAX_DETAILS = 16_384;

/** Reads the options of a step. @throws {TypeError} */
export function stepPolicy(name: string, options: StepOptions | undefined): StepPolicy {
  if (options === undefined) return NONE;
  const what = `ctx.step: ${JSON.stringify(name)}`;
  if (!isObject(options)) throw new TypeError(`${what}: its options are an object with retry and timeout`);
  const { retry, timeout, ...others } = options;
  const [unknown] = Object.keys(others);
  if (unknown !== undefined) {
    throw new TypeError(`${what} has an unknown option ${JSON.stringify(unknown)}; known are retry and timeout`);
  }
  const policy: StepPolicy = {};
  if (timeout !== undefined) {
    policy.timeoutMs = requireDuration(timeout as Duration, `${what}, timeout`);
    if (policy.timeoutMs === 0) throw new TypeError(`${what}: its timeout is 0; leave it out for none`);
  }
  if (retry !== undefined) policy.retry = retryOf(what, retry);
  return policy;
}

/** The policy as the queue would evaluate it, over the built-in default. */
export function retryOf(what: string, given: unknown): RetryPolicy {
  const wrong = (problem: string) => new TypeError(`${what}: ${problem}`);
  const said = wired(typeof given === 'number' ? { max_attempts: given } : given);
  if (!isObject(said)) throw wrong('retry must be a number of tries, or a policy such as { maxAttempts: 5 }');
  const policy: RetryPolicy = { ...DEFAULT, jitter: DEFAULT_JITTER };
  const isNumber = (value: unknown, max: number) => typeof value === 'number' && value >= 0 && value <= max;
  for (const [name, value] of Object.entries(said)) {
    if (value === undefined) continue;
    const field = `retry.${camelName(name)}`;
    if (name === 'initial_interval') policy.initial_interval = requireDuration(value as Duration, `${what}, ${field}`);
    else if (name === 'max_interval') {
      policy.max_interval = value === null ? null : requireDuration(value as Duration, `${what}, ${field}`);
    } else if (name === 'max_attempts') {
      if (!isNumber(value, MOST_TRIES) || !Number.isInteger(value)) throw wrong(`${field} must be a whole number`);
      policy.max_attempts = value as number;
    } else if (name === 'backoff_coefficient') {
      if (!isNumber(value, 1000)) throw wrong(`${field} must be a number from 0 to 1000`);
      policy.backoff_coefficient = value as number;
    } else if (name === 'backoff_strategy') {
      if (!STRATEGIES.includes(value)) throw wrong(`${field} must be one of ${STRATEGIES.join(', ')}`);
      policy.backoff_strategy = value as BackoffStrategy;
    } else if (name === 'jitter') {
      if (typeof value !== 'boolean') throw wrong(`${field} must be true or false`);
      policy.jitter = value && DEFAULT_JITTER;
    } else if (name === 'non_retryable_errors') {
      if (!Array.isArray(value)) throw wrong(`${field} must be a list of error types`);
      policy.non_retryable_errors = value.map(String);
    } else throw wrong(`a step has no ${field}; it has ${FIELDS}`);
  }
  return policy;
}

/** What a failed try leads to; undefined: the handler decided about the whole job. @param tries this one included */
export function nextTry(
  { retry, thrown, tries, jobId }: { retry: RetryPolicy; thrown: unknown; tries: number; jobId: string },
  now: number,
): NextTry | undefined {
  if (snoozeOf(thrown) !== undefined) return undefined;
  const failure = failureOf(thrown);
  const { code, type = code, classes, retryable, retry_in, retry_at } = failure;
  if (failure.kill || code === 'DISCARD' || code === 'FAIL' || code === 'DEAD_LETTER') return undefined;
  const failed = { code, type, message: clip(failure.message, MAX_MESSAGE) };
  const isFinal =
    tries >= retry.max_attempts ||
    retryable === false ||
    classes?.includes('UnrecoverableError') ||
    isListed(failure, retry.non_retryable_errors);
  if (isFinal) return { error: { ...failed, ...keptDetails(failure.details), tries } };
  const asked = retry_at === undefined ? retry_in : Math.max(0, Date.parse(retry_at) - now);
  return { delayMs: asked ?? retryDelay(retry, tries, Math.random, jobId), failed };
}

/** Details that the queue would store. */
function keptDetails(details: unknown): { details?: unknown } {
  const json = JSON.stringify(details);
  const isKept =
    json !== undefined && json.length <= MAX_DETAILS && !hasHalfCharacter(json) && nestingDepth(json, 90) <= 90;
  return isKept ? { details } : {};
}

/** One try of a step. @param run its signal is that of the run. @throws {StepTimeoutError} */
export async function tryStep(
  work: (step: StepContext) => unknown,
  run: { readonly signal: AbortSignal },
  timeoutMs: number | undefined,
): Promise<unknown> {
  if (timeoutMs === undefined) {
    // Most steps do not look at it.
    return await work({
      get signal() {
        return run.signal;
      },
    });
  }
  const own = new AbortController();
  const signal = AbortSignal.any([run.signal, own.signal]);
  const done = (async () => await work({ signal }))();
  if (await atMost(timeoutMs, done)) return await done;
  const error = new StepTimeoutError(`The step did not finish within ${timeoutMs} ms.`);
  own.abort(error);
  throw error;
}
