/**
 * Shows what a policy would do, without a job: the effective policy, a table of delays, and the decision about one
 * imagined failure. The body of `POST /ojs/v1/admin/retry/preview`.
 *
 * | member | value | default |
 * |---|---|---|
 * | `policy` | the job layer | empty |
 * | `layers` | `variables`, `queue`, `job_type`; `variables` replaces the deployment's own | empty |
 * | `from` | n of the first row, 1 … 2147483647 | 1 |
 * | `attempts` | how many rows, 1 … 100 | 10 |
 * | `random` | r that `delay_ms` is computed with, in [0, 1) | 0.5 |
 * | `failure` | the failure of run `from` to decide about | none |
 */
import type { AttemptFailure } from '../attempt/outcome';
import { parseDuration } from '../duration';
import { invalidPayload, invalidRequest } from '../errors';
import { notKnown } from '../near-miss';
import type { RetryInput } from '../record';
import { parseInstant } from '../time';
import { decideFailure } from './decide';
import { delayBounds, retryDelay } from './delay';
import { isObject } from './fields';
import { MAX_ATTEMPTS } from './layer';
import type { RetryPolicy } from './policy';
import { describeRetry, type RetryLayers, resolveRetry } from './resolve';
import { checkRetry, checkRetryLayer } from './validate';
import { RETRY_VARIABLES, type RetryVariables } from './variables';

/** Stands for the job id, so that a deterministic jitter answers the same each time. */
const PREVIEW_JOB_ID = '00000000-0000-7000-8000-000000000000';

const MEMBERS = ['policy', 'layers', 'from', 'attempts', 'random', 'failure'];
const LAYERS = ['variables', 'queue', 'job_type'];

export interface PreviewContext {
  /** Epoch ms. */
  now: number;
  /** The deployment's variables. */
  variables?: RetryVariables;
}

/** One row: the delay after the `failed_executions`-th failure. */
export interface PreviewRow {
  failed_executions: number;
  /** At the given `random`. */
  delay_ms: number;
  /** Bounds over all random values. */
  min_ms: number;
  max_ms: number;
  /** Sum of `delay_ms` from the first row on. */
  cumulative_ms: number;
}

export interface RetryPreview {
  effective: Record<string, unknown>;
  delays: PreviewRow[];
  decision?: { outcome: 'retry' | 'discarded' | 'dead_letter'; reason?: string; delay_ms?: number };
}

/**
 * Computes a preview.
 *
 * @throws {ApiError} 400 for a bad member of the request; 422 for a bad policy in any layer (`retry.…`,
 * `layers.queue.…`, `layers.job_type.…`); 500 `invalid_configuration` for bad variables
 */
export function previewRetry(request: unknown, context: PreviewContext): RetryPreview {
  if (!isObject(request)) throw invalidPayload('The body must be a JSON object.');
  onlyKnown(request, MEMBERS, '');
  const from = integer(request.from, 'from', 1, MAX_ATTEMPTS) ?? 1;
  const attempts = integer(request.attempts, 'attempts', 1, 100) ?? 10;
  const r = number(request.random, 'random', (n) => n >= 0 && n < 1, 'a number, at least 0 and below 1') ?? 0.5;
  const failure = absent(request.failure) ? undefined : readFailure(request.failure, context.now);
  const policy = resolveRetry(readLayers(request, context));
  const random = (): number => r;

  const effective = describeRetry(policy);
  const delays = delayRows(policy, from, attempts, random);
  if (!failure) return { effective, delays };
  const decision = decideFailure(policy, failure, from, { now: context.now, random, jobId: PREVIEW_JOB_ID });
  return {
    effective,
    delays,
    decision:
      decision.outcome === 'retry' ? { outcome: decision.outcome, delay_ms: decision.delay_ms } : { ...decision },
  };
}

function delayRows(policy: RetryPolicy, from: number, attempts: number, random: () => number): PreviewRow[] {
  let cumulative = 0;
  return Array.from({ length: attempts }, (_, index) => {
    const n = from + index;
    const delay = retryDelay(policy, n, random, PREVIEW_JOB_ID);
    const { min, max } = delayBounds(policy, n);
    cumulative += delay;
    return { failed_executions: n, delay_ms: delay, min_ms: min, max_ms: max, cumulative_ms: cumulative };
  });
}

