/** Finds a job by key: own row, block or archive. Every job that has not completed is returned as a row. */
import { findArchived } from './archive';
import type { Blocks } from './blocks';
import type { CountingSql } from './counting-sql';
import type { JobRow } from './job-row';
import type { JobStore } from './job-store';
import { ownRow, ROW_COLUMNS, readRows } from './own-rows';
import type { ArchivedJob } from './rows';

interface Places {
  readonly sql: SqlStorage;
  readonly blocks: Blocks;
  readonly readAhead: Map<number, JobRow>;
  readonly written: Pick<CountingSql, 'spend'>;
}

/** Characters of bodies that are read ahead at most: they are in memory together. */
const MAX_AHEAD = 2 * 1024 * 1024;

/** The job with this key as a row; undefined when it has completed, or is gone. */
export function rowByKey({ sql, blocks, readAhead, written }: Places, key: number): JobRow | undefined {
  const ahead = readAhead.get(key);
  // It may be changed from now on.
  if (ahead) readAhead.delete(key);
  const row = ahead ?? blocks.row(key) ?? ownRow(sql, key);
  if (row) written.spend(row.body.length);
  return row;
}

/** Reads in one statement the rows that `use` asks for. @param keys of jobs changed only after asking for their rows */
export function withRows<T>({ sql, blocks, readAhead }: Places, keys: readonly number[], use: () => T): T {
  const own = keys.filter((key) => !blocks.holds(key));
  if (own.length > 1) {
    const query = `SELECT ${ROW_COLUMNS} FROM jobs WHERE key IN (SELECT value FROM json_each(?))`;
    let chars = 0;
    for (const row of readRows(sql, query, JSON.stringify(own))) {
      readAhead.set(row.key, row);
      chars += row.body.length;
      if (chars > MAX_AHEAD) break;
    }
  }
  try {
    return use();
  } finally {
    readAhead.clear();
  }
}

export const completedByKey = (store: Pick<JobStore, 'sql' | 'archive'>, key: number): ArchivedJob | undefined =>
  completedByKeys(store, [key]).get(key);

export function completedByKeys(store: Pick<JobStore, 'sql' | 'archive'>, keys: readonly number[]) {
  const found = new Map<number, ArchivedJob>();
  for (const key of keys) {
    const job = store.archive.find(key);
    if (job) found.set(key, job);
  }
  const others = findArchived(
    store.sql,
    keys.filter((key) => !found.has(key)),
  );
  return new Map([...found, ...others]);
}

export type Identity = Pick<JobRow, 'key' | 'alias' | 'state' | 'created_at' | 'due_at' | 'attempt'>;

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
