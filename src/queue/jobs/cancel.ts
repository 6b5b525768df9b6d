/** Cancels any job that has not ended, even one that runs. If its runner continues, its report is refused. */

import type { JobView } from '../../job/record';
import { TERMINAL_STATES } from '../../job/states';
import { findSettled, mustFind, viewOf, viewOfRow } from '../read/find';
import { leaveShare } from '../store/batches';
import { historyOf, STATE } from '../store/job-row';
import { move } from '../store/jobs';
import type { QueueParts } from '../store/parts';
import { movable } from './legal-move';
import { unlockRow } from './lock';

/** Cancels a job. @throws {ApiError} 404; 409 if it has ended; 503 while it moves to another queue */
export function cancel(q: QueueParts, id: string, now: number): JobView {
  const found = mustFind(q, id);
  // Only the queue itself gets here with a locked job (clients are refused): the lock ends here.
  if (found.row && q.store.locks.has(found.row.key)) {
    leaveShare(q, found.row.key, now);
    found.row = unlockRow(q, found.row.key, now) ?? found.row;
  }
  const { row } = movable(q, id, found, 'cancel', ' and cannot be cancelled.', now);
  const active = q.store.leases.active.get(row.key);
  const history = { ...historyOf(row), cancelled_at: now };
  delete history.retry_delay_ms;
  if (active) history.started_at = active.startedAt;
  return viewOfRow(q, move(q, row, 'cancel', { state: STATE.cancelled, history }, now), now);
}

/** Cancels those of these jobs that have not ended. @returns those that are not here @throws {ApiError} 503 */
export const cancelOpen = (q: QueueParts, ids: readonly string[], now: number): string[] =>
  ids.filter((id) => {
    const found = findSettled(q, id);
    if (found?.row && !TERMINAL_STATES.includes(viewOf(q, found, now).record.state)) cancel(q, id, now);
    return !found;
  });
