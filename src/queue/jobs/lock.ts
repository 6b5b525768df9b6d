/**
 * Locking jobs for an operation over several queues: from its preparation to the decision nobody is given the job, and
 * nobody changes it. Readers see it as it was.
 */
import { lockedError } from '../../job/undecided';
import { find, rowByKey } from '../read/find';
import type { QueueState } from '../state';
import { nowWaits, waitsNoMore } from '../store/limits/admit';
import type { LockedPlace } from '../store/locks';
import { isInLine, type JobRow, STATE } from '../store/rows';

/** How long after the unlocking of ended jobs the queue looks whether their retention has passed, ms. */
const LOOK_AGAIN_MS = 1_000;

/** @throws {ApiError} 503 when the job with this id is locked. Reads nothing while no job is. */
export function refuseLocked(q: QueueState, id: string): void {
  if (q.locks.size === 0) return;
  const row = find(q, id)?.row;
  if (row && q.locks.has(row.key)) throw lockedError(id);
}

/** Locks a job that does not run. Two rows written, one when it stands in the line. The caller keeps the place. */
export function lockRow(q: QueueState, row: JobRow): LockedPlace {
  const { key, state, due_at, waits_since, ended_at, attempt } = row;
  if (isInLine(row) && q.lineLength !== null) q.lineLength--;
  if (row.ended_at === null) waitsNoMore(q, row);
  if (state === STATE.dead && q.deadCount !== null) q.deadCount--;
  q.sql
    .exec(
      `UPDATE jobs SET state = ${STATE.held}, due_at = NULL, waits_since = NULL, ended_at = NULL WHERE key = ?`,
      key,
    )
    .toArray();
  const place = { key, state, due_at, waits_since, ended_at, attempt };
  q.locks.add(place);
  return place;
}

/**
 * Puts a locked job back where it stood. One that stood in the line, which is read only forwards, comes into the due index
 * at its old place in the order. As many rows written as by {@link lockRow}.
 * @param notBefore a delayed job is due at this time at the earliest, epoch ms
 * @returns the row; undefined when it was not locked
 */
export function unlockRow(q: QueueState, key: number, now: number, notBefore = 0): JobRow | undefined {
  const place = q.locks.take(key);
  const row = place && rowByKey(q, key);
  if (row?.state !== STATE.held) return undefined;
  const after: JobRow = { ...row, ...place };
  if (isInLine(after)) after.due_at = after.enqueued_at;
  else if (after.due_at !== null) after.due_at = Math.max(after.due_at, notBefore);
  q.sql
    .exec(
      'UPDATE jobs SET state = ?, due_at = ?, waits_since = ?, ended_at = ? WHERE key = ?',
      after.state,
      after.due_at,
      after.waits_since,
      after.ended_at,
      key,
    )
    .toArray();
  if (after.state === STATE.dead && q.deadCount !== null) q.deadCount++;
  if (after.state === STATE.waiting) nowWaits(q, after, now);
  if (after.ended_at !== null) q.wake(now + LOOK_AGAIN_MS);
  else if (after.expires_at !== null) {
    q.nextExpiry = Math.min(q.nextExpiry, after.expires_at);
    q.wake(after.expires_at);
  }
  return after;
}
