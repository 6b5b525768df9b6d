/** Reads regular expressions of schemas. What a {@link Pattern} cannot follow in one pass over a text is refused. */

const MAX_PATTERN = 512;

/** What a pattern consists of. `char` has the source of one character: a literal, an escape or a class. */
export type Tree =
  | { kind: 'char'; source: string }
  | { kind: 'assertion'; sign: '^' | '$' | 'b' | 'B' }
  | { kind: 'sequence' | 'choice'; parts: Tree[] }
  | { kind: 'repeat'; part: Tree; least: number; most: number };

const QUANTIFIER = /(?:([*+?])|\{(\d+)(?:(,)(\d*))?\})\??/y;
const CHARACTER =
  /\[(?:\\.|[^\]\\])*\]|\\[pPu]\{[^}]*\}|\\u[dD][89abAB][\da-fA-F]{2}\\u[dD][c-fC-F][\da-fA-F]{2}|\\u.{4}|\\x..|\\c.|\\.|./suy;
const GROUP = /\((?:\?(?::|<[^=!>]+>))?/y;

/** @returns why it may not be used, as a text */
export function treeOf(pattern: string): Tree | string {
  if (pattern.length > MAX_PATTERN) return `is longer than ${MAX_PATTERN} characters`;
  try {
    new RegExp(pattern, 'u');
  } catch {
    return 'is not a regular expression of JavaScript with the flag u';
  }
  try {
    return new Reader(pattern).choice();
  } catch (error) {
    if (error instanceof NotOffered) return error.message;
    throw error;
  }
}

class NotOffered extends Error {}

/** Reads what `RegExp` took for well-formed. */
class Reader {
  private at = 0;

  constructor(private readonly pattern: string) {}

  choice(): Tree {
    const parts = [this.sequence()];
    while (this.pattern[this.at] === '|') {
      this.at++;
      parts.push(this.sequence());
    }
    return parts.length === 1 ? (parts[0] as Tree) : { kind: 'choice', parts };
  }

  private sequence(): Tree {
    const parts: Tree[] = [];
    while (this.at < this.pattern.length && !'|)'.includes(this.pattern[this.at] as string)) {
      parts.push(this.repeated(this.term()));
    }
    return { kind: 'sequence', parts };
  }

  private term(): Tree {
    const [char = '', next = ''] = this.pattern.slice(this.at, this.at + 2);
    if (char === '^' || char === '$') {
      this.at++;
      return { kind: 'assertion', sign: char };
    }
    if (char === '\\') {
      if (/[1-9k]/.test(next)) throw new NotOffered('has a back reference');
      if (next === 'b' || next === 'B') {
        this.at += 2;
        return { kind: 'assertion', sign: next };
      }
    }
    if (char === '(') {
      const [group] = this.matched(GROUP) as RegExpExecArray;
      if (group === '(' && next === '?') throw new NotOffered('has a lookahead, a lookbehind or flags');
      const inner = this.choice();
      this.at++;
      return inner;
    }
    return { kind: 'char', source: (this.matched(CHARACTER) as RegExpExecArray)[0] };
  }

  private repeated(part: Tree): Tree {
    const found = this.matched(QUANTIFIER);
    if (!found) return part;
    const [, sign, from, comma, to] = found;
    const least = sign ? (sign === '+' ? 1 : 0) : Number(from);
    const most = sign
      ? sign === '?'
        ? 1
        : Number.POSITIVE_INFINITY
      : comma
        ? Number(to || Number.POSITIVE_INFINITY)
        : least;
    return { kind: 'repeat', part, least, most };
  }

  private matched(expression: RegExp): RegExpExecArray | null {
    expression.lastIndex = this.at;
    const found = expression.exec(this.pattern);
    if (found) this.at += found[0].length;
    return found;
  }
}
