/** A job's last failure, as its history tells it. */
import { textOf } from '../own';
import type { JobHistory } from '../record';
import type { Failure } from './fingerprint';

/** @param type of the job. @returns undefined for a job that has not failed */
export function lastFailure(
  type: string,
  { error, reason }: Pick<JobHistory, 'error' | 'reason'>,
): Failure | undefined {
  if (!error && reason === undefined) return undefined;
  return failureOf(type, error ?? {}, reason);
}

/** @param error what is on record of it; any member may be missing. @param reason why the job was discarded */
export function failureOf(
  type: string,
  error: { type?: unknown; code?: unknown; message?: unknown },
  reason: unknown,
): Failure {
  const code = textOf(error.code) ?? textOf(reason) ?? 'unknown';
  return { type, error_type: textOf(error.type) ?? code, code, message: textOf(error.message) ?? '' };
}
