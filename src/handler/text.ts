/** Texts of a handler, before they are sent: shortened, and JSON or refused. */
import { messageOf } from '../job/thrown';
import { emptiedProblem } from '../producer/emptied';

/** Shortens a text and replaces half surrogate pairs, which the queue would refuse. */
export function clip(value: string, length: number): string {
  const short = value.length > length ? `${value.slice(0, length - 1)}…` : value;
  return short.replace(/\p{Surrogate}/gu, '\uFFFD');
}

/** Does JSON text that `JSON.stringify` has written hold half of a character? It writes whole ones as they are. */
export function hasHalfCharacter(json: string): boolean {
  if (!json.includes('\\u')) return false;
  // A backslash that is escaped itself does not begin an escape.
  return (json.match(/\\(?:u[dD][89a-fA-F]|.)/g) ?? []).some((found) => found.length > 2);
}

/** Did JSON nest so deeply that it could not be written? */
export const isOverflow = (error: unknown): boolean =>
  error instanceof Error && /call stack|recursion/i.test(error.message);

/** The value as JSON carries it; undefined if it has no JSON. @throws {TypeError} when it cannot be JSON */
export function jsonCopy(value: unknown, what: string): unknown {
  const problem = emptiedProblem(value, what);
  if (problem !== undefined) throw new TypeError(problem);
  let text: string | undefined;
  try {
    text = JSON.stringify(value);
  } catch (error) {
    throw new TypeError(`${what} is not JSON: ${messageOf(error)}`);
  }
  return text === undefined ? undefined : JSON.parse(text);
}
