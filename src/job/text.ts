/** Cutting text without tearing a character: one beyond U+FFFF is two units long, and half of it cannot be stored. */

/** Characters of a request that an error message repeats at most. */
const MAX_QUOTE = 200;

/** The last place at or before `at` that is between two characters of `text`. */
export function boundary(text: string, at: number): number {
  if (at <= 0 || at >= text.length) return at;
  const last = text.charCodeAt(at - 1);
  return last >= 0xd800 && last <= 0xdbff ? at - 1 : at;
}

/** The beginning of `text`, at most `max` UTF-16 units of it, with U+FFFD for each half of a character that it has. */
export const cut = (text: string, max: number): string =>
  (text.length <= max ? text : text.slice(0, boundary(text, max))).toWellFormed();

/** `text` in pieces of at most `max` UTF-16 units; one empty piece for an empty text. */
export function piecesOf(text: string, max: number): string[] {
  const pieces: string[] = [];
  for (let start = 0; start < text.length || start === 0; ) {
    const end = boundary(text, Math.min(start + max, text.length));
    pieces.push(text.slice(start, end));
    if (end >= text.length) break;
    start = end;
  }
  return pieces;
}

/** What a client sent, as an error message repeats it: a long text only in its beginning. */
export const quote = (text: string): string =>
  text.length <= MAX_QUOTE ? text.toWellFormed() : `${cut(text, MAX_QUOTE)}…`;

/** The value of JSON; any other text is its own value. */
export function jsonOrText(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
