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
 * @returns ends that
 */
export function failAlways(sql: SqlStorage, pattern: RegExp, spares = () => false): () => void {
  const exec = sql.exec;
  sql.exec = ((query: string, ...bindings: unknown[]) => {
    if (pattern.test(query) && !spares()) throw new Error(`storage fails at: ${query.trim().slice(0, 60)}`);
    return exec.call(sql, query, ...bindings);
  }) as SqlStorage['exec'];
  return () => {
    sql.exec = exec;
  };
}

/** Bytes of a value that the platform takes at most; the runtime on a developer's machine takes more. */
const MAX_VALUE = 2_000_000;

/** @throws when the platform would take no such value */
export function refuseLarge(query: string, bindings: readonly unknown[]): void {
  for (const value of bindings) {
    const isLarge =
      typeof value === 'string'
        ? // A UTF-16 unit is three bytes at most: what is short needs no counting.
          value.length > MAX_VALUE / 3 && new TextEncoder().encode(value).length > MAX_VALUE
        : value instanceof ArrayBuffer && value.byteLength > MAX_VALUE;
    if (isLarge) throw new Error(`a value is too big for: ${query.trim().slice(0, 60)}`);
  }
}

/** From now on this storage refuses values that the platform would refuse. Call it inside the object. */
export function refuseLargeValues(sql: SqlStorage): void {
  const exec = sql.exec;
  sql.exec = ((query: string, ...bindings: unknown[]) => {
    refuseLarge(query, bindings);
    return exec.call(sql, query, ...bindings);
  }) as SqlStorage['exec'];
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
