/**
 * Regular expressions that schemas may use. The engine backtracks, so a pattern decides how long a text of a client may keep it
 * busy. What can take exponential time is refused; of the others the *degree* says how the time grows with the text.
 */

/** Repetitions of more than this count as if they had no end. */
const FEW = 16;

/** Characters of a pattern at most. */
export const MAX_PATTERN = 512;

/** Longest text, in characters, that a pattern of each degree is tried on. Beyond the last degree it is refused. */
const LONGEST: readonly number[] = [1_048_576, 1_048_576, 4_096, 256, 64];

/** What is known of a group, or of the pattern as a whole. */
interface Part {
  repeats: boolean;
  alternates: boolean;
}

const QUANTIFIER = /(?:[*+?]|\{(\d+)(?:(,)(\d*))?\})\??/y;
const CLASS = /\[(?:\\.|[^\]\\])*\]/uy;
const GROUP = /\((?:\?(?:(:)|<[A-Za-z_]\w*>))?/y;

/**
 * The longest text on which the pattern may be tried.
 * @returns why it may not be used, as a text
 */
export function longestFor(pattern: string): number | string {
  if (pattern.length > MAX_PATTERN) return `is longer than ${MAX_PATTERN} characters`;
  try {
    new RegExp(pattern, 'u');
  } catch {
    return 'is not a regular expression of JavaScript with the flag u';
  }
  const whole: Part = { repeats: false, alternates: false };
  const open: Part[] = [whole];
  let unbounded = 0;
  let last: Part | undefined;
  for (let at = 0; at < pattern.length; ) {
    const part = open.at(-1) as Part;
    const char = pattern[at] as string;
    const quantified = matchAt(QUANTIFIER, pattern, at);
    if (quantified) {
      if (repetitions(quantified) > 1) {
        if (last?.repeats || last?.alternates) return 'repeats a group that repeats or alternates itself';
        part.repeats = true;
      }
      if (repetitions(quantified) > FEW) unbounded++;
      at += quantified[0].length;
      last = undefined;
      continue;
    }
    last = undefined;
    if (char === '\\') {
      if (/[1-9k]/.test(pattern[at + 1] ?? '')) return 'refers back to a group';
      at += 2;
    } else if (char === '[') {
      at += (matchAt(CLASS, pattern, at) ?? ['['])[0].length;
    } else if (char === '(') {
      const group = matchAt(GROUP, pattern, at) as RegExpExecArray;
      if (group[0] === '(' && pattern[at + 1] === '?') return 'looks ahead or behind';
      open.push({ repeats: false, alternates: false });
      at += group[0].length;
    } else if (char === ')') {
      last = open.pop() as Part;
      const outer = open.at(-1) as Part;
      outer.repeats ||= last.repeats;
      outer.alternates ||= last.alternates;
      at++;
    } else {
      if (char === '|') part.alternates = true;
      at++;
    }
  }
  const degree = unbounded + (pattern.startsWith('^') && !whole.alternates ? 0 : 1);
  return LONGEST[degree] ?? 'has too many repetitions without an end';
}

function matchAt(expression: RegExp, text: string, at: number): RegExpExecArray | null {
  expression.lastIndex = at;
  return expression.exec(text);
}

function repetitions([text, least, comma, most]: RegExpExecArray): number {
  if (text.startsWith('?')) return 1;
  if (least === undefined) return Number.POSITIVE_INFINITY;
  if (comma === undefined) return Number(least);
  return most ? Number(most) : Number.POSITIVE_INFINITY;
}
