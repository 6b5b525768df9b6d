/** Regular expressions of schemas without backtracking: a character takes as many steps as there are states at most. */
import { ASCII, compile, PatternRefused, type PatternState, type Sign } from './pattern-states';
import type { Work } from './work';

export class Pattern {
  private readonly isAnchored: boolean;

  private constructor(
    private readonly states: readonly PatternState[],
    private readonly start: number,
  ) {
    const first = states[start] as PatternState;
    this.isAnchored = first.kind === 'asserts' && first.sign === '^';
  }

  /** @returns why it may not be used, as a text */
  static of(pattern: string): Pattern | string {
    try {
      const { states, start } = compile(pattern);
      return new Pattern(states, start);
    } catch (error) {
      if (error instanceof PatternRefused) return error.message;
      throw error;
    }
  }

  get size(): number {
    return this.states.length;
  }

  /** Is the pattern found in the text? @throws {OutOfWork} */
  test(text: string, work: Work): boolean {
    /** The position at which each state was reached last. */
    const reached = new Int32Array(this.states.length).fill(-1);
    work.spend(this.states.length >> 4);
    let now: number[] = [];
    for (let at = 0; at <= text.length; ) {
      if (at === 0 || !this.isAnchored) now.push(this.start);
      const reading = this.follow(now, at, text, reached, work);
      if (reading === 'ended') return true;
      if (at === text.length || (reading.length === 0 && this.isAnchored)) return false;
      const code = text.codePointAt(at) as number;
      now = [];
      for (const index of reading) {
        const state = this.states[index] as Extract<PatternState, { kind: 'reads' }>;
        if (state.reads(code)) now.push(state.next);
      }
      work.spend(1 + reading.length * (code < ASCII ? 1 : 8));
      at += code > 0xffff ? 2 : 1;
    }
    return false;
  }

  /** The states that read, reached from those of `open` without reading. */
  private follow(open: number[], at: number, text: string, reached: Int32Array, work: Work): number[] | 'ended' {
    const reading: number[] = [];
    let steps = 0;
    for (let index = open.pop(); index !== undefined; index = open.pop()) {
      steps++;
      if (reached[index] === at) continue;
      reached[index] = at;
      const state = this.states[index] as PatternState;
      if (state.kind === 'ends') return 'ended';
      if (state.kind === 'reads') reading.push(index);
      else if (state.kind === 'forks') open.push(...state.ways);
      else if (holds(state.sign, at, text)) open.push(state.next);
    }
    work.spend(steps);
    return reading;
  }
}

function holds(sign: Sign, at: number, text: string): boolean {
  if (sign === '^') return at === 0;
  if (sign === '$') return at === text.length;
  return (isWord(text[at - 1]) !== isWord(text[at])) === (sign === 'b');
}

/** Is it one of `\w`? Nothing is, outside of the text. */
const isWord = (char = '') => /\w/.test(char);
