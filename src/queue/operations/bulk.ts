/** What an operation on many jobs does to each of them, and doing it to jobs named by id. */
import { ApiError } from '../../job/errors';
import { type JobState, TERMINAL_STATES } from '../../job/record';
import { cancel } from '../jobs/cancel';
import { removeEnded } from '../jobs/end';
import { find, rowByKey } from '../jobs/find';
import { refuseMoving } from '../jobs/moving';
import { redrive } from '../jobs/redrive';
import { waitsNoMore } from '../limits/admit';
import type { QueueState } from '../state';
import { deleteArchived } from '../storage/archive';
import { idOf, isInLine, type JobRow, stateOf } from '../storage/rows';
import { noteFailure } from '../workflow/outbox';
import type { BulkAction, BulkItem } from './api';

/** States of the jobs that an operation by filter may act on. Jobs that run are never among them. */
export const ACTS_ON: Record<BulkAction, readonly JobState[]> = {
  cancel: ['scheduled', 'available', 'pending', 'retryable'],
  retry: ['discarded', 'cancelled', 'retryable'],
  delete: TERMINAL_STATES,
  purge: ['scheduled', 'available', 'pending', 'retryable', ...TERMINAL_STATES],
};

/** Acts on one job that has a row. @throws {ApiError} 409 in the wrong state */
export function actOnRow(q: QueueState, action: BulkAction, row: JobRow, now: number): void {
  const id = idOf(q.route, row);
  refuseMoving(q, row);
  if (action === 'cancel') cancel(q, id, now);
  else if (action === 'retry') redrive(q, id, { deadLetterOnly: false }, now);
  else if (row.ended_at !== null) removeEnded(q, row);
  else removeWaiting(q, row, 'purged', now);
}

/** Removes a job that has not ended, for good. Whoever waits for its end is told, and so is its workflow. */
export function removeWaiting(q: QueueState, row: JobRow, reason: 'purged' | 'queue_deleted', now: number): void {
  const active = q.leases.active.get(row.key);
  if (active) q.leases.release(active);
  else {
    if (isInLine(row) && q.lineLength !== null) q.lineLength--;
    waitsNoMore(q, row);
  }
  removeEnded(q, row);
  noteFailure(q, row, false, { reason }, now);
  q.events.add('job.discarded', idOf(q.route, row), now, {
    job_type: row.type,
    attempt: active?.attempt ?? row.attempt,
    reason,
    dead_letter: false,
  });
}

/**
 * Acts on the jobs with these ids, each named once. A job named by its id is cancelled even when it runs.
 * @param atomic act only when it is possible for all of them
 */
export function bulk(
  q: QueueState,
  request: { action: BulkAction; ids: readonly string[]; atomic: boolean },
  now: number,
): { items: BulkItem[]; applied: boolean } {
  const { action, ids } = request;
  if (request.atomic) {
    const judged = ids.map((id) => judge(q, action, id, now));
    if (judged.some(({ status }) => status !== 'done')) return { items: judged, applied: false };
  }
  const items = ids.map((id) => {
    const item = judge(q, action, id, now);
    if (item.status === 'done') act(q, action, id, now);
    return item;
  });
  return { items, applied: true };
}

/** What would become of the job. */
function judge(q: QueueState, action: BulkAction, id: string, now: number): BulkItem {
  const found = find(q, id);
  if (!found) return { job_id: id, status: 'failed', reason: 'not_found' };
  const { row } = found;
  if (row && q.moves.of(row.key)) return { job_id: id, status: 'skipped', reason: 'moving' };
  const state = row ? stateOf(row, q.leases.active.has(row.key), now) : 'completed';
  const able = ACTS_ON[action].includes(state) || (action === 'cancel' && state === 'active');
  return able ? { job_id: id, status: 'done' } : { job_id: id, status: 'skipped', reason: state };
}

function act(q: QueueState, action: BulkAction, id: string, now: number): void {
  const found = find(q, id);
  if (found?.row) actOnRow(q, action, found.row, now);
  else if (found) deleteArchived(q.sql, [found.archived.k]);
}

/** Acts on a job that matched a moment ago. @returns why not, if it was not possible */
export function actOnKey(
  q: QueueState,
  action: BulkAction,
  key: number,
  now: number,
): { id: string; error: string } | undefined {
  const row = rowByKey(q, key);
  if (!row) return undefined;
  try {
    actOnRow(q, action, row, now);
    return undefined;
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    return { id: idOf(q.route, row), error: error.data.code };
  }
}
