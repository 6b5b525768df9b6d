/** The ids that do not lead to their jobs by themselves: chosen by clients, or brought by jobs from other queues. */
import { rows } from '../../durable/sql';

const PAGE = 1000;

/** Those of these ids that are noted here, including those of operations on many jobs. */
export function knownIds(sql: SqlStorage, ids: readonly string[]): string[] {
  const query = `SELECT id FROM aliases WHERE id IN (SELECT value FROM json_each(?1))
    UNION SELECT id FROM tasks WHERE id IN (SELECT value FROM json_each(?1))`;
  return rows<{ id: string }>(sql, query, JSON.stringify(ids)).map(({ id }) => id);
}

/** The next of them after this one, in order. */
export function chosenIds(sql: SqlStorage, after: string): string[] {
  const query = 'SELECT id FROM aliases WHERE id > ? ORDER BY id LIMIT ?';
  return rows<{ id: string }>(sql, query, after, PAGE).map(({ id }) => id);
}
