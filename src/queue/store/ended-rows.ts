/**
 * Rows of jobs that ended otherwise than by success, in the order in which they go. The index keeps those apart that say
 * themselves how long they are kept, so each kind is read from its own front.
 */
import type { JobRow } from './columns';

/** The index finds this expression only as it stands in the schema. */
const AS_QUEUE_SAYS = '(keep_until IS NULL) = 1';
const AS_JOB_SAYS = '(keep_until IS NULL) = 0';

/** Keys of the oldest rows in `state` that their queue's retention removes, ended at or before `cutoff`. */
export function endedBefore(sql: SqlStorage, state: number, cutoff: number, limit: number): number[] {
  return keysOf(
    sql.exec<{ key: number }>(
      `SELECT key FROM jobs WHERE state = ? AND ${AS_QUEUE_SAYS} AND ended_at <= ? ORDER BY ended_at LIMIT ?`,
      state,
      cutoff,
      limit,
    ),
  );
}

/** When the first row in `state` ended that its queue's retention removes, epoch ms. */
export function firstEnded(sql: SqlStorage, state: number): number | undefined {
  const first = `SELECT min(ended_at) AS at FROM jobs WHERE state = ? AND ${AS_QUEUE_SAYS} AND ended_at IS NOT NULL`;
  return sql.exec<{ at: number | null }>(first, state).one().at ?? undefined;
}

/** Keys of rows that were to be kept until `now`, the first to go first. */
export function keptBefore(sql: SqlStorage, now: number, limit: number): number[] {
  return keysOf(
    sql.exec<{ key: number }>(
      'SELECT key FROM jobs WHERE keep_until <= ? AND ended_at IS NOT NULL ORDER BY keep_until LIMIT ?',
      now,
      limit,
    ),
  );
}

/** When the first row goes that says itself how long it is kept, epoch ms. */
export function firstKeptRow(sql: SqlStorage): number | undefined {
  const first = 'SELECT min(keep_until) AS at FROM jobs WHERE keep_until IS NOT NULL AND ended_at IS NOT NULL';
  return sql.exec<{ at: number | null }>(first).one().at ?? undefined;
}

/** Keys of the oldest rows in `state`, however long they are to be kept. */
export function oldestEnded(sql: SqlStorage, state: number, limit: number): number[] {
  const part = (kind: string) =>
    `SELECT key, ended_at FROM jobs WHERE state = ${state} AND ${kind} AND ended_at IS NOT NULL`;
  const both = `${part(AS_QUEUE_SAYS)} UNION ALL ${part(AS_JOB_SAYS)}`;
  return keysOf(sql.exec<{ key: number }>(`${both} ORDER BY ended_at LIMIT ?`, limit));
}

/** Rows in `state` that ended from `since` on and before `until` (epoch ms), the newest first. Read one at a time. */
export function newestEnded(sql: SqlStorage, state: number, since: number, until: number): Iterable<JobRow> {
  const part = (kind: string) =>
    `SELECT * FROM jobs WHERE state = ${state} AND ${kind} AND ended_at >= ?1 AND ended_at < ?2`;
  const both = `${part(AS_QUEUE_SAYS)} UNION ALL ${part(AS_JOB_SAYS)}`;
  return sql.exec<JobRow>(`${both} ORDER BY ended_at DESC, key DESC`, since, until);
}

function keysOf(rows: Iterable<{ key: number }>): number[] {
  return Array.from(rows, ({ key }) => key);
}
