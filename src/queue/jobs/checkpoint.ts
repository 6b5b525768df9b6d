/** Checkpoints: what a handler saves for the next run. They outlive retries and redrives, and go with the job. */
import type { AttemptName, CheckpointRequest, StoredCheckpoint } from '../../rpc/workers';
import { mustFindForReport } from '../read/find';
import type { Named, Stored } from '../store/parts';
import { stateOf } from '../store/rows';
import { fenced, keyOfFound, openRow } from './fence';

/** Replaces the job's checkpoint, in any state but a terminal one. One row written. @throws {ApiError} 404, 409 */
export const saveCheckpoint = (q: Named & Stored, request: CheckpointRequest, now: number): StoredCheckpoint =>
  q.store.checkpoints.save(openRow(q, request, 'its checkpoint', now).key, request.content, now);

/** The job's checkpoint, or null. @throws {ApiError} 404 when there is no such job */
export const checkpointOf = (q: Named & Stored, id: string): StoredCheckpoint | null =>
  q.store.checkpoints.read(keyOfFound(mustFindForReport(q, id))) ?? null;

/** Deletes the job's checkpoint, if it has one; the next one starts again at 1. @throws {ApiError} 404, 409 */
export function deleteCheckpoint(q: Named & Stored, request: AttemptName, now: number): { job_id: string } {
  const found = mustFindForReport(q, request.job_id);
  fenced(
    q,
    found,
    request,
    found.row ? stateOf(found.row, q.store.leases.active.has(found.row.key), now) : 'completed',
  );
  q.store.checkpoints.removeOwn(keyOfFound(found));
  return { job_id: request.job_id };
}
