/**
 * The directory outside of any place knows in which one its deployment was created. A table of its own, so that this
 * is the only row there ever; a deployment without a place has none.
 */
import { put, rows } from '../durable/sql';

type Storage = Pick<DurableObjectStorage, 'sql' | 'transactionSync'>;

/** Where the deployment was created; undefined: without a place, or it has not begun. */
export function placeIn(sql: SqlStorage): string | undefined {
  if (!hasTable(sql, 'place')) return undefined;
  return rows<{ name: string }>(sql, 'SELECT name FROM place')[0]?.name;
}

/** Where the deployment was created: here and now if it has not begun. @returns null: without a place */
export function claimPlace(storage: Storage, name: string): string | null {
  const { sql } = storage;
  return storage.transactionSync(() => {
    const known = placeIn(sql);
    if (known !== undefined) return known;
    if (hasTable(sql, 'queues') && rows(sql, 'SELECT 1 FROM queues LIMIT 1').length > 0) return null;
    sql.exec('CREATE TABLE place (name TEXT NOT NULL)').toArray();
    put(sql, 'place', { name });
    return name;
  });
}

function hasTable(sql: SqlStorage, name: string): boolean {
  return rows(sql, "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?", name).length > 0;
}
