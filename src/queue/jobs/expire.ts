/** Jobs whose time passed before they ran, or that find no room: discarded without a run, never as dead letters. */
import { LIMIT, rows, rowsUntil } from '../../durable/sql';
import { historyOf, type JobRow, STATE } from '../store/job-row';
import { move } from '../store/jobs';
import type { QueueParts, Stored } from '../store/parts';
import { rowByKey } from '../store/row-lookup';
import { isTooLate } from '../store/rows';

/** Has the job expired before it ran? A running job is skipped: expiry forbids a start, not an end. */
export function hasExpired(q: Stored, row: JobRow, now: number): boolean {
  if (!isTooLate(row, now) || row.ended_at !== null) return false;
  return row.state !== STATE.held && !q.store.leases.active.has(row.key);
}

export function expire(q: QueueParts, row: JobRow, now: number): void {
  const history = { ...historyOf(row), discarded_at: now, reason: 'expired' };
  move(q, row, 'expire', { state: STATE.discarded, history }, now);
}

export function drop(
  q: QueueParts,
  row: JobRow,
  reason: 'queue_full' | 'group_full' | 'rate_limited',
  now: number,
): void {
  move(q, row, 'drop', { state: STATE.discarded, history: { ...historyOf(row), discarded_at: now, reason } }, now);
}

export function expireIfDue(q: QueueParts, key: number, now: number): void {
  const row = rowByKey(q.store, key);
  if (row && hasExpired(q, row, now)) expire(q, row, now);
}

/** Discards a bounded number of expired waiting jobs, continuing by `Expiry`. Free while none can have expired. */
export function expireDue(q: QueueParts, now: number): void {
  if (now < q.store.expiry.next) return;
  const { expiry, turn } = q.store;
  const due = `SELECT key, expires_at AS at FROM jobs
    WHERE expires_at <= ? AND (expires_at, key) > (?, ?) AND ended_at IS NULL ORDER BY expires_at, key ${LIMIT}`;
  const place = [expiry.next, expiry.untilKey];
  const most = turn.share;
  const found = rows<{ key: number; at: number }>(q.store.sql, due, now, ...place, most);
  let last: (typeof found)[number] | undefined;
  for (last of turn.draw(found, most)) expireIfDue(q, last.key, now);
  if (last && (found.length === most || last !== found.at(-1))) {
    expiry.goOnAt(last.at, last.key);
    return;
  }
  const first = 'SELECT min(expires_at) AS at FROM jobs WHERE expires_at > ? AND ended_at IS NULL';
  expiry.goOnAt(q.store.sql.exec<{ at: number | null }>(first, now).one().at ?? Number.POSITIVE_INFINITY);
}

/** Expired waiting jobs that are not done yet, in the order of expiry. Reads nothing while none can have expired. */
export function* expiredRows(q: Stored, now: number): Generator<JobRow> {
  if (now < q.store.expiry.next) return;
  const due = 'SELECT key FROM jobs WHERE expires_at <= ? AND ended_at IS NULL ORDER BY expires_at, key';
  for (const { key } of rowsUntil<{ key: number }>(q.store.sql, due, now)) {
    const row = rowByKey(q.store, key);
    if (row && hasExpired(q, row, now)) yield row;
  }
}
