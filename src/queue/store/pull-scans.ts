/**
 * How far workers that pull have read: one cursor for those that take jobs of any type, and one for each set of types that
 * others take, so that a worker of few types does not read the same backlog at each fetch. Memory only, and bounded:
 * whoever lost a cursor reads from the start.
 */
import { Scan } from './lanes';

/** Cursors of sets of types, and characters of their names, that are kept. */
const MAX_CURSORS = 64;
const MAX_CHARS = 1024 * 1024;

export class PullScans {
  readonly any = new Scan();
  /** Those used last stand last. */
  private readonly byTypes = new Map<string, Scan>();
  private chars = 0;

  /**
   * The cursor for these types.
   * @param types their names, see {@link typesKey}; empty: any
   * @param head how far the line of immediate jobs is taken
   */
  of(types: string, head: number): Scan {
    if (types === '') return this.any;
    let scan = this.byTypes.get(types);
    if (scan) this.byTypes.delete(types);
    else {
      scan = new Scan();
      scan.reset(head);
      this.chars += types.length;
    }
    this.byTypes.set(types, scan);
    for (const [oldest] of this.byTypes) {
      if (oldest === types || (this.byTypes.size <= MAX_CURSORS && this.chars <= MAX_CHARS)) break;
      this.byTypes.delete(oldest);
      this.chars -= oldest.length;
    }
    return scan;
  }

  /** Every cursor. */
  all(): Scan[] {
    return [this.any, ...this.byTypes.values()];
  }
}

/** A name for a set of types, the same in whatever order they come. Empty: any type. */
export function typesKey(types: readonly string[] | undefined): string {
  return types === undefined ? '' : [...new Set(types)].sort().join(' ');
}
