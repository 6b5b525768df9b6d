/** Searches jobs by words and quoted phrases, in any case: arguments, `meta`, tags, type, last error, start of id. */
import { parseExactly } from './envelope/exact';
import { isUuidV7 } from './ids';

/** Words and phrases of one search at most, and characters of it. */
export const MAX_WORDS = 10;
export const MAX_SEARCH = 500;

export interface Searched {
  id: string;
  type: string;
  body: string;
  /** Texts of its last error. */
  error: readonly string[];
}

/** The words and phrases of a search, in lower case. A quote that is not closed quotes to the end. */
export function wordsOf(text: string): string[] {
  const found = Array.from(text.matchAll(/"([^"]*)(?:"|$)|[^\s"]+/gu), ([whole, phrase]) => phrase ?? whole);
  return [...new Set(found.map((word) => word.trim().toLowerCase()).filter((word) => word !== ''))];
}

/** The id that a search consists of, if it is one: then the job with it is meant, not those that mention it. */
export function idIn(text: string): string | undefined {
  const id = text.trim().toLowerCase();
  return isUuidV7(id) ? id : undefined;
}

/** A test whether all words are found. Made once for many jobs. @param words in lower case */
export function searcherFor(words: readonly string[]): (job: Searched) => boolean {
  // In JSON a quote, a backslash and a line break are written otherwise.
  const all = words.map((word) => ({ word, written: JSON.stringify(word).slice(1, -1) }));
  return ({ id, type, body, error }) => {
    const texts = [type, ...error].map((text) => text.toLowerCase());
    const left = all.filter(({ word }) => !id.startsWith(word) && !texts.some((text) => text.includes(word)));
    if (left.length === 0) return true;
    // Most bodies do not hold the words at all, and need not be parsed to see where they stand.
    const whole = body.toLowerCase();
    if (!left.every(({ written }) => whole.includes(written))) return false;
    const carried = carriedBy(body);
    return left.every(({ written }) => carried.includes(written));
  };
}

function carriedBy(body: string): string {
  try {
    const { args, meta, tags } = parseExactly(body) as Record<string, unknown>;
    return JSON.stringify([args, meta, tags]).toLowerCase();
  } catch {
    return '';
  }
}

/** A test whether an error says all the words. @param words in lower case */
export function saysAll(words: readonly string[]): (texts: readonly string[]) => boolean {
  return (texts) => {
    const lower = texts.map((text) => text.toLowerCase());
    return words.every((word) => lower.some((text) => text.includes(word)));
  };
}
