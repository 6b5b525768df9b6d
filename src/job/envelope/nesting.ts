/** How deeply JSON nests: what is stored is read by SQLite too, which does not read very deep JSON. */

/** Deepest nesting of what is stored, its own braces included. */
export const MAX_DEPTH = 100;

/** Deepest nesting shown and exported of data stored before there was a bound. */
export const MAX_SHOWN_DEPTH = 500;

/** What stands in the place of a value that is not kept, or not shown, because it nests too deeply. */
export const TOO_DEEP = { truncated: true, max_depth: MAX_DEPTH };

export const shown = <T>(value: T): T =>
  isDeeperThan(value, MAX_SHOWN_DEPTH) ? (cutBelow(value, MAX_DEPTH) as T) : value;

function cutBelow(value: unknown, levels: number): unknown {
  if (typeof value !== 'object' || value === null) return value;
  if (levels === 0) return TOO_DEEP;
  if (Array.isArray(value)) return value.map((item) => cutBelow(item, levels - 1));
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, cutBelow(member, levels - 1)]));
}

/** Do arrays and objects nest more deeply in this value? Uses no recursion. */
export function isDeeperThan(value: unknown, limit: number): boolean {
  const nests = (item: unknown): item is object => typeof item === 'object' && item !== null;
  let level = [value].filter(nests);
  for (let depth = 1; level.length > 0; depth++) {
    if (depth > limit) return true;
    level = level.flatMap((item) => Object.values(item).filter(nests));
  }
  return false;
}

const QUOTE = 0x22;
const BACKSLASH = 0x5c;

/** What the parts of a JSON text say that are outside of its strings. */
export interface Outline {
  depth: number;
  digits: number;
  hasExponent: boolean;
}

/** Looks at a JSON text without parsing it, until it nests more deeply than `limit`. Uses no recursion. */
export function outlineOf(text: string, limit: number): Outline {
  const outline: Outline = { depth: 0, digits: 0, hasExponent: false };
  let depth = 0;
  for (let at = 0; at < text.length; at++) {
    let code = text.charCodeAt(at);
    if (code === QUOTE) at = endOfString(text, at + 1);
    else if (code === 0x5b || code === 0x7b) {
      depth++;
      if (depth > outline.depth) outline.depth = depth;
      if (depth > limit) return outline;
    } else if (code === 0x5d || code === 0x7d) {
      depth--;
    } else if (isDigit(code)) {
      const from = at;
      do code = text.charCodeAt(++at);
      while (isDigit(code));
      if (at - from > outline.digits) outline.digits = at - from;
      if (code === 0x65 || code === 0x45) outline.hasExponent = true;
      at--;
    }
  }
  return outline;
}

const isDigit = (code: number): boolean => code >= 48 && code <= 57;

/** The text with arrays and objects at level `limit` left empty: cheap to parse, and as deep. Uses no recursion. */
export function emptiedAt(limit: number, text: string): string {
  const kept: string[] = [];
  let depth = 0;
  let from = 0;
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code === QUOTE) at = endOfString(text, at + 1);
    else if (code === 0x5b || code === 0x7b) {
      if (++depth !== limit) continue;
      kept.push(text.slice(from, at + 1));
      from = text.length;
    } else if (code === 0x5d || code === 0x7d) {
      if (depth-- === limit) from = at;
    }
  }
  return kept.join('') + text.slice(from);
}

/** How deeply arrays and objects nest in `text`; counting stops above `limit`. */
export const nestingDepth = (text: string, limit: number): number => outlineOf(text, limit).depth;

/** Index of the quote that ends a string beginning at `from`. */
function endOfString(text: string, from: number): number {
  for (let at = text.indexOf('"', from); at >= 0; at = text.indexOf('"', at + 1)) {
    let before = at - 1;
    while (before >= from && text.charCodeAt(before) === BACKSLASH) before--;
    if ((at - before) % 2 === 1) return at;
  }
  return text.length;
}
