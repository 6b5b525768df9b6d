/** Checks on JSON text that `JSON.parse` does not make. */
import type { Outline } from './nesting';

/** Texts in which a value may hide that would not survive being stored: a surrogate escape, or a huge number. */
const SURROGATE_ESCAPE = /\\u[dD][89a-fA-F]/;
const HUGE_EXPONENT = /\d[eE]\+?\d{3}/;
/** This many digits in a row may be a huge number, too. */
const HUGE = 200;
const LONE_SURROGATE = /\p{Surrogate}/u;

export const BEYOND_DOUBLES = 'a number beyond the range of doubles';

/** What cannot be stored, and where a number that cannot be stands. */
export interface Unstorable {
  what: string;
  path: (string | number)[];
}

/** An item on its way to be looked at, and how it was reached. */
interface Reached {
  item: unknown;
  name?: string | number;
  from?: Reached;
}

/**
 * What in a parsed value could not be stored and given back as it was, or undefined.
 * @param text the JSON that `value` was parsed from; it and its outline tell cheaply when there is nothing to look for
 * @param mayBeTorn halves of surrogate pairs pass: they are in JSON that is stored already
 */
export function unstorable(text: string, value: unknown, outline: Outline, mayBeTorn = false): Unstorable | undefined {
  if (!isSuspicious(text, outline)) return undefined;
  const stack: Reached[] = [{ item: value }];
  for (let from = stack.pop(); from; from = stack.pop()) {
    const { item } = from;
    if (typeof item === 'string' && !mayBeTorn && LONE_SURROGATE.test(item))
      return { what: 'a lone surrogate', path: [] };
    if (typeof item === 'number' && !Number.isFinite(item)) return { what: BEYOND_DOUBLES, path: pathTo(from) };
    if (typeof item !== 'object' || item === null) continue;
    for (const [name, entry] of Object.entries(item)) {
      if (!Array.isArray(item)) stack.push({ item: name });
      stack.push({ item: entry, name: Array.isArray(item) ? Number(name) : name, from });
    }
  }
  return undefined;
}

function isSuspicious(text: string, { digits, hasExponent }: Outline): boolean {
  if (digits >= HUGE || (hasExponent && HUGE_EXPONENT.test(text))) return true;
  // Finding a text is much faster than a pattern.
  return text.includes('\\u') && SURROGATE_ESCAPE.test(text);
}

/**
 * Are there `count` digits in a row? Looks at every `count`th character and around it, which beats a pattern by far.
 */
export function hasDigits(text: string, count: number): boolean {
  for (let at = count - 1; at < text.length; at += count) {
    if (!isDigit(text, at)) continue;
    let first = at;
    let end = at + 1;
    while (isDigit(text, first - 1)) first--;
    while (isDigit(text, end)) end++;
    if (end - first >= count) return true;
  }
  return false;
}

function isDigit(text: string, at: number): boolean {
  const code = text.charCodeAt(at);
  return code >= 48 && code <= 57;
}

/** Texts with commas between them, inside of another text: in one step, which copies large ones only once. */
export function enlisted(before: string, items: readonly string[], after: string): string {
  const last = items.length - 1;
  if (last < 0) return before + after;
  const parts = [...items];
  parts[0] = before + items[0];
  parts[last] += after;
  return parts.join(',');
}

function pathTo(reached: Reached): (string | number)[] {
  const path: (string | number)[] = [];
  for (let at: Reached | undefined = reached; at?.name !== undefined; at = at.from) path.unshift(at.name);
  return path;
}
