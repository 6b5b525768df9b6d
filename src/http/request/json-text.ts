/** Checks on JSON text that `JSON.parse` does not make. */

/** Text in which a value may hide that would not survive being stored: a surrogate escape, or a huge number. */
const SUSPICIOUS = /\\u[dD][89a-fA-F]|[eE]\+?\d{3}|\d{309}/;
const LONE_SURROGATE = /\p{Surrogate}/u;

const QUOTE = 0x22;
const BACKSLASH = 0x5c;

/** How deeply arrays and objects nest in `text`; counting stops above `limit`. Uses no recursion. */
export function nestingDepth(text: string, limit: number): number {
  let depth = 0;
  let deepest = 0;
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code === QUOTE) {
      at++;
      while (at < text.length && text.charCodeAt(at) !== QUOTE) at += text.charCodeAt(at) === BACKSLASH ? 2 : 1;
    } else if (code === 0x5b || code === 0x7b) {
      depth++;
      if (depth > deepest) deepest = depth;
      if (deepest > limit) return deepest;
    } else if (code === 0x5d || code === 0x7d) {
      depth--;
    }
  }
  return deepest;
}

/**
 * What in a parsed value could not be stored and given back as it was, or undefined.
 * @param text the JSON that `value` was parsed from; tells cheaply when there is nothing to look for
 */
export function unstorable(text: string, value: unknown): string | undefined {
  if (!SUSPICIOUS.test(text)) return undefined;
  const stack: unknown[] = [value];
  while (stack.length > 0) {
    const item = stack.pop();
    if (typeof item === 'string' && LONE_SURROGATE.test(item)) return 'a lone surrogate';
    if (typeof item === 'number' && !Number.isFinite(item)) return 'a number beyond the range of doubles';
    if (typeof item !== 'object' || item === null) continue;
    if (!Array.isArray(item)) for (const name of Object.keys(item)) stack.push(name);
    for (const entry of Object.values(item)) stack.push(entry);
  }
  return undefined;
}
