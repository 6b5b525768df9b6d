/** The order of the due index, over rows of jobs and over blocks: priority, then the moment, the attempt, the key. */
import { cell } from '../../durable/sql';
import type { JobRow } from './job-row';

/** Position of a job among those of its priority. */
export interface Position {
  at: number;
  attempt: number;
  key: number;
}

export const START: Position = { at: Number.MIN_SAFE_INTEGER, attempt: -1, key: -1 };

/** After all that become available up to this moment, epoch ms. */
export const afterAllAt = (at: number): Position => ({ at, attempt: Number.MAX_SAFE_INTEGER, key: 0 });

export const compare = (a: Position, b: Position): number => a.at - b.at || a.attempt - b.attempt || a.key - b.key;

export const positionOf = ({ due_at, attempt, key }: Pick<JobRow, 'due_at' | 'attempt' | 'key'>): Position => ({
  at: due_at as number,
  attempt,
  key,
});

/** Where a job stands in the line, which is in the order of its numbers. */
export const positionInLine = ({ enqueued_at, key }: Pick<JobRow, 'enqueued_at' | 'key'>): Position => ({
  at: enqueued_at,
  attempt: 0,
  key,
});

export const compareInLine = (a: Position, b: Position): number => a.key - b.key;

type Table = 'jobs' | 'due_blocks';

/** Priorities present in the index of a table: one seek each. */
export function prioritiesIn(sql: SqlStorage, table: Table): number[] {
  const found: number[] = [];
  const next = `SELECT max(priority) FROM ${table} WHERE due_at IS NOT NULL AND priority < ?`;
  for (let below: number | undefined = 1000; below !== undefined; ) {
    below = cell<number>(sql, next, below);
    if (below !== undefined) found.push(below);
  }
  return found;
}

/** The first moment after `now` in the index of a table, epoch ms. */
export const nextIn = (sql: SqlStorage, table: Table, priority: number, now: number): number | undefined =>
  cell(sql, `SELECT due_at FROM ${table} WHERE priority = ? AND due_at > ? ORDER BY due_at LIMIT 1`, priority, now);
