/**
 * Errors with a meaning to the queue. A plain `throw new Error(…)` is retried under the policy; these say something
 * else. They carry their outcome under a registered symbol, so that two copies of this library in one bundle understand
 * each other.
 */
import { memberOf, safely } from '../job/thrown';
import type { FailureReport } from '../job/wire';
import type { Duration } from '../producer/envelope';
import { requireDuration, requireTime } from './duration';

/** Response codes of the queue: stronger than the retry policy. */
export type ResponseCode = 'RETRY' | 'DISCARD' | 'FAIL' | 'DEAD_LETTER';

/** The outcome that an {@link OutcomeError} requests from the queue. */
export interface RequestedOutcome {
  code?: ResponseCode | 'invalid_args';
  retryable?: false;
  kill?: true;
  /** Milliseconds. */
  retry_in?: number;
  /** RFC 3339. */
  retry_at?: string;
}

/** Details of a failure beside its message. */
export interface OutcomeOptions {
  /** The error behind it. Its type and message are kept in the job's error history, as `details.cause`. */
  cause?: unknown;
  /** JSON kept in the job's error history. */
  details?: unknown;
  /** Kind of the failure in the history; the class name when absent. */
  type?: string;
}

const VERDICT = Symbol.for('tocsin.verdict');
/** The member of a verdict that is not for the queue's error, in ms. A symbol is in no JSON. */
const SNOOZE = Symbol.for('tocsin.snooze');

/** Most failures that the details of a {@link ChildrenFailedError} list. */
const SHOWN_FAILURES = 10;

/**
 * The job cannot succeed, whatever its policy says: it becomes a dead letter without another run. Subclasses do the
 * same, and so does any error with a class of exactly this name in its chain, whichever package it comes from.
 *
 * @example
 * class PoisonPill extends UnrecoverableError {}
 * throw new PoisonPill('the image is not an image');
 */
export class UnrecoverableError extends Error {}

/** An error that tells the queue what to do with the job. Made by {@link discard}, {@link retryIn} and their like. */
export class OutcomeError extends Error {
  readonly details?: unknown;
  readonly type?: string;
  readonly [VERDICT]: RequestedOutcome;

  constructor(message: string, verdict: RequestedOutcome, options: OutcomeOptions = {}) {
    super(message, 'cause' in options ? { cause: options.cause } : undefined);
    this[VERDICT] = verdict;
    if (options.details !== undefined) this.details = options.details;
    if (options.type !== undefined) this.type = options.type;
  }
}

/** Ends the job without keeping it for a human. Thrown by way of {@link discard}. */
export class DiscardError extends OutcomeError {}
/** A recognised permanent failure. Thrown by way of {@link fail}. */
export class FailError extends OutcomeError {}
/** Sends the job to the dead letters at once. Thrown by way of {@link deadLetter}. */
export class DeadLetterError extends OutcomeError {}
/** Names the time of the next run. Thrown by way of {@link retryIn} or {@link retryAt}. */
export class RetryLaterError extends OutcomeError {}
/** Stops the job permanently, as a dead letter. Thrown by way of {@link kill}. */
export class KillError extends OutcomeError {}

/** Runs the job later without using an attempt. Thrown by way of {@link snooze}. */
export class SnoozeError extends OutcomeError {
  /** @param ms how long the job waits */
  constructor(
    message: string,
    readonly ms: number,
    options?: OutcomeOptions,
  ) {
    super(message, { [SNOOZE]: ms } as RequestedOutcome, options);
  }
}

/**
 * The signal of a `ctx.waitFor` did not come within its timeout. Catch it to continue without the signal; otherwise the
 * job becomes a dead letter.
 */
export class SignalTimeoutError extends UnrecoverableError {}

/** Why a step, or one try of it, failed. */
export interface StepFailure extends Pick<FailureReport, 'code' | 'type' | 'details'> {
  message: string;
  /** Of a step that failed for good. */
  tries?: number;
}

/**
 * A step with a retry policy has failed for good. It is thrown in every later run, too. Catch it to continue without
 * the step; otherwise the job ends under `onExhaustion` of its own policy, because the step has had its tries.
 */
export class StepError extends OutcomeError {
  /** How often it was tried, as far as is known. */
  readonly tries: number | undefined;
  /** The code of the last failure; its type is in `type`. */
  readonly code: string | undefined;

  /** @param step its name */
  constructor(
    readonly step: string,
    { code, type, message, details, tries }: StepFailure,
  ) {
    const often = tries === undefined ? '' : ` after ${tries} ${tries === 1 ? 'try' : 'tries'}`;
    super(
      `The step ${JSON.stringify(step)} failed for good${often}: ${message}`,
      { retryable: false },
      {
        ...(details !== undefined && { details }),
        ...(type !== undefined && { type }),
      },
    );
    this.tries = tries;
    this.code = code;
  }
}

interface ChildEnd extends StepFailure {
  state?: 'discarded' | 'cancelled' | 'completed';
}

/**
 * A job that `ctx.run` waited for did not complete. Catch it to continue without its result; otherwise the job becomes
 * a dead letter, because the other one has had its retries.
 */
export class ChildError extends UnrecoverableError {
  /** Undefined: it was never started. */
  readonly id: string | undefined;
  /** How it ended; undefined: it was never started. `completed`: its result is too large to be kept with this job. */
  readonly state: ChildEnd['state'];
  /** Code, type and details of its last failure. */
  readonly code: string | undefined;
  readonly type: string | undefined;
  readonly details: unknown;

