/** Locks jobs for an operation over several queues until it is decided: unclaimable and unchanged, shown as before. */
import { lockedError } from '../../job/undecided';
import { find } from '../read/find';
import { isInLine, type JobRow, STATE } from '../store/job-row';
import { move } from '../store/jobs';
import type { LockedPlace } from '../store/locks';
import type { Named, QueueParts, Stored } from '../store/parts';
import { rowByKey } from '../store/row-lookup';

/** Interval from the unlocking of ended jobs to a check of their retention, ms. */
const LOOK_AGAIN_MS = 1_000;

/** @throws {ApiError} 503 when the job with this id is locked. Reads nothing while no job is. */
export function refuseLocked(q: Named & Stored, id: string): void {
  if (q.store.locks.size === 0) return;
  const row = find(q, id)?.row;
  if (row && q.store.locks.has(row.key)) throw lockedError(id);
}

/** Locks a job that does not run. One row written. The caller keeps the place. */
export function lockRow(q: QueueParts, row: JobRow, now: number): LockedPlace {
  const { key, state, due_at, ended_at, attempt } = row;
  move(q, row, 'lock', { state: STATE.held, due_at: null, ended_at: null }, now);
  const place = { key, state, due_at, ended_at, attempt, holds_group: row.holds_group };
  q.store.locks.add(place);
  return place;
}

/**
 * Puts a locked job back, one of the line into the due index at its old place. Two rows written, one if pending.
 * @param notBefore earliest due time of a delayed job, epoch ms @returns the row; undefined: it was not locked
 */
export function unlockRow(q: QueueParts, key: number, now: number, notBefore = 0): JobRow | undefined {
  const place = q.store.locks.take(key);
  const row = place && rowByKey(q.store, key);
  if (!place || row?.state !== STATE.held) return undefined;
  const { state, ended_at } = place;
  const due_at = isInLine({ ...row, ...place }) ? row.enqueued_at : place.due_at && Math.max(place.due_at, notBefore);
  const { holds_group: holds = row.holds_group } = place;
  const after = move(q, row, 'unlock', { state, due_at, ended_at, holds }, now);
  // Others may have been read since that stand behind it.
  if (q.store.gates.isStrict) for (const scan of q.store.cursors.all()) scan.readsInOrder();
  if (ended_at !== null) q.wake.at(now + LOOK_AGAIN_MS);
  return after;
}
