/** What becomes of a job whose run failed (`docs/guides/retries.md`). The first rule that applies decides. */
import type { AttemptFailure } from '../attempt/outcome';
import { parseDuration } from '../duration';
import { textOf } from '../own';
import { parseInstant } from '../time';
import { HARD_LIMIT_MS, LONGEST_ASKED_MS, retryDelay } from './delay';
import type { RetryPolicy } from './policy';

export type DiscardReason =
  | 'no_handler'
  | 'killed'
  | 'discard_code'
  | 'fail_code'
  | 'dead_letter_code'
  | 'unrecoverable'
  | 'target_rejected'
  | 'crash'
  | 'non_retryable'
  | 'retries_exhausted';

export type Decision =
  /** `delay_ms` from now, at `run_at` (epoch ms). */
  | { outcome: 'retry'; delay_ms: number; run_at: number }
  | { outcome: 'discarded' | 'dead_letter'; reason: DiscardReason };

export interface DecisionContext {
  /** When the failure was recorded, epoch ms. */
  now: number;
  /** r in [0, 1); called once at most. */
  random: () => number;
  jobId: string;
}

export const CRASH_TYPE = 'tocsin.crash';
export const VISIBILITY_TIMEOUT_TYPE = 'tocsin.visibility_timeout';
export const VISIBILITY_TIMEOUT_CODE = 'visibility_timeout';

const UNRECOVERABLE = 'UnrecoverableError';

/** Decides about a failed run; unusable members count as absent. @param failedExecutions including this one */
export function decideFailure(
  policy: RetryPolicy,
  failure: AttemptFailure,
  failedExecutions: number,
  context: DecisionContext,
): Decision {
  const code = textOf(failure.code);
  const command = code?.toUpperCase();
  const asked = askedDelay(failure, context.now);

  if (failure.no_handler === true) return deadLetter('no_handler');
  if (failure.kill === true) return deadLetter('killed');
  if (command === 'DISCARD') return { outcome: 'discarded', reason: 'discard_code' };
  if (command === 'FAIL') return { outcome: 'discarded', reason: 'fail_code' };
  if (command === 'DEAD_LETTER') return deadLetter('dead_letter_code');
  if (isUnrecoverable(failure)) return deadLetter('unrecoverable');
  // An answer that speaks about retrying takes precedence over its status.
  if (failure.target_rejected === true && command !== 'RETRY' && failure.retryable !== true) {
    return deadLetter('target_rejected');
  }
  if (failure.crash === true && failure.visibility_expired !== true && policy.on_crash === 'dead_letter') {
    return deadLetter('crash');
  }
  if (isNonRetryable(policy, failure, command, asked)) return ended(policy, 'non_retryable');
  if (failedExecutions >= Math.max(1, policy.max_attempts)) return ended(policy, 'retries_exhausted');
  if (asked !== undefined) return retryAfter(asked, context.now);
  if (failure.visibility_expired === true) return retryAfter(0, context.now);
  const delay = retryDelay(policy, failedExecutions, context.random, context.jobId);
  return retryAfter(Math.max(delay, atLeast(failure)), context.now);
}

/** Is either on the list? An entry ending in `.*` matches by prefix, any other entry exactly. Case counts. */
export const matchesNonRetryable = (list: readonly string[], type?: string, code?: string): boolean =>
  list.some((entry) => {
    const prefix = entry.endsWith('.*') ? entry.slice(0, -1) : undefined;
    const matches = (name: string | undefined): boolean =>
      name !== undefined && (prefix === undefined ? name === entry : name.startsWith(prefix));
    return matches(type) || matches(code);
  });

function isNonRetryable(
  policy: RetryPolicy,
  failure: AttemptFailure,
  command: string | undefined,
  asked: number | undefined,
): boolean {
  const isRetryCode = command === 'RETRY';
  if (failure.retryable === false && !isRetryCode) return true;
  if (asked !== undefined) return false;
  // RETRY says nothing about the kind of error, so it cannot match the list.
  return matchesNonRetryable(policy.non_retryable_errors, typeOf(failure), isRetryCode ? undefined : codeOf(failure));
}

function typeOf(failure: AttemptFailure): string | undefined {
  if (failure.visibility_expired === true) return VISIBILITY_TIMEOUT_TYPE;
  if (failure.crash === true) return CRASH_TYPE;
  return textOf(failure.type) ?? classNames(failure)[0];
}

const codeOf = (failure: AttemptFailure): string | undefined =>
  textOf(failure.code) ?? (failure.visibility_expired === true ? VISIBILITY_TIMEOUT_CODE : undefined);

/** By exact name. A reporter that knows no class chain has its own class in `type`. */
function isUnrecoverable(failure: AttemptFailure): boolean {
  const classes = classNames(failure);
  return classes.length > 0 ? classes.includes(UNRECOVERABLE) : failure.type === UNRECOVERABLE;
}

function classNames(failure: AttemptFailure): readonly string[] {
  const classes: unknown = failure.classes;
  return Array.isArray(classes) ? classes.filter((name) => typeof name === 'string' && name !== '') : [];
}

/** The delay in ms that the answer asks for: no jitter, no cap but the hard limit; the past means at once. */
function askedDelay(failure: AttemptFailure, now: number): number | undefined {
  const { retry_at } = failure;
  const at = Number.isFinite(retry_at) ? (retry_at as number) : parseInstant(retry_at, now);
  const delay = at === undefined ? parseDuration(failure.retry_in) : at - now;
  return delay === undefined ? undefined : Math.min(Math.max(Math.floor(delay), 0), HARD_LIMIT_MS);
}

function atLeast(failure: AttemptFailure): number {
  const ms: unknown = failure.at_least_ms;
  return typeof ms === 'number' && ms > 0 ? Math.min(Math.ceil(ms), LONGEST_ASKED_MS) : 0;
}

const deadLetter = (reason: DiscardReason): Decision => ({ outcome: 'dead_letter', reason });

function ended(policy: RetryPolicy, reason: DiscardReason): Decision {
  return { outcome: policy.on_exhaustion === 'dead_letter' ? 'dead_letter' : 'discarded', reason };
}

function retryAfter(delay: number, now: number): Decision {
  return { outcome: 'retry', delay_ms: delay, run_at: now + delay };
}
