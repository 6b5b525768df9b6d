/** Jobs about which it has been decided that they go to another queue (`operations/moves.ts`): nothing else happens to them. */
import { conflict } from '../../job/errors';
import type { QueueState } from '../state';
import { idOf, type JobRow } from '../storage/rows';

/** @throws {ApiError} 409 when the job is on its way to another queue */
export function refuseMoving(q: QueueState, row: Pick<JobRow, 'key' | 'alias' | 'created_at'>): void {
  const move = q.moves.of(row.key);
  if (!move) return;
  const id = idOf(q.route, row);
  throw conflict(`Job ${id} is on its way to queue ${move.target}.`, {
    job_id: id,
    current_state: 'discarded',
    target_queue: move.target,
  });
}
