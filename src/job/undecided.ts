/** Refusals that end by themselves: something else is being decided about a job, for a moment as a rule. */
import { ApiError, type ErrorData, unavailable } from './errors';

/** `details.reason` of {@link lockedError}, and the reason of an item that could not be acted on because of it. */
export const LOCKED = 'locked';

/** `details.reason` of {@link undecided}. */
const UNDECIDED = 'undecided_batch';

/** 503: the job is locked. @param why what is being decided, and that the request can be sent again */
export const lockedError = (
  id: string,
  why = `Job ${id} is part of an operation over several queues that is not decided yet; try again.`,
): ApiError => new ApiError({ ...unavailable(why).data, details: { reason: LOCKED, job_id: id } });

/** An operation on all jobs or none waits for locks. @throws {ApiError} 503 when one of these items was found locked */
export function refuseLockedItems(items: readonly { job_id: string; reason?: string }[]): void {
  const locked = items.find(({ reason }) => reason === LOCKED);
  if (locked) throw lockedError(locked.job_id);
}

/** 503: whether the job is a duplicate depends on a batch that is being decided. Nothing was written. */
export function undecided(): ApiError {
  const { data } = unavailable('A batch that is being enqueued has a job with the same unique fingerprint; try again.');
  return new ApiError({ ...data, details: { reason: UNDECIDED } });
}

/** Was the request refused only because something else is being decided? */
export const isBeingDecided = ({ details }: ErrorData): boolean =>
  details?.reason === LOCKED || details?.reason === UNDECIDED;
