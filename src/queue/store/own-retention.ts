import { type End, ownRetentionMs, removalMoment } from '../../job/retention';
import { type JobRow, STATE } from './job-row';
import { readableBody } from './row-texts';

/** When a job ending now is removed by its own retention, epoch ms; `now`: not kept; undefined: by the queue's. */
export function keptUntil(row: Pick<JobRow, 'body'>, end: End, now: number): number | undefined {
  // Most jobs have none, and parsing is not free.
  if (!row.body.includes('"retention":')) return undefined;
  const own = ownRetentionMs(readableBody(row)?.retention, end);
  return own === undefined ? undefined : removalMoment(now, own);
}

/** How a job ended that has a row in this state; undefined when it has not. */
export function endOf(state: number): Exclude<End, 'completed'> | undefined {
  if (state === STATE.cancelled) return 'cancelled';
  if (state === STATE.discarded) return 'discarded';
  return state === STATE.dead ? 'dead_letter' : undefined;
}
