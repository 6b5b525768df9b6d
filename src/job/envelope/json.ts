/** JSON of clients: parsed, and refused where it could not be stored and given back as it was. */
import { type ApiError, invalidPayload, invalidPolicy } from '../errors';
import { isObject } from './fields';
import { BEYOND_DOUBLES, type Unstorable, unstorable } from './json-text';
import { MAX_DEPTH, type Outline, outlineOf } from './nesting';

/** Turns text into a value: `parsePayloads` where it holds jobs or reports. */
export type ReadText = (text: string, outline: Outline) => unknown;

/** Parses one JSON object. @throws {ApiError} as {@link parseJson}, and when it is none */
export function parseJsonObject(text: string, read?: ReadText): Record<string, unknown> {
  const value = parseJson(text, read);
  if (isObject(value)) return value;
  throw notAnObject();
}

/** 400: JSON, but no object. */
export const notAnObject = () => invalidPayload('The body must be a JSON object.');

/**
 * Parses JSON, and refuses what could not be stored as it is.
 * @param read what turns text into a value
 * @throws {ApiError} 400 for bad JSON, too much nesting, or a value that would not survive being stored
 */
export function parseJson(text: string, read: ReadText = (text) => JSON.parse(text)): unknown {
  const outline = outlineOf(text, MAX_DEPTH);
  if (outline.depth > MAX_DEPTH) {
    throw invalidPayload(`The body nests more than ${MAX_DEPTH} levels deep.`, { max_depth: MAX_DEPTH });
  }
  let value: unknown;
  try {
    value = read(text, outline);
  } catch {
    throw invalidPayload('The body is not valid JSON.');
  }
  const problem = unstorable(text, value, outline);
  if (problem !== undefined) throw refusalOf(problem);
  return value;
}

/** Members that hold whatever a client likes, other policies than those of jobs too. */
const FREE: ReadonlySet<string> = new Set(['args', 'meta', 'metadata', 'result', 'data', 'state', 'details']);

/** A number that is too large for its policy is the policy's mistake; its text is still JSON. */
function refusalOf({ what, path }: Unstorable): ApiError {
  const names = path.map(String);
  const policy = names.findIndex((name) => name === 'retry' || name === 'default_retry');
  const isOfPolicy = policy >= 0 && !names.slice(0, policy).some((name) => FREE.has(name));
  if (isOfPolicy && what === BEYOND_DOUBLES) return invalidPolicy(pathOf(path.slice(policy)), `must not be ${what}`);
  const field = path.length > 0 ? { field: pathOf(path) } : {};
  return invalidPayload(`The body contains ${what}.`, field);
}

function pathOf(path: readonly (string | number)[]): string {
  return path
    .map((name) => (typeof name === 'number' ? `[${name}]` : `.${name}`))
    .join('')
    .replace(/^\./, '');
}