/** Reads the layers from the lowest up, each checked over those below it. */
function readLayers(request: Record<string, unknown>, context: PreviewContext): RetryLayers {
  const source = absent(request.layers) ? {} : request.layers;
  if (!isObject(source)) throw invalidRequest('layers', 'layers must be an object');
  onlyKnown(source, LAYERS, 'layers.');
  const variables = absent(source.variables) ? context.variables : readVariables(source.variables);

  const below: RetryLayers = variables ? { variables } : {};
  const checked = (input: unknown, path: string): RetryInput => {
    const job = checkRetryLayer(input, path);
    checkRetry({ ...below, job }, path);
    return job;
  };
  below.queue = checked(source.queue, 'layers.queue');
  below.job_type = checked(source.job_type, 'layers.job_type');
  return { ...below, job: checked(request.policy, 'retry') };
}

function readVariables(source: unknown): RetryVariables {
  if (!isObject(source)) throw invalidRequest('layers.variables', 'layers.variables must be an object');
  onlyKnown(source, RETRY_VARIABLES, 'layers.variables.');
  const variables: Record<string, string> = {};
  for (const [name, value] of Object.entries(source)) {
    if (absent(value)) continue;
    if (typeof value !== 'string' && typeof value !== 'number') {
      throw invalidRequest(`layers.variables.${name}`, `layers.variables.${name} must be a string`);
    }
    variables[name] = String(value);
  }
  return variables;
}

type Check = (value: unknown, now: number) => boolean;

const TEXT: [Check, string] = [(value) => typeof value === 'string', 'a string'];
const FLAG: [Check, string] = [(value) => typeof value === 'boolean', 'true or false'];

/** Members of `failure`: where each goes, how it is checked, what is expected. */
const FAILURE_MEMBERS: readonly [name: string, target: keyof AttemptFailure, check: Check, expected: string][] = [
  ['code', 'code', ...TEXT],
  ['error_type', 'type', ...TEXT],
  [
    'error_classes',
    'classes',
    (value) => Array.isArray(value) && value.every((name) => typeof name === 'string'),
    'an array of strings',
  ],
  ['retryable', 'retryable', ...FLAG],
  ['kill', 'kill', ...FLAG],
  ['retry_in', 'retry_in', (value) => parseDuration(value) !== undefined, 'a duration'],
  [
    'retry_at',
    'retry_at',
    (value, now) => Number.isInteger(value) || parseInstant(value, now) !== undefined,
    'an RFC 3339 time with a zone, or epoch milliseconds',
  ],
  ['crash', 'crash', ...FLAG],
  ['visibility_expired', 'visibility_expired', ...FLAG],
  ['no_handler', 'no_handler', ...FLAG],
];

function readFailure(source: unknown, now: number): AttemptFailure {
  if (!isObject(source)) throw invalidRequest('failure', 'failure must be an object');
  const names = FAILURE_MEMBERS.map(([name]) => name);
  onlyKnown(source, names, 'failure.');
  const failure: Record<string, unknown> = {};
  for (const [name, target, check, expected] of FAILURE_MEMBERS) {
    const value = source[name];
    if (absent(value)) continue;
    if (!check(value, now)) throw invalidRequest(`failure.${name}`, `failure.${name} must be ${expected}`);
    failure[target] = value;
  }
  return failure;
}

function onlyKnown(source: Record<string, unknown>, known: readonly string[], prefix: string): void {
  for (const name of Object.keys(source)) {
    if (known.includes(name)) continue;
    throw invalidRequest(`${prefix}${name}`, `${prefix}${name} ${notKnown(name, known)}`);
  }
}

function integer(value: unknown, field: string, min: number, max: number): number | undefined {
  const fits = (n: number) => Number.isInteger(n) && n >= min && n <= max;
  return number(value, field, fits, `an integer from ${min} to ${max}`);
}

function number(value: unknown, field: string, fits: (n: number) => boolean, expected: string): number | undefined {
  if (absent(value)) return undefined;
  if (typeof value === 'number' && fits(value)) return value;
  throw invalidRequest(field, `${field} must be ${expected}`);
}

function absent(value: unknown): value is null | undefined {
  return value === null || value === undefined;
}
