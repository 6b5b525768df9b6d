/**
 * Where a job is, asked by its key: in a row of its own, in a block, or in the archive. What waits, runs, or ended otherwise
 * than by success is told as a row, wherever it lies.
 */
import { findArchived } from './archive';
import type { Blocks } from './blocks';
import { type JobRow, ownRow } from './columns';
import type { ArchivedJob } from './rows';
import type { QueueState } from './state';

interface Places {
  readonly sql: SqlStorage;
  readonly blocks: Blocks;
}

/** The job with this key as a row; undefined when it has completed, or is no more. */
export function rowByKey({ sql, blocks }: Places, key: number): JobRow | undefined {
  return blocks.row(key) ?? ownRow(sql, key);
}

/** The completed job with this key, also one that this transaction has completed. */
export function completedByKey(q: Pick<QueueState, 'sql' | 'archive'>, key: number): ArchivedJob | undefined {
  return q.archive.find(key) ?? findArchived(q.sql, key);
}

/** What tells jobs apart, and no body. */
export type Identity = Pick<JobRow, 'key' | 'alias' | 'state' | 'created_at' | 'due_at' | 'attempt'>;

/** The jobs with these keys that have not completed. */
export function identitiesOf({ sql, blocks }: Places, keys: readonly number[]): Map<number, Identity> {
  const found = new Map<number, Identity>();
  const own = sql.exec<Identity>(
    'SELECT key, alias, state, created_at, due_at, attempt FROM jobs WHERE key IN (SELECT value FROM json_each(?))',
    JSON.stringify(keys),
  );
  for (const row of own) found.set(row.key, row);
  for (const key of keys) {
    const head = found.has(key) ? undefined : blocks.head(key);
    if (head) found.set(key, head);
  }
  return found;
}
