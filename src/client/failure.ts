/** The error of a failed job as a worker reports it: the same on the wire as a handler Worker's. */
import { failureOf, isError } from '../handler/failure';
import type { Duration } from '../producer/envelope';
import { type Moment, momentText } from '../producer/job';

/** The error of a failed job. */
export interface JobFailure {
  /** Class of the error. */
  type?: string;
  message?: string;
  code?: string;
  /** Names of its class and those above it. */
  classes?: readonly string[];
  details?: unknown;
  retryable?: boolean;
  /** A dead letter at once. */
  kill?: boolean;
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
