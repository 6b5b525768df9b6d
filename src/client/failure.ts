import type { FailureReport } from '../contract/pull';
import { failureOf } from '../handler/failure';
import { isError } from '../job/thrown';
import type { Duration } from '../producer/envelope';
import { type Moment, momentText } from '../producer/job';
import type { Named } from '../producer/names';

type Reported = Named<FailureReport>;

/** The error of a failed job. */
export interface JobFailure extends Omit<Reported, 'classes' | 'retryIn' | 'retryAt'> {
  /** Names of its class and those above it. */
  classes?: readonly string[];
  /** When to run again, in place of the policy's own delay. Set one of the two at most. */
  retryIn?: Duration;
  retryAt?: Moment;
}

/** Writes what was thrown, verdicts such as `retryIn('30s')` included, or a description. */
export function wireFailure(error: Error | JobFailure): object {
  if (isError(error)) return failureOf(error);
  const { retryIn, retryAt, ...members } = error;
  return { ...members, retryIn, retryAt: momentText(retryAt, 'retryAt') };
}
