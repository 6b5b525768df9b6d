/** Makes storage fail once, at a statement of one's choice. */

/**
 * The next statement in this storage that matches `pattern` throws instead of running. Call it inside the object.
 * @param after statements that match and still run before
 */
export function failOnce(sql: SqlStorage, pattern: RegExp, after = 0): void {
  const exec = sql.exec;
  let left = after;
  sql.exec = ((query: string, ...bindings: unknown[]) => {
    if (pattern.test(query) && left-- === 0) {
      sql.exec = exec;
      throw new Error(`storage failed at: ${query.trim().slice(0, 60)}`);
    }
    return exec.call(sql, query, ...bindings);
  }) as SqlStorage['exec'];
}

/**
 * Every statement in this storage that matches `pattern` throws instead of running. Call it inside the object.
 * @param spares asked at each of them: may it run all the same?
 * @param message of the runtime; absent: one that names the statement
 * @returns ends that
 */
export function failAlways(sql: SqlStorage, pattern: RegExp, spares = () => false, message?: string): () => void {
  const exec = sql.exec;
  sql.exec = ((query: string, ...bindings: unknown[]) => {
    if (pattern.test(query) && !spares()) throw new Error(message ?? `storage fails at: ${query.trim().slice(0, 60)}`);
    return exec.call(sql, query, ...bindings);
  }) as SqlStorage['exec'];
  return () => {
    sql.exec = exec;
  };
}

/** Bytes of a value, and of a row, that the platform takes at most; the runtime on a developer's machine takes more. */
export const MAX_VALUE = 2_000_000;

/** Where less is bound to a statement, its row is looked at only if SQLite puts it together, bytes. */
const LONG = 64 * 1024;

const REFUSES = Symbol('refuses large values');

/**
 * From now on this storage refuses values and rows that the platform would refuse, also those that SQLite itself puts together.
 * Given the prototype of all storage, all of it does: `platform.ts` sees to that for every test.
 */
export function refuseLargeValues(sql: Pick<SqlStorage, 'exec'> & { [REFUSES]?: true }): void {
  if (sql[REFUSES]) return;
  sql[REFUSES] = true;
  const { exec } = sql;
  sql.exec = function (this: SqlStorage, query: string, ...bindings: unknown[]) {
    const sizes = bindings.map(bytesOf);
    const isLong = sum(sizes) > LONG;
    if (!isLong && !mayGrow(query)) return exec.call(this, query, ...bindings);
    const refuse = () => {
      throw new Error(`a value is too big for: ${query.trim().slice(0, 60)}`);
    };
    // An `INSERT` of values writes one row, a list is read.
    const isRow = /^\s*INSERT/.test(query) && !query.includes('json_each');
    if (isRow ? sum(sizes) > MAX_VALUE : sizes.some((size) => size > MAX_VALUE)) refuse();
    const place = placeOf(query, bindings);
    const cursor = exec.call(this, query, ...bindings);
    if (!place) return cursor;
    const [table, where, ...bound] = place;
    const columns = exec.call(this, 'SELECT name FROM pragma_table_info(?)', table).toArray();
    const bytes = columns.map(({ name }) => `coalesce(length(CAST(${name} AS BLOB)), 0)`).join(' + ');
    const [row] = exec.call(this, `SELECT ${bytes} AS bytes FROM ${table} WHERE ${where}`, ...bound).toArray();
    if (row && (row.bytes as number) > MAX_VALUE) refuse();
    return cursor;
  } as SqlStorage['exec'];
}

/** By text of a statement: there are a few hundred, which run by the million. */
const growing = new Map<string, boolean>();

/** SQLite puts together what it writes. */
function mayGrow(query: string): boolean {
  const known = growing.get(query) ?? (query.includes('||') || query.includes('json_set'));
  growing.set(query, known);
  return known;
}

const sum = (sizes: readonly number[]): number => sizes.reduce((total, size) => total + size, 0);

function bytesOf(value: unknown): number {
  if (typeof value === 'string')
    return value.length * 3 <= LONG ? value.length : new TextEncoder().encode(value).length;
  return value instanceof ArrayBuffer || ArrayBuffer.isView(value) ? value.byteLength : 0;
}

/** Where the row is that a statement writes and may make too large: its table, a condition, and what is bound in that. */
function placeOf(query: string, bindings: unknown[]): [string, string, ...unknown[]] | undefined {
  const [, updated, where] = /^\s*UPDATE (\w+) SET\s.*\sWHERE\s(.*?)(?:\sRETURNING\s.*)?$/s.exec(query) ?? [];
  if (updated && where) {
    return [updated, where, ...bindings.slice(bindings.length - where.split('?').length + 1)];
  }
  const [, inserted, key] = /^\s*INSERT (?:OR REPLACE )?INTO (\w+) \((\w+)[^()]*\)\s+VALUES/s.exec(query) ?? [];
  return inserted && key ? [inserted, `${key} IS ?`, bindings[0]] : undefined;
}

/** Answers what `run` rejects with. @throws when it does not reject */
export async function failureOf(run: Promise<unknown>): Promise<Error> {
  const error = await run.then(
    () => undefined,
    (reason: unknown) => reason as Error,
  );
  if (!error) throw new Error('expected a failure');
  return error;
}
