/**
 * The timers of the product under virtual time. What is over in a moment is left to the runtime; a time limit of a call, say,
 * ends when the simulation has come to that moment. An object that dies takes its timers along.
 */

/** Shorter ones are real, ms. */
const SHORT_MS = 100;

interface Timer {
  at: number;
  run(): void;
}

const real = { set: globalThis.setTimeout, clear: globalThis.clearTimeout };

export class Timers {
  private readonly timers = new Map<number, Timer>();
  private last = 0;
  /** When the timer that runs was due: what it sets anew counts from there. */
  private base: number | undefined;

  /**
   * @param now epoch ms of the simulation
   * @param shortest which are real, ms: those that are shorter
   */
  constructor(
    private readonly now: () => number,
    private readonly shortest = SHORT_MS,
  ) {}

  /** When the first one is due, epoch ms. */
  get next(): number {
    return Math.min(...Array.from(this.timers.values(), ({ at }) => at));
  }

  /** Takes the place of the runtime's own. */
  install(): void {
    globalThis.setTimeout = ((run: () => void, ms = 0, ...rest: unknown[]) =>
      ms < this.shortest ? real.set.call(globalThis, run, ms, ...rest) : this.add(run, ms)) as typeof setTimeout;
    globalThis.clearTimeout = ((id: number | null) => {
      if (id === null || !this.timers.delete(id)) real.clear.call(globalThis, id);
    }) as typeof clearTimeout;
  }

  /** The runtime's own are back. */
  static restore(): void {
    globalThis.setTimeout = real.set;
    globalThis.clearTimeout = real.clear;
  }

  /** Runs the first timer that is due. @returns whether there was one */
  fireNext(): boolean {
    let first: number | undefined;
    for (const [id, { at }] of this.timers) {
      if (at <= this.now() && (first === undefined || at < (this.timers.get(first) as Timer).at)) first = id;
    }
    if (first === undefined) return false;
    const { at, run } = this.timers.get(first) as Timer;
    this.timers.delete(first);
    this.base = at;
    try {
      run();
    } finally {
      this.base = undefined;
    }
    return true;
  }

  // Below zero, so that none is taken for one of the runtime's.
  private add(run: () => void, ms: number): number {
    this.timers.set(--this.last, { at: (this.base ?? this.now()) + ms, run });
    return this.last;
  }
}
