/** Jobs whose time passed before they ran: discarded without a run, never as dead letters. */

import { rowByKey } from '../read/find';
import type { QueueState } from '../state';
import { waitsNoMore } from '../store/limits/admit';
import { historyOf, idOf, isInLine, type JobRow, STATE } from '../store/rows';
import { end } from './end';

/** Discards one waiting row that has expired. */
export function expire(q: QueueState, row: JobRow, now: number): void {
  const wasInLine = isInLine(row);
  waitsNoMore(q, row);
  end(q, row, STATE.discarded, { ...historyOf(row), discarded_at: now, reason: 'expired' }, now);
  if (wasInLine && q.lineLength !== null) q.lineLength--;
  q.events.add('job.expired', idOf(q.route, row), now, { job_type: row.type, attempt: row.attempt, reason: 'expired' });
}

/** Rows looked at in one go. */
const STEP = 500;

/**
 * Discards waiting jobs that have expired. A job that runs is left alone: expiry forbids a start, not an end.
 * Costs nothing while no job can have expired.
 */
export function expireDue(q: QueueState, now: number): void {
  if (now < q.nextExpiry) return;
  let after = { at: Number.MIN_SAFE_INTEGER, key: 0 };
  for (;;) {
    const rows = q.sql
      .exec<{ key: number; at: number }>(
        `SELECT key, expires_at AS at FROM jobs
         WHERE expires_at <= ? AND (expires_at, key) > (?, ?) AND ended_at IS NULL AND state <> ${STATE.held}
         ORDER BY expires_at, key LIMIT ?`,
        now,
        after.at,
        after.key,
        STEP,
      )
      .toArray();
    for (const { key } of rows) {
      const row = q.leases.active.has(key) ? undefined : rowByKey(q, key);
      if (row) expire(q, row, now);
    }
    const last = rows.at(-1);
    if (rows.length < STEP || !last) break;
    after = last;
  }
  const next = q.sql
    .exec<{ at: number | null }>(
      'SELECT min(expires_at) AS at FROM jobs WHERE expires_at > ? AND ended_at IS NULL',
      now,
    )
    .one().at;
  q.nextExpiry = next ?? Number.POSITIVE_INFINITY;
}