  /** @param run its name in the handler */
  constructor(
    readonly run: string,
    job: { id?: string | undefined; type: string },
    { code, type, message, details, state }: ChildEnd,
  ) {
    const which = job.id === undefined ? `A job (${job.type})` : `The job ${job.id} (${job.type})`;
    const how = state === undefined ? 'could not be started' : state === 'completed' ? 'has completed' : `was ${state}`;
    super(`${which} that ${JSON.stringify(run)} waits for ${how}: ${message}`);
    this.id = job.id;
    this.state = state;
    this.code = code;
    this.type = type;
    this.details = details;
  }

  /** Lists of `ctx.runAll` with `onFailure: 'return'` may be logged, and returned as results. */
  toJSON(): object {
    const { id, state, code, type, message, details } = this;
    return { id, state, code, type, message, details };
  }
}

/** Jobs that `ctx.runAll` waited for did not complete. Uncaught it ends the job as {@link ChildError} does. */
export class ChildrenFailedError extends UnrecoverableError {
  readonly details: unknown;

  /** @param run its name in the handler @param jobs how many there were @param failures by their place in the list */
  constructor(
    readonly run: string,
    jobs: number,
    readonly failures: readonly { index: number; id: string | undefined; error: ChildError }[],
  ) {
    super(
      `${failures.length} of ${jobs} jobs that ${JSON.stringify(run)} waits for failed. First: ${failures[0]?.error.message}`,
    );
    this.details = {
      failed: failures.length,
      first: failures
        .slice(0, SHOWN_FAILURES)
        .map(({ index, id, error: { code, state } }) => ({ index, id, code, state })),
    };
  }
}

/**
 * The jobs of a `ctx.run` or `ctx.runAll` did not end within its timeout. Catch it to continue without them; otherwise
 * the job becomes a dead letter.
 */
export class RunTimeoutError extends UnrecoverableError {}

// Minifiers rename classes; the queue, and policies, recognise these by name.
const NAMED = { UnrecoverableError, SignalTimeoutError, StepError, ChildError, ChildrenFailedError, RunTimeoutError };
for (const [name, { prototype }] of Object.entries(NAMED)) {
  Object.defineProperty(prototype, 'name', { value: name, configurable: true, writable: true });
}

/** How long a thrown value asks to wait before the next run, without using an attempt, ms; undefined: it does not. */
export function snoozeOf(thrown: unknown): number | undefined {
  const ms = memberOf(verdictOf(thrown), SNOOZE);
  return typeof ms === 'number' ? ms : undefined;
}

/** Is this how the handler meant the run to end? Then it is not an error of the handler. */
export function isExpected(thrown: unknown): boolean {
  const { code } = verdictOf(thrown) ?? {};
  return code === 'RETRY' || code === 'DISCARD' || code === 'FAIL' || code === 'invalid_args';
}

export function verdictOf(thrown: unknown): RequestedOutcome | undefined {
  const verdict = memberOf(thrown, VERDICT);
  // The copy is read once: its members may be getters.
  return typeof verdict === 'object' && verdict !== null ? safely(() => ({ ...verdict }), undefined) : undefined;
}

/**
 * The job is obsolete: discarded, no retry, no dead letter.
 * @example
 * if (!user) throw discard('the user is gone');
 */
export function discard(message: string, options?: OutcomeOptions): DiscardError {
  return new DiscardError(message, { code: 'DISCARD' }, options);
}

/**
 * A permanent failure that is expected now and then: discarded like {@link discard}, counted separately.
 *
 * @example
 * if (answer.status === 410) throw fail('the address bounces');
 */
export function fail(message: string, options?: OutcomeOptions): FailError {
  return new FailError(message, { code: 'FAIL' }, options);
}

/**
 * A human must look: a dead letter at once, whatever the policy says about exhaustion.
 * @example
 * throw deadLetter('the ledger does not balance', { details: { account: 7 } });
 */
export function deadLetter(message: string, options?: OutcomeOptions): DeadLetterError {
  return new DeadLetterError(message, { code: 'DEAD_LETTER' }, options);
}

/**
 * Try again after `duration`, without jitter. The attempt counts; with none left the job ends.
 *
 * @throws {TypeError} when `duration` is none.
 * @example
 * if (response.status === 429) throw retryIn('30s', 'rate limited');
 */
export function retryIn(
  duration: Duration,
  message = 'to be retried later',
  options?: OutcomeOptions,
): RetryLaterError {
  return new RetryLaterError(message, { code: 'RETRY', retry_in: requireDuration(duration, 'retryIn') }, options);
}

/**
 * Try again at `time`: a Date, epoch milliseconds, or RFC 3339. A time in the past means at once.
 *
 * @throws {TypeError} when `time` is none.
 * @example
 * throw retryAt(new Date(response.headers.get('retry-after')), 'the shop is closed');
 */
export function retryAt(
  time: Date | number | string,
  message = 'to be retried later',
  options?: OutcomeOptions,
): RetryLaterError {
  const retry_at = requireTime(time, 'retryAt').toISOString();
  return new RetryLaterError(message, { code: 'RETRY', retry_at }, options);
}

/**
 * Run the job again after `duration` without using an attempt: the run did not fail, it came too early. Only
 * `expiresAt` ends a job that snoozes for ever.
 *
 * @param message kept with the log of the job
 * @throws {TypeError} when `duration` is none.
 * @example
 * if (!(await isReady(job.args[0]))) throw snooze('10m', 'the export is not ready');
 */
export function snooze(duration: Duration, message = 'to be run later', options?: OutcomeOptions): SnoozeError {
  return new SnoozeError(message, requireDuration(duration, 'snooze'), options);
}

/**
 * Stop this job permanently and keep it as a dead letter with the reason `killed`.
 *
 * @example
 * throw kill('switched off by support');
 */
export function kill(message: string, options?: OutcomeOptions): KillError {
  return new KillError(message, { kill: true }, options);
}
