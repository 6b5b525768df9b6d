/** SQL helpers of all objects. Statements are run to their end, because their cursors may continue lazily. */

type Row = Record<string, SqlStorageValue>;

/** `LIMIT ?` of a frequent query: SQLite prepares a statement again per bound limit, but does not inspect a sum. */
export const LIMIT = 'LIMIT ?+0';

/** The rows of a query; none of a statement that only writes. */
export const rows = <T extends Row>(sql: SqlStorage, statement: string, ...bindings: SqlStorageValue[]): T[] =>
  sql.exec<T>(statement, ...bindings).toArray();

/** Rows that {@link rowsUntil} reads at once. */
const MAX_PART = 1_024;

/**
 * The rows of a query that may be left before its end, read in growing parts: a cursor that is left keeps what was
 * written since from going out of the write-ahead log, until it is collected. Between parts nothing may change them.
 * @param query without a limit
 */
export function* rowsUntil<T extends Row>(
  sql: SqlStorage,
  query: string,
  ...bindings: SqlStorageValue[]
): Generator<T, void> {
  for (let [from, size] = [0, 1]; ; from += size, size = Math.min(4 * size, MAX_PART)) {
    const part = rows<T>(sql, `${query} ${LIMIT} OFFSET ?+0`, ...bindings, size, from);
    yield* part;
    if (part.length < size) return;
  }
}

export function firstRow<T extends Row>(sql: SqlStorage, query: string, ...bindings: SqlStorageValue[]): T | undefined {
  return rows<T>(sql, query, ...bindings)[0];
}

export function column<T extends SqlStorageValue>(sql: SqlStorage, query: string, ...bindings: SqlStorageValue[]): T[] {
  return Array.from(sql.exec(query, ...bindings).raw<[T]>(), ([value]) => value);
}

/** The only value of a query; undefined where there is no row, or null in it. */
export const cell = <T extends SqlStorageValue>(
  sql: SqlStorage,
  query: string,
  ...bindings: SqlStorageValue[]
): T | undefined => column<T | null>(sql, query, ...bindings)[0] ?? undefined;

/** Parses a stored text; undefined where it is damaged: that must not stop its object. */
export function parseStored(text: string, parse: (text: string) => unknown = JSON.parse): unknown {
  try {
    return parse(text);
  } catch {
    return undefined;
  }
}

/** Writes a row, replacing the one with the same key. One row written, and one for each index. */
export function put(sql: SqlStorage, table: string, row: Row): void {
  const names = Object.keys(row);
  const places = names.map(() => '?').join(', ');
  rows(sql, `INSERT OR REPLACE INTO ${table} (${names.join(', ')}) VALUES (${places})`, ...Object.values(row));
}

/** The facts about an object itself, in its table `meta`: by key, parsed from JSON. */
export function readMeta(sql: SqlStorage): Map<string, unknown> {
  const facts = rows<{ key: string; value: string }>(sql, 'SELECT key, value FROM meta');
  return new Map(facts.map(({ key, value }) => [key, JSON.parse(value) as unknown]));
}

export function readFact<T>(sql: SqlStorage, key: string): T | undefined {
  const [found] = rows<{ value: string }>(sql, 'SELECT value FROM meta WHERE key = ?', key);
  return found && (JSON.parse(found.value) as T);
}

/** Writes one fact; undefined removes it. One row written. */
export function writeMeta(sql: SqlStorage, key: string, value: unknown): void {
  if (value === undefined) rows(sql, 'DELETE FROM meta WHERE key = ?', key);
  else put(sql, 'meta', { key, value: JSON.stringify(value) });
}

export interface Fragment {
  sql: string;
  bindings: (string | number)[];
}

/** Values in one binding: numbers of 13 digits then take 1.4 MB, and a value holds 2 MB. */
const LISTED = 100_000;

/** A list for `IN`, however long. Short ones all have the same text, so their statements are prepared once. */
export function listed(values: Iterable<number>): Fragment {
  const all = [...values];
  const bindings: string[] = [];
  for (let from = 0; from === 0 || from < all.length; from += LISTED) {
    bindings.push(JSON.stringify(all.slice(from, from + LISTED)));
  }
  return { sql: `(${bindings.map(() => 'SELECT value FROM json_each(?)').join(' UNION ALL ')})`, bindings };
}
