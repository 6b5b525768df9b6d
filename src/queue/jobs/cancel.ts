/** Cancelling: any job that has not ended, even one that runs. The report of a runner that goes on is refused. */
import { conflict } from '../../job/errors';
import type { JobView } from '../../job/record';
import { mustFind, rowByKey, viewOfRow } from '../read/find';
import type { QueueState } from '../state';
import { waitsNoMore } from '../store/limits/admit';
import { historyOf, idOf, isInLine, type JobRow, STATE, stateOf } from '../store/rows';
import { end } from './end';
import { unlockRow } from './lock';
import { refuseSetAside } from './moving';

/**
 * Cancels a job.
 * @throws {ApiError} 404; 409 when it has ended already; 503 while it is on its way to the queue that takes this one's jobs
 */
export function cancel(q: QueueState, id: string, now: number): JobView {
  refuseSetAside(q, id);
  const found = mustFind(q, id);
  // Only the queue itself comes so far with a locked job (producers are refused): the lock ends here.
  if (found.row && q.locks.has(found.row.key)) found.row = unlockRow(q, found.row.key, now) ?? found.row;
  const active = found.row && q.leases.active.get(found.row.key);
  const state = found.row ? stateOf(found.row, active !== undefined, now) : 'completed';
  if (!found.row || state === 'cancelled' || state === 'discarded') {
    throw conflict(`Job ${id} is ${state} and cannot be cancelled.`, {
      job_id: id,
      current_state: state,
      expected_state: 'scheduled, available, pending, active or retryable',
    });
  }
  const { row } = found;
  const history = { ...historyOf(row), cancelled_at: now };
  delete history.retry_delay_ms;
  if (active) {
    history.started_at = active.startedAt;
    q.leases.release(active);
    end(q, { ...row, attempt: active.attempt, claims: active.claim }, STATE.cancelled, history, now);
  } else {
    if (isInLine(row) && q.lineLength !== null) q.lineLength--;
    waitsNoMore(q, row);
    end(q, row, STATE.cancelled, history, now);
  }
  const after = rowByKey(q, row.key) as JobRow;
  q.events.add('job.cancelled', idOf(q.route, row), now, { job_type: row.type, attempt: after.attempt });
  return viewOfRow(q, after, now);
}
