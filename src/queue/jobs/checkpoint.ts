/**
 * Checkpoints: what a handler wants to find again when its job runs another time. They outlive retries and redrives, and
 * go with the job.
 */
import { conflict } from '../../job/errors';
import type { AttemptName, CheckpointRequest, StoredCheckpoint } from '../../rpc/workers';
import { type Found, mustFindForReport } from '../read/find';
import { stateOf } from '../store/rows';
import type { QueueState } from '../store/state';
import { fence, isNamed } from './report';

const keyOf = (found: Found): number => (found.row ? found.row.key : found.archived.k);

/** Refuses a report that names an attempt that is over, or another worker's. @throws {ApiError} 409 */
function fenced(q: QueueState, found: Found, request: AttemptName, state: string): void {
  const active = found.row && q.leases.active.get(found.row.key);
  if (found.row && active) fence(q, found.row, active, request);
  else if (isNamed(request)) {
    throw conflict(`The attempt of job ${request.job_id} that this names is over: the job is ${state}.`, {
      job_id: request.job_id,
      current_state: state,
      expected_state: 'active',
    });
  }
}

/** Replaces the job's checkpoint, in any state but a terminal one. One row written. @throws {ApiError} 404, 409 */
export function saveCheckpoint(q: QueueState, request: CheckpointRequest, now: number): StoredCheckpoint {
  const found = mustFindForReport(q, request.job_id);
  const { row } = found;
  const state = row ? stateOf(row, q.leases.active.has(row.key), now) : 'completed';
  if (!row || row.ended_at !== null) {
    throw conflict(`Job ${request.job_id} is ${state}: its checkpoint can no longer change.`, {
      job_id: request.job_id,
      current_state: state,
      expected_state: 'scheduled, available, pending, active or retryable',
    });
  }
  fenced(q, found, request, state);
  return q.checkpoints.save(row.key, request.content, now);
}

/** The job's checkpoint, or null. @throws {ApiError} 404 when there is no such job */
export function checkpointOf(q: QueueState, id: string): StoredCheckpoint | null {
  return q.checkpoints.read(keyOf(mustFindForReport(q, id))) ?? null;
}

/** Deletes the job's checkpoint, if it has one; the next one starts again at 1. @throws {ApiError} 404, 409 */
export function deleteCheckpoint(q: QueueState, request: AttemptName, now: number): { job_id: string } {
  const found = mustFindForReport(q, request.job_id);
  fenced(q, found, request, found.row ? stateOf(found.row, q.leases.active.has(found.row.key), now) : 'completed');
  q.checkpoints.remove(keyOf(found));
  return { job_id: request.job_id };
}
