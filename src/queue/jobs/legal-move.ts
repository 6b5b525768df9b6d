/** Checks the table of moves before anything is written: the error for an illegal move names the legal ones. */
import { conflict } from '../../job/errors';
import { type JobState, type Move, mayMove, statesBefore } from '../../job/states';
import type { Found } from '../read/find';
import type { JobRow } from '../store/job-row';
import { moveOf } from '../store/moves';
import type { Named, Stored } from '../store/parts';
import { idOf, stateOf } from '../store/rows';

/**
 * The row of a job that may make the move, and its state. @param refusal ends the sentence `Job … is completed`
 * @throws {ApiError} 409
 */
export function movable(
  q: Stored,
  id: string,
  { row }: Partial<Found>,
  move: Move,
  refusal: string,
  now: number,
): { row: JobRow; state: JobState } {
  const state = row ? stateOf(row, q.store.leases.active.has(row.key), now) : 'completed';
  if (row && mayMove(move, state)) return { row, state };
  throw conflict(`Job ${id} is ${state}${refusal}`, {
    job_id: id,
    current_state: state,
    expected_state: statesBefore(move),
  });
}

/** @throws {ApiError} 409 when the job is on its way to another queue */
export function refuseMoving(q: Named & Stored, row: Pick<JobRow, 'key' | 'alias' | 'created_at'>): void {
  const move = moveOf(q.store.outbox, row.key);
  if (!move) return;
  const id = idOf(q.route, row);
  throw conflict(`Job ${id} is on its way to queue ${move.target}.`, {
    job_id: id,
    current_state: 'discarded',
    target_queue: move.target,
  });
}
