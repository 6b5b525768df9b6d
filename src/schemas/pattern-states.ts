/** Compiles regular expressions of schemas to states. What cannot be followed in one pass over a text is refused. */
import { getOrInsert } from '../job/get-or-insert';

const MAX_PATTERN = 512;

/** States of a pattern at most: a repetition counts as what it repeats, as often as it does. */
const MAX_STATES = 2_000;

export const ASCII = 128;

export type Sign = '^' | '$' | 'b' | 'B';

/** Where a text may go from a state. `reads` decides by the character; the others read none. */
export type PatternState =
  | { kind: 'reads'; reads: (code: number) => boolean; next: number }
  | { kind: 'asserts'; sign: Sign; next: number }
  | { kind: 'forks'; ways: number[] }
  | { kind: 'ends' };

/** Writes the states of a part of the pattern that continue at `next`. @returns the first of them */
type Emit = (next: number) => number;

const QUANTIFIER = /(?:([*+?])|\{(\d+)(?:(,)(\d*))?\})\??/y;
const CHARACTER =
  /\[(?:\\.|[^\]\\])*\]|\\[pPu]\{[^}]*\}|\\u[dD][89abAB][\da-fA-F]{2}\\u[dD][c-fC-F][\da-fA-F]{2}|\\u.{4}|\\x..|\\c.|\\.|./suy;
const GROUP = /\((?:\?(?::|<[^=!>]+>))?/y;
const ASSERTION = /[\^$]|\\[bB]/y;

/** Says why a pattern may not be used. */
export class PatternRefused extends Error {}

/** @throws {PatternRefused} */
export function compile(pattern: string): { states: readonly PatternState[]; start: number } {
  if (pattern.length > MAX_PATTERN) throw new PatternRefused(`is longer than ${MAX_PATTERN} characters`);
  try {
    new RegExp(pattern, 'u');
  } catch {
    throw new PatternRefused('is not a regular expression of JavaScript with the flag u');
  }
  return new Compiler(pattern).compile();
}

/** Reads what `RegExp` took for well-formed. */
class Compiler {
  private at = 0;
  private readonly states: PatternState[] = [];
  /** Steps of the compilation, which counts what is repeated even where it is empty. */
  private emitted = 0;
  private readonly readers = new Map<string, (code: number) => boolean>();

  constructor(private readonly pattern: string) {}

  compile() {
    const emit = this.choice();
    return { states: this.states, start: emit(this.add({ kind: 'ends' })) };
  }

  private choice(): Emit {
    const parts = [this.sequence()];
    while (this.matched(/\|/y)) parts.push(this.sequence());
    if (parts.length === 1) return parts[0] as Emit;
    return this.part((next) => this.add({ kind: 'forks', ways: parts.map((emit) => emit(next)) }));
  }

  private sequence(): Emit {
    const parts: Emit[] = [];
    while (this.at < this.pattern.length && !'|)'.includes(this.pattern[this.at] as string)) {
      parts.push(this.repeated(this.term()));
    }
    return this.part((next) => parts.reduceRight((after, emit) => emit(after), next));
  }

  private term(): Emit {
    const sign = this.matched(ASSERTION)?.[0].at(-1) as Sign | undefined;
    if (sign) return this.part((next) => this.add({ kind: 'asserts', sign, next }));
    const group = this.matched(GROUP);
    if (group) {
      if (group[0] === '(' && this.pattern[this.at] === '?') {
        throw new PatternRefused('has a lookahead, a lookbehind or flags');
      }
      const inner = this.choice();
      this.at++;
      return inner;
    }
    const [source] = this.matched(CHARACTER) as RegExpExecArray;
    if (/^\\[1-9k]/.test(source)) throw new PatternRefused('has a back reference');
    const reads = getOrInsert(this.readers, source, () => readerOf(source));
    return this.part((next) => this.add({ kind: 'reads', reads, next }));
  }

  private repeated(emit: Emit): Emit {
    const found = this.matched(QUANTIFIER);
    if (!found) return emit;
    const [, sign, from, comma, to] = found;
    const least = sign ? Number(sign === '+') : Number(from);
    const isBounded = sign === '?' || (!sign && (!comma || to !== ''));
    const most = sign ? 1 : Number(to ?? from);
    return this.part((next) => {
      let first = next;
      if (!isBounded) {
        const ways = [next];
        first = this.add({ kind: 'forks', ways });
        ways.push(emit(first));
      }
      for (let count = least; isBounded && count < most; count++) {
        first = this.add({ kind: 'forks', ways: [next, emit(first)] });
      }
      for (let count = 0; count < least; count++) first = emit(first);
      return first;
    });
  }

  private part(emit: Emit): Emit {
    return (next) => {
      this.count();
      return emit(next);
    };
  }

  private add(state: PatternState): number {
    this.count();
    return this.states.push(state) - 1;
  }

  private count(): void {
    if (++this.emitted <= 4 * MAX_STATES && this.states.length < MAX_STATES) return;
    throw new PatternRefused(`is too large with its repetitions expanded (${MAX_STATES} characters)`);
  }

  private matched(expression: RegExp): RegExpExecArray | null {
    expression.lastIndex = this.at;
    const found = expression.exec(this.pattern);
    if (found) this.at += found[0].length;
    return found;
  }
}

/** Does a character fit the source of one? The engine of JavaScript knows, and cannot backtrack over one character. */
function readerOf(source: string): (code: number) => boolean {
  const literal = source.codePointAt(0) as number;
  if (!'.[\\'.includes(source[0] as string)) return (code) => code === literal;
  const expression = new RegExp(`^${source}$`, 'u');
  const ascii = new Uint8Array(ASCII);
  for (let code = 0; code < ASCII; code++) ascii[code] = expression.test(String.fromCharCode(code)) ? 1 : 0;
  return (code) => (code < ASCII ? ascii[code] === 1 : expression.test(String.fromCodePoint(code)));
}
