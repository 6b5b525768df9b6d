/** Regular expressions of schemas without backtracking: a character takes as many steps as there are states at most. */
import { type Tree, treeOf } from './pattern-tree';
import type { Work } from './work';

/** States of a pattern at most: a repetition counts as what it repeats, as often as it does. */
const MAX_STATES = 2_000;

const ASCII = 128;

/** Where a text may go from a state. `reads` decides by the character; the others read none. */
type PatternState =
  | { kind: 'reads'; reads: (code: number) => boolean; next: number }
  | { kind: 'asserts'; sign: '^' | '$' | 'b' | 'B'; next: number }
  | { kind: 'forks'; ways: number[] }
  | { kind: 'ends' };

export class Pattern {
  private readonly states: PatternState[] = [];
  private readonly start: number;
  /** Steps of the compilation, which counts what is repeated even where it is empty. */
  private emitted = 0;
  private readonly isAnchored: boolean;
  private readonly readers = new Map<string, (code: number) => boolean>();

  private constructor(tree: Tree) {
    this.start = this.emit(tree, this.add({ kind: 'ends' }));
    const first = this.states[this.start] as PatternState;
    this.isAnchored = first.kind === 'asserts' && first.sign === '^';
  }

  /** @returns why it may not be used, as a text */
  static of(pattern: string): Pattern | string {
    const tree = treeOf(pattern);
    if (typeof tree === 'string') return tree;
    try {
      return new Pattern(tree);
    } catch (error) {
      if (error instanceof TooLarge) return `is too large with its repetitions expanded (${MAX_STATES} characters)`;
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

  private add(state: PatternState): number {
    this.count();
    return this.states.push(state) - 1;
  }

  private count(): void {
    if (++this.emitted > 4 * MAX_STATES || this.states.length >= MAX_STATES) throw new TooLarge();
  }

  /** Writes the states of a tree that continue at `next`. @returns the first of them */
  private emit(tree: Tree, next: number): number {
    this.count();
    switch (tree.kind) {
      case 'char':
        return this.add({ kind: 'reads', reads: this.reader(tree.source), next });
      case 'assertion':
        return this.add({ kind: 'asserts', sign: tree.sign, next });
      case 'sequence':
        return tree.parts.reduceRight((after, part) => this.emit(part, after), next);
      case 'choice':
        return this.add({ kind: 'forks', ways: tree.parts.map((part) => this.emit(part, next)) });
      case 'repeat':
        return this.emitRepeat(tree, next);
    }
  }

  private reader(source: string): (code: number) => boolean {
    const reads = this.readers.get(source) ?? readerOf(source);
    this.readers.set(source, reads);
    return reads;
  }

  private emitRepeat({ part, least, most }: Extract<Tree, { kind: 'repeat' }>, next: number): number {
    let first = next;
    if (most === Number.POSITIVE_INFINITY) {
      const ways = [next];
      first = this.add({ kind: 'forks', ways });
      ways.push(this.emit(part, first));
    }
    for (let count = least; count < most && most !== Number.POSITIVE_INFINITY; count++) {
      first = this.add({ kind: 'forks', ways: [next, this.emit(part, first)] });
    }
    for (let count = 0; count < least; count++) first = this.emit(part, first);
    return first;
  }
}

class TooLarge extends Error {}

function holds(sign: '^' | '$' | 'b' | 'B', at: number, text: string): boolean {
  if (sign === '^') return at === 0;
  if (sign === '$') return at === text.length;
  return (isWord(text.charCodeAt(at - 1)) !== isWord(text.charCodeAt(at))) === (sign === 'b');
}

/** Is it one of `\w`? Nothing is, outside of the text. */
const isWord = (code: number) =>
  (code >= 97 && code <= 122) || (code >= 65 && code <= 90) || (code >= 48 && code <= 57) || code === 95;

/** Does a character fit the source of one? The engine of JavaScript knows, and cannot backtrack over one character. */
function readerOf(source: string): (code: number) => boolean {
  const literal = source.codePointAt(0) as number;
  if (!'.[\\'.includes(source[0] as string)) return (code) => code === literal;
  const expression = new RegExp(`^${source}$`, 'u');
  const ascii = new Uint8Array(ASCII);
  for (let code = 0; code < ASCII; code++) ascii[code] = expression.test(String.fromCharCode(code)) ? 1 : 0;
  return (code) => (code < ASCII ? ascii[code] === 1 : expression.test(String.fromCodePoint(code)));
}
