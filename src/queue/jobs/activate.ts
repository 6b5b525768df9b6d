/** Activating a pending job: it was accepted, and now may run. */
import { conflict } from '../../job/errors';
import type { JobView } from '../../job/record';
import { mustFind, viewOfRow } from '../read/find';
import type { QueueState } from '../state';
import { nowWaits, place } from '../store/limits/admit';
import { bodyOf, idOf, type JobRow, STATE, stateOf } from '../store/rows';

/** `pending` → `available`, or `scheduled` when its time has not come. @throws {ApiError} 404, 409 */
export function activate(q: QueueState, id: string, now: number): JobView {
  const found = mustFind(q, id);
  const row = found.row;
  if (!row || row.state !== STATE.pending) {
    const state = row ? stateOf(row, q.leases.active.has(row.key), now) : 'completed';
    throw conflict(`Job ${id} is ${state}, not pending.`, {
      job_id: id,
      current_state: state,
      expected_state: 'pending',
    });
  }
  const dueAt = Math.max(now, bodyOf(row).scheduled_at ?? now);
  const after: JobRow = { ...row, state: STATE.waiting, ...place(q, row, dueAt, now), enqueued_at: now };
  q.sql
    .exec(
      'UPDATE jobs SET state = ?, due_at = ?, waits_since = ?, enqueued_at = ? WHERE key = ?',
      after.state,
      after.due_at,
      after.waits_since,
      after.enqueued_at,
      row.key,
    )
    .toArray();
  nowWaits(q, after, now);
  q.events.add('job.enqueued', idOf(q.route, row), now, { job_type: row.type, attempt: 0 });
  return viewOfRow(q, after, now);
}
