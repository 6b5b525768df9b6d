/** Reads thrown values, which may be anything (a revoked proxy, throwing getters). These functions never throw. */

/** What `read` returns, or `otherwise` if it throws. */
export function safely<T>(read: () => T, otherwise: T): T {
  try {
    return read();
  } catch {
    return otherwise;
  }
}

/** `thrown instanceof type`, for any value. */
export const isA = <T>(thrown: unknown, type: abstract new (...args: never[]) => T): thrown is T =>
  safely(() => thrown instanceof type, false);

/** The tag of `Object.prototype.toString`, such as `Error` or `Response`. It is the same in every realm. */
export const tagOf = (value: unknown): string =>
  safely(() => Object.prototype.toString.call(value).slice('[object '.length, -1), 'Object');

/** Is it an error of any realm? Those of `node:vm` contexts and test runners are not an `instanceof` this realm's. */
export const isError = (value: unknown): value is Error => isA(value, Error) || tagOf(value) === 'Error';

/** A member of an object; undefined if it cannot be read. */
export function memberOf(thrown: unknown, name: PropertyKey): unknown {
  if (typeof thrown !== 'object' || thrown === null) return undefined;
  return safely(() => Reflect.get(thrown, name), undefined);
}

export function messageOf(thrown: unknown): string {
  const message = memberOf(thrown, 'message');
  if (typeof message === 'string') return message;
  if (isError(thrown)) return message === undefined ? '' : textOf(message);
  return textOf(thrown);
}

function textOf(value: unknown): string {
  if (typeof value === 'string') return value;
  const json = typeof value === 'object' ? safely(() => JSON.stringify(value), undefined) : undefined;
  return json ?? safely(() => String(value), 'a value that cannot be read');
}

/** Ignores the rejection of a promise that other code returned where nothing awaits it. */
export function ignoreRejection(returned: unknown): void {
  if (isA(returned, Promise)) safely(() => returned.catch(() => undefined), undefined);
}

/** What `read` gives. @param otherwise what is thrown in the place of what it throws */
export function orThrow<T>(read: () => T, otherwise: (thrown: unknown) => Error): T {
  try {
    return read();
  } catch (thrown) {
    throw otherwise(thrown);
  }
}
