/** Activating a pending job: it was accepted, and now may run. */
import { conflict } from '../../job/errors';
import type { JobView } from '../../job/record';
import { mayMove, statesBefore } from '../../job/states';
import { mustFind, viewOfRow } from '../read/find';
import { STATE } from '../store/columns';
import { move } from '../store/jobs';
import { bodyOf, stateOf } from '../store/rows';
import type { QueueState } from '../store/state';

/** `pending` → `available`, or `scheduled` when its time has not come. @throws {ApiError} 404, 409 */
export function activate(q: QueueState, id: string, now: number): JobView {
  const found = mustFind(q, id);
  const { row } = found;
  const state = row ? stateOf(row, q.leases.active.has(row.key), now) : 'completed';
  if (!row || !mayMove('activate', state)) {
    throw conflict(`Job ${id} is ${state}, not pending.`, {
      job_id: id,
      current_state: state,
      expected_state: statesBefore('activate'),
    });
  }
  const availableAt = Math.max(now, bodyOf(row).scheduled_at ?? now);
  const after = move(q, row, 'activate', { state: STATE.waiting, enqueued_at: now, availableAt }, now);
  return viewOfRow(q, after, now);
}
