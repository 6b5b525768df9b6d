/** How long a job stays after its end: as it says itself, else as its queue does. */
import { type End, ownRetentionMs, removalMoment } from '../../job/retention';
import { type JobRow, readableBody } from '../store/rows';

/**
 * When a job that ends now is to be removed by its own retention, epoch ms; `now` for one that is not kept at all.
 * Undefined: as its queue says.
 */
export function keptUntil(row: Pick<JobRow, 'body'>, end: End, now: number): number | undefined {
  // Most jobs do not say, and parsing is not free.
  if (!row.body.includes('"retention":')) return undefined;
  const own = ownRetentionMs(readableBody(row)?.retention, end);
  return own === undefined ? undefined : removalMoment(now, own);
}
