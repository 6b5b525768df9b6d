/** An operation on many jobs: what it does to each of them, and to jobs named by id. */

import { recallAnswer, rememberAnswer } from '../../durable/inbox';
import { ApiError } from '../../job/errors';
import { mayMove } from '../../job/states';
import { LOCKED } from '../../job/undecided';
import { ACTS_ON, type BulkAction, type BulkAnswer, type BulkItem, type BulkRequest } from '../../rpc/operations';
import { type Found, find } from '../read/find';
import { deleteArchived } from '../store/archive';
import type { JobRow } from '../store/job-row';
import { remove } from '../store/jobs';
import { moveOf } from '../store/moves';
import type { Named, QueueParts, Stored } from '../store/parts';
import { rowByKey } from '../store/row-lookup';
import { idOf, stateOf } from '../store/rows';
import { cancel } from './cancel';
import { refuseMoving } from './legal-move';
import { refuseLocked } from './lock';
import { redrive } from './redrive';

/** Acts on one job that has a row. @throws {ApiError} 409 in the wrong state */
export function actOnRow(q: QueueParts, action: BulkAction, row: JobRow, now: number): void {
  const id = idOf(q.route, row);
  refuseMoving(q, row);
  if (action === 'cancel') cancel(q, id, now);
  else if (action === 'retry') redrive(q, id, { deadLetterOnly: false }, now);
  else if (row.ended_at !== null) remove(q, row, 'remove', now);
  else remove(q, row, 'purge', now, { reason: 'purged' });
}

/**
 * Acts on the jobs with these ids, each named once; even running ones are cancelled.
 * @throws {ApiError} 503 if it is all or none and one of them is locked; 409 for a key of another request
 */
export function bulk(q: QueueParts, request: BulkRequest, now: number): BulkAnswer {
  const { once } = request;
  const earlier = once && recallAnswer<BulkAnswer>(q.store.inbox, once, now);
  if (earlier) return earlier;
  const answer = actOnIds(q, request, now);
  // Jobs that are missing now will be missing for this operation later too.
  const isWorthIt = answer.applied && answer.items.some(({ reason }) => reason !== 'not_found');
  if (once && isWorthIt) rememberAnswer(q.store.inbox, once, answer, now);
  return answer;
}

function actOnIds(q: QueueParts, request: BulkRequest, now: number): BulkAnswer {
  const { action, ids, createdUntil } = request;
  if (request.atomic) {
    for (const id of ids) refuseLocked(q, id);
    const checked = ids.map((id) => checkItem(q, action, id, now, createdUntil));
    if (checked.some(({ status }) => status !== 'done')) return { items: checked, applied: false };
  }
  const items = ids.map((id) => {
    const item = checkItem(q, action, id, now, createdUntil);
    if (item.status === 'done') act(q, action, id, now);
    return item;
  });
  return { items, applied: true };
}

/** The result that acting on the job would have. @param createdUntil a job made later (epoch ms) does not count */
export function checkItem(
  q: Named & Stored,
  action: BulkAction,
  id: string,
  now: number,
  createdUntil = Number.POSITIVE_INFINITY,
): BulkItem {
  const found = find(q, id);
  // An id minted here was unknown before its job; one chosen by a client may be used again.
  if (!found || (isChosen(found) && createdAt(found) > createdUntil)) {
    return { job_id: id, status: 'failed', reason: 'not_found' };
  }
  const { row } = found;
  if (row && q.store.locks.has(row.key)) return { job_id: id, status: 'failed', reason: LOCKED };
  if (row && moveOf(q.store.outbox, row.key)) return { job_id: id, status: 'skipped', reason: 'moving' };
  const state = row ? stateOf(row, q.store.leases.active.has(row.key), now) : 'completed';
  const able = ACTS_ON[action].includes(state) || (action === 'cancel' && mayMove('cancel', state));
  return able ? { job_id: id, status: 'done' } : { job_id: id, status: 'skipped', reason: state };
}

const isChosen = ({ row, archived }: Found): boolean => (row ? row.alias !== null : archived.a !== undefined);

const createdAt = ({ row, archived }: Found): number => (row ? row.created_at : archived.at[0]);

export function act(q: QueueParts, action: BulkAction, id: string, now: number): void {
  const found = find(q, id);
  if (found?.row) actOnRow(q, action, found.row, now);
  else if (found) deleteArchived(q.store, [found.archived.k]);
}

/** Acts on a job that matched a moment ago. @returns the result; undefined when the job is gone already */
export function actOnKey(q: QueueParts, action: BulkAction, key: number, now: number): BulkItem | undefined {
  const row = rowByKey(q.store, key);
  if (!row) return undefined;
  const job_id = idOf(q.route, row);
  if (q.store.locks.has(key)) return { job_id, status: 'failed', reason: LOCKED };
  try {
    actOnRow(q, action, row, now);
    return { job_id, status: 'done' };
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    return { job_id, status: 'failed', reason: error.data.code };
  }
}
