/** What a stored value must be: JSON of bounded nesting, with whole characters and finite numbers. */
import type { ApiError } from '../errors';
import { isRawNumber } from './exact';
import { isDeeperThan, MAX_DEPTH, TOO_DEEP } from './nesting';

/** What keeps a value from being stored, as the code of a failed run ends with it. */
export type Flaw = 'too_deep' | 'not_text' | 'out_of_range';

/** What follows the name of a value in its refusal. */
export const FLAWS: Readonly<Record<Flaw, string>> = {
  too_deep: `nests more than ${MAX_DEPTH} levels deep`,
  not_text: 'contains a lone surrogate: half of a character such as an emoji, cut in two',
  out_of_range: 'contains a number beyond the range of doubles',
};

export interface Unstorable {
  flaw: Flaw;
  path: (string | number)[];
}

/** A part of a list that cannot be stored; the other parts are still read. */
export class RefusedPart {
  readonly #error: ApiError;

  constructor(
    readonly part: unknown,
    error: ApiError,
  ) {
    this.#error = error;
  }

  get error(): ApiError {
    return this.#error;
  }
}

interface Reached {
  item: unknown;
  depth: number;
  name?: string | number;
  from?: Reached;
}

/** What in a value cannot be stored, if anything; no recursion. @param mayBeTorn halves of surrogate pairs pass */
export function unstorableIn(value: unknown, maxDepth = MAX_DEPTH, mayBeTorn = false): Unstorable | undefined {
  const stack: Reached[] = [{ item: value, depth: 0 }];
  for (let at = stack.pop(); at; at = stack.pop()) {
    const flaw = flawOf(at, maxDepth);
    if (flaw !== undefined && !(mayBeTorn && flaw === 'not_text')) return { flaw, path: pathTo(at) };
    const { item, depth } = at;
    if (typeof item !== 'object' || item === null || isRawNumber(item)) continue;
    for (const [name, entry] of Object.entries(item)) {
      if (!mayBeTorn && !Array.isArray(item) && !name.isWellFormed()) return { flaw: 'not_text', path: pathTo(at) };
      stack.push({ item: entry, depth: depth + 1, name: Array.isArray(item) ? Number(name) : name, from: at });
    }
  }
  return undefined;
}

function flawOf({ item, depth }: Reached, maxDepth: number): Flaw | undefined {
  if (typeof item === 'string') return item.isWellFormed() ? undefined : 'not_text';
  if (typeof item === 'number') return Number.isFinite(item) ? undefined : 'out_of_range';
  const isTooDeep = depth >= maxDepth && typeof item === 'object' && item !== null && !isRawNumber(item);
  return isTooDeep ? 'too_deep' : undefined;
}

function pathTo(reached: Reached): (string | number)[] {
  const path: (string | number)[] = [];
  for (let at: Reached | undefined = reached; at?.name !== undefined; at = at.from) path.unshift(at.name);
  return path;
}

/** A path as an error names it: `jobs[1].args[0]`. */
export const written = (path: readonly (string | number)[]): string =>
  path
    .map((name) => (typeof name === 'number' ? `[${name}]` : `.${name}`))
    .join('')
    .replace(/^\./, '');

const ESCAPE = /\\(u[dD][89a-fA-F][0-9a-fA-F]{2}|.)/g;

/** JSON text as `JSON.stringify` writes it, with U+FFFD for each half of a character. */
export function withWholeCharacters(json: string): string {
  // Whole pairs are written as they are, so an escaped surrogate is a lone one.
  return json.includes('\\u') ? json.replace(ESCAPE, (all, code: string) => (code.length > 1 ? '\\ufffd' : all)) : json;
}

/** A bounded, storable copy of secondary data, which is never refused. @param max characters of JSON */
export function boundedValue<T>(
  value: T,
  max: number,
): T | typeof TOO_DEEP | { truncated: true; original_length: number } {
  const flaw = unstorableIn(value)?.flaw;
  if (flaw === 'too_deep' || isDeeperThan(value, MAX_DEPTH)) return TOO_DEEP;
  const text = JSON.stringify(value) ?? '';
  if (text.length > max) return { truncated: true, original_length: text.length };
  return flaw === undefined ? value : (JSON.parse(withWholeCharacters(text)) as T);
}
