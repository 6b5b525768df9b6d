/** Ending a job otherwise than by success: its row stays, out of every queue, until its retention has passed. */

import type { JobHistory } from '../../job/record';
import type { End } from '../../job/retention';
import { DEFAULTS } from '../../job/settings';
import { noteFailure } from '../features/workflow/outbox';
import { rowByKey } from '../read/find';
import type { QueueState } from '../state';
import { oldestEnded } from '../store/ended-rows';
import { historyOf, idOf, type JobRow, STATE } from '../store/rows';
import { forgetRow } from '../store/unique-keys';
import { keptUntil } from './keep';

type Ended = typeof STATE.cancelled | typeof STATE.discarded | typeof STATE.dead;

/**
 * Writes a terminal state. Two rows written (the row and its entry in the index of ended jobs), three for a job with a
 * retention of its own for this end.
 * The caller accounts for lease, line and events.
 */
export function end(q: QueueState, row: JobRow, state: Ended, history: JobHistory, now: number): void {
  const kind: End = state === STATE.cancelled ? 'cancelled' : state === STATE.dead ? 'dead_letter' : 'discarded';
  const own = keptUntil(row, kind, now);
  q.sql
    .exec(
      `UPDATE jobs SET state = ?, attempt = ?, claims = ?, due_at = NULL, waits_since = NULL, ended_at = ?, keep_until = ?,
       history = ? WHERE key = ?`,
      state,
      row.attempt,
      row.claims,
      now,
      own ?? null,
      JSON.stringify(history),
      row.key,
    )
    .toArray();
  q.depth.gone(row);
  q.wake(own ?? now + q.retentionMs(kind));
  noteFailure(q, row, state === STATE.cancelled, history, now);
  if (state === STATE.dead) capDeadLetters(q);
}

/** Discards a job that has no run to fail, and says so in the live feed. The caller accounts for its place. */
export function discardUnrun(q: QueueState, row: JobRow, reason: 'queue_full' | 'rate_limited', now: number): void {
  end(q, row, STATE.discarded, { ...historyOf(row), discarded_at: now, reason }, now);
  q.events.add('job.discarded', idOf(q.route, row), now, {
    job_type: row.type,
    attempt: row.attempt,
    reason,
    dead_letter: false,
  });
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
  for (const key of oldestEnded(q.sql, STATE.dead, surplus)) {
    const row = rowByKey(q, key);
    if (row) removeEnded(q, row);
  }
}

/** Deletes a row that has ended, for good. One that is on its way to another queue goes when it has arrived. */
export function removeEnded(q: QueueState, row: JobRow): void {
  if (q.moves.of(row.key)) return;
  if (row.ended_at === null) q.depth.gone(row);
  q.recordSequence(row.key);
  q.sql.exec('DELETE FROM jobs WHERE key = ?', row.key).toArray();
  q.progress.remove(row.key);
  q.checkpoints.remove(row.key);
  if (row.alias !== null) q.sql.exec('DELETE FROM aliases WHERE id = ?', row.alias).toArray();
  forgetRow(q.sql, row);
  if (row.state === STATE.dead && q.deadCount !== null) q.deadCount--;
}
