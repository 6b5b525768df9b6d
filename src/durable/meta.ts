/** Facts about an object itself, in its table `meta`: a key and a JSON value each. */

/** All facts, parsed. */
export function readMeta(sql: SqlStorage): Map<string, unknown> {
  const rows = sql.exec<{ key: string; value: string }>('SELECT key, value FROM meta').toArray();
  return new Map(rows.map(({ key, value }) => [key, JSON.parse(value) as unknown]));
}

/** Writes one fact; undefined removes it. One row written. */
export function writeMeta(sql: SqlStorage, key: string, value: unknown): void {
  if (value === undefined) sql.exec('DELETE FROM meta WHERE key = ?', key).toArray();
  else sql.exec('INSERT OR REPLACE INTO meta (key, value) VALUES (?, ?)', key, JSON.stringify(value)).toArray();
}
