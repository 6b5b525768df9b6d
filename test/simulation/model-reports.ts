/** What becomes of a job of which a worker reports something: the rules, whichever way the report came. */
import { isOpen, type Model, type ModelJob } from './model';
import type { ErrorTexts, Text } from './texts';

/** Which attempt a report names, and which worker; absent: it does not say. */
export interface Named {
  attempt: number | undefined;
  worker?: string | undefined;
}

export interface SnoozeTerms {
  in: number;
  signal: boolean;
  mark: number;
}

/** Is there nothing to report about? One on its way to another queue may run there already. */
const isAway = ({ state, isMoving = false }: ModelJob): boolean => state === 'gone' || isMoving;

/** Is the report about the attempt that runs? */
export function isRunning(job: ModelJob, { attempt, worker }: Named): boolean {
  const isOther = worker !== undefined && job.lease?.worker !== undefined && worker !== job.lease.worker;
  return job.state === 'active' && (attempt === undefined || attempt === job.attempt) && !isOther;
}

/** The attempt succeeded. @returns the status of the answer */
export function acked(model: Model, job: ModelJob, by: Named, now: number, result?: Text): number {
  if (isAway(job)) return 404;
  if (job.state === 'completed') return isTold(job, by.attempt, job.completedBy, now) ? 200 : 409;
  if (!isRunning(job, by)) return 409;
  job.result = result;
  model.complete(job, now);
  return 200;
}

/** The attempt failed, or is given back. */
export function nacked(
  model: Model,
  job: ModelJob,
  by: Named,
  now: number,
  { how, error }: { how: 'plain' | 'requeue' | 'final' | 'retry-in'; error?: ErrorTexts | undefined },
): number {
  if (isAway(job)) return 404;
  // The repeated report of the attempt that it ended is told the outcome.
  if (job.state !== 'active') return repeats(job, by.attempt, how === 'requeue', now) ? 200 : 409;
  if (!isRunning(job, by)) return 409;
  if (how === 'requeue' && job.attempt < Math.max(1, job.order.maxAttempts)) model.requeue(job, now);
  else {
    job.error = error ?? {};
    model.fail(job, now, { delay: how === 'retry-in' ? 777 : job.order.backoff, final: how === 'final' });
  }
  return 200;
}

/** The handler goes on later. */
export function snoozed(model: Model, job: ModelJob, by: Named, now: number, terms: SnoozeTerms): number {
  if (isAway(job)) return 404;
  if (job.state !== 'active')
    return repeats(job, by.attempt, true, now) || (by.attempt !== undefined && by.attempt === job.snoozedBy)
      ? 200
      : 409;
  if (!isRunning(job, by)) return 409;
  model.snooze(job, now, terms);
  return 200;
}

/** It goes on. */
export function progressed(model: Model, job: ModelJob, by: Named, now: number): number {
  if (isAway(job)) return 404;
  if (job.state === 'active' && !isRunning(job, by)) return 409;
  model.extend(job, now);
  return 200;
}

/** May an attempt note something beside its job? */
export function mayNote(job: ModelJob, by: Named): number {
  if (isAway(job)) return 404;
  const isFenced = job.state === 'active' ? !isRunning(job, by) : by.attempt !== undefined;
  return !isOpen(job) || isFenced ? 409 : 200;
}

/** Is this the repeated report of the attempt that ended last? One that names none may be that of a handler. */
function repeats(job: ModelJob, named: number | undefined, requeue: boolean, now: number): boolean {
  if (job.state !== 'waiting' && job.state !== 'discarded') return false;
  if (named !== undefined)
    return named === job.failedBy || (requeue && job.state === 'waiting' && named === job.requeuedBy);
  if (!job.told || now > job.told.until || job.attempt === 0) return false;
  return job.told.attempt === job.attempt ? !job.told.isLost : requeue && job.state === 'waiting';
}

/** Is somebody who reports an attempt told that it is on record? */
function isTold(job: ModelJob, named: number | undefined, recorded: number | undefined, now: number): boolean {
  return named === undefined ? job.told !== undefined && now <= job.told.until : named === recorded;
}
