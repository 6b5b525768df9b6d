/** Ending a job otherwise than by success: its row stays, out of every queue, until its retention has passed. */
import type { JobHistory } from '../../job/record';
import { DEFAULTS, type QueueState } from '../state';
import { type JobRow, STATE } from '../storage/rows';
import { forgetRow } from '../unique/keys';
import { noteFailure } from '../workflow/outbox';

type Ended = typeof STATE.cancelled | typeof STATE.discarded | typeof STATE.dead;

/**
 * Writes a terminal state. Two rows written (the row and its entry in the index of ended jobs).
 * The caller accounts for lease, line and events.
 */
export function end(q: QueueState, row: JobRow, state: Ended, history: JobHistory, now: number): void {
  q.sql
    .exec(
      'UPDATE jobs SET state = ?, attempt = ?, claims = ?, due_at = NULL, waits_since = NULL, ended_at = ?, history = ? WHERE key = ?',
      state,
      row.attempt,
      row.claims,
      now,
      JSON.stringify(history),
      row.key,
    )
    .toArray();
  q.depth.gone(row);
  const kind = state === STATE.cancelled ? 'cancelled' : state === STATE.dead ? 'dead' : 'discarded';
  q.wake(now + q.retentionMs(kind));
  noteFailure(q, row, state === STATE.cancelled, history, now);
  if (state === STATE.dead) capDeadLetters(q);
}

/** How many dead letters there are. Counted once, then kept in memory. */
export function countDead(q: QueueState): number {
  q.deadCount ??= q.sql
    .exec<{ n: number }>(`SELECT count(*) AS n FROM jobs WHERE state = ${STATE.dead} AND ended_at IS NOT NULL`)
    .one().n;
  return q.deadCount;
}

/** Keeps the dead letters within their bound: the oldest go first. */
function capDeadLetters(q: QueueState): void {
  if (q.deadCount !== null) q.deadCount++;
  const max = q.settings.dead_letter?.max_count ?? DEFAULTS.deadLetter.maxCount;
  const surplus = countDead(q) - max;
  if (surplus <= 0) return;
  const oldest = q.sql
    .exec<JobRow>(
      `SELECT * FROM jobs WHERE state = ${STATE.dead} AND ended_at IS NOT NULL ORDER BY ended_at LIMIT ?`,
      surplus,
    )
    .toArray();
  for (const row of oldest) removeEnded(q, row);
}

/** Deletes a row that has ended, for good. */
export function removeEnded(q: QueueState, row: JobRow): void {
  if (row.ended_at === null) q.depth.gone(row);
  q.recordSequence(row.key);
  q.sql.exec('DELETE FROM jobs WHERE key = ?', row.key).toArray();
  q.progress.remove(row.key);
  q.checkpoints.remove(row.key);
  if (row.alias !== null) q.sql.exec('DELETE FROM aliases WHERE id = ?', row.alias).toArray();
  forgetRow(q.sql, row);
  if (row.state === STATE.dead && q.deadCount !== null) q.deadCount--;
}
