/**
 * One queue's share of an action over several queues: preparing checks and locks the jobs, the commit unlocks and acts
 * in one transaction. Running jobs are refused: a report cannot wait for other queues. Completed ones need no lock.
 */
import { ApiError } from '../../../job/errors';
import type { BulkAction, BulkAnswer } from '../../../rpc/operations';
import { actOnRow, checkItem } from '../../jobs/bulk-act';
import { lockRow, refuseLocked, unlockRow } from '../../jobs/lock';
import { refuseGivenUp } from '../../jobs/may-enqueue';
import { find } from '../../read/find';
import { deleteArchived } from '../../store/archive';
import { type PreparedAction, writeShare } from '../../store/batches';
import type { Named, QueueParts, Stored } from '../../store/parts';

/**
 * Checks this queue's share and locks its jobs, two rows each. If one cannot be acted on, nothing is written and
 * `applied` is false. @param request ids, each named once @throws {ApiError} 503 while another operation has one
 */
export function prepareBulk(
  q: QueueParts,
  batch: string,
  coordinator: string,
  request: { action: BulkAction; ids: readonly string[] },
  now: number,
): BulkAnswer {
  refuseGivenUp(q, batch, now);
  const { action, ids } = request;
  for (const id of ids) refuseLocked(q, id);
  const items = ids.map((id) => {
    const item = checkItem(q, action, id, now);
    const runs = item.status === 'done' && isRunning(q, id);
    return runs ? { job_id: id, status: 'skipped' as const, reason: 'active' } : item;
  });
  if (items.some(({ status }) => status !== 'done')) return { items, applied: false };
  const act: PreparedAction = { action, locked: [], archived: [] };
  for (const id of ids) {
    const found = find(q, id);
    if (found?.row) act.locked.push(lockRow(q, found.row, now));
    else if (found) act.archived.push(found.archived.k);
  }
  writeShare(q, batch, { coordinator, jobs: [], act }, now);
  return { items, applied: true };
}

function isRunning(q: Named & Stored, id: string): boolean {
  const row = find(q, id)?.row;
  return row !== undefined && q.store.leases.active.has(row.key);
}

export function commitAction(q: QueueParts, { action, locked, archived }: PreparedAction, now: number): void {
  for (const { key } of locked) {
    // A retry that came due meanwhile is still the one that was checked.
    const row = unlockRow(q, key, now, action === 'retry' ? now + 1 : undefined);
    if (row) actSurely(q, action, row, now);
  }
  if (archived.length > 0) deleteArchived(q.store, archived);
}

/** The decision is final: a failure with one job does not affect the others. */
function actSurely(q: QueueParts, action: BulkAction, row: Parameters<typeof actOnRow>[2], now: number): void {
  try {
    actOnRow(q, action, row, now);
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    console.error(`tocsin: a job could not be acted on as decided (${action})`, error);
  }
}

/** The batch is abandoned: the jobs are as they were. */
export function abortAction(q: QueueParts, { locked }: PreparedAction, now: number): void {
  for (const { key } of locked) unlockRow(q, key, now);
}
