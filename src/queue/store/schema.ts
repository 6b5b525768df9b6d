/** Applies the numbered schema files of `migrations/` in one transaction, each once. */
import schema0001 from '../../../migrations/0001_queue.sql';
import schema0002 from '../../../migrations/0002_pull.sql';
import schema0003 from '../../../migrations/0003_cron.sql';
import schema0004 from '../../../migrations/0004_workflow.sql';
import schema0005 from '../../../migrations/0005_operations.sql';
import schema0006 from '../../../migrations/0006_limits.sql';
import schema0007 from '../../../migrations/0007_job_retention.sql';
import schema0008 from '../../../migrations/0008_courier.sql';

/** In order; never edited once released. */
const MIGRATIONS: readonly string[] = [
  schema0001,
  schema0002,
  schema0003,
  schema0004,
  schema0005,
  schema0006,
  schema0007,
  schema0008,
];

/** The version of a database that has none of the tables yet. */
function versionOf(sql: SqlStorage): number {
  const hasMeta = sql.exec("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'meta'").toArray().length > 0;
  if (!hasMeta) return 0;
  const row = sql.exec<{ value: string }>("SELECT value FROM meta WHERE key = 'schema'").toArray()[0];
  return row ? Number(JSON.parse(row.value)) : 0;
}

/** Has this object ever been written to? */
export function isInitialised(sql: SqlStorage): boolean {
  return versionOf(sql) > 0;
}

/** Brings the database up to date. Writes nothing when it is. */
export function migrate(storage: DurableObjectStorage): void {
  const from = versionOf(storage.sql);
  if (from >= MIGRATIONS.length) return;
  storage.transactionSync(() => {
    for (const migration of MIGRATIONS.slice(from)) storage.sql.exec(migration).toArray();
    writeMeta(storage.sql, 'schema', MIGRATIONS.length);
  });
}

/** All facts of `meta`, parsed. */
export function readMeta(sql: SqlStorage): Map<string, unknown> {
  const rows = sql.exec<{ key: string; value: string }>('SELECT key, value FROM meta').toArray();
  return new Map(rows.map(({ key, value }) => [key, JSON.parse(value) as unknown]));
}

/** Writes one fact; undefined removes it. One row written. */
export function writeMeta(sql: SqlStorage, key: string, value: unknown): void {
  if (value === undefined) sql.exec('DELETE FROM meta WHERE key = ?', key).toArray();
  else sql.exec('INSERT OR REPLACE INTO meta (key, value) VALUES (?, ?)', key, JSON.stringify(value)).toArray();
}
