/** Texts of a handler, before they are sent: shortened, and JSON or refused. */

/** The text, unless it is empty or none. */
export function stringOf(value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' ? value : undefined;
}

/** Shortens a text and replaces half surrogate pairs, which the queue would refuse. */
export function clip(value: string, length: number): string {
  const short = value.length > length ? `${value.slice(0, length - 1)}…` : value;
  return short.replace(/\p{Surrogate}/gu, '\uFFFD');
}

/**
 * The value as it is after a way over the wire, so that later changes to it do not matter. A value without JSON, such
 * as undefined, is undefined.
 * @throws {TypeError} when it cannot be JSON
 */
export function jsonCopy(value: unknown, what: string): unknown {
  let text: string | undefined;
  try {
    text = JSON.stringify(value);
  } catch (error) {
    throw new TypeError(`${what} is not JSON: ${error instanceof Error ? error.message : String(error)}`);
  }
  if (text === undefined && value !== undefined) throw new TypeError(`${what} is not JSON: it is a ${typeof value}`);
  return text === undefined ? undefined : JSON.parse(text);
}
