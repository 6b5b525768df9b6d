import type { JobRow } from './job-row';

const INSERT = `INSERT INTO jobs
  (key, alias, state, type, priority, due_at, attempt, claims, created_at, enqueued_at, expires_at, body, history,
   limit_key, ended_at, holds_group, keep_until, meters)
  VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`;

/**
 * Writes a job without a row. @param keepUntil end of its own retention, epoch ms @param metersText text carried by the
 * row
 */
export function writeRow(
  sql: SqlStorage,
  row: JobRow,
  keepUntil: number | null = null,
  metersText: string | null = null,
): void {
  sql
    .exec(
      INSERT,
      ...[row.key, row.alias, row.state, row.type, row.priority, row.due_at, row.attempt, row.claims, row.created_at],
      ...[row.enqueued_at, row.expires_at, row.body, row.history, row.limit_key, row.ended_at],
      row.holds_group,
      keepUntil,
      metersText,
    )
    .toArray();
}
