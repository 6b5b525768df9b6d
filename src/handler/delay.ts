/** Asks a handler's retry function for the delay before the next run. */
import { ignoreRejection, messageOf } from '../job/thrown';
import { durationMs } from './duration';
import { type Failure, followsPolicy, isNonRetryable } from './failure';
import type { Logger } from './log';
import type { Job, RetryFunction } from './types';

/**
 * The failure with the `retry_in` that its retry function chose. It stays unchanged in three cases: the thrown error
 * decides itself; the job's policy lists the error as not retryable (a named delay would outrank that list); the
 * function throws or returns no duration.
 * @param attempt the run that failed, from 1
 */
export function withChosenDelay(
  failure: Failure,
  thrown: unknown,
  delay: RetryFunction | undefined,
  job: Job,
  attempt: number,
  log: Logger,
): Failure {
  if (delay === undefined || !followsPolicy(failure) || isNonRetryable(failure, job)) return failure;
  let answer: unknown;
  try {
    answer = delay(attempt - 1, thrown);
  } catch (error) {
    log.error('the retry function threw; the queue decides the delay', { error: messageOf(error) });
    return failure;
  }
  // An async function would leave an unhandled rejection.
  ignoreRejection(answer);
  const ms = durationMs(typeof answer === 'number' ? Math.round(answer) : answer);
  if (ms === undefined) {
    log.error('the retry function did not return a duration; the queue decides the delay', {
      answer: messageOf(answer),
    });
    return failure;
  }
  return { ...failure, retry_in: ms };
}
