/**
 * Timers of an object, on few of the runtime. That keeps 256 bytes of each timer that is cleared for as long as the
 * object is in memory, and rings one a millisecond. So none is cleared: it rings for all that is due by then, or for
 * nothing.
 */

/** The longest timer of the runtime, ms: until it rings it keeps the object in memory. */
const LONGEST_MS = 5_000;

/** Calls `run` after `ms`. @returns ends that */
export type After = (ms: number, run: () => void) => () => void;

/** A timer of the runtime, for requests, which are over soon, and for rare waits of what they share with objects. */
export const requestTimer: After = (ms, run) => {
  const timer = setTimeout(run, ms);
  return () => clearTimeout(timer);
};

interface Entry {
  /** Epoch ms. */
  at: number;
  run(): void;
}

export class Timers {
  private readonly entries = new Set<Entry>();
  /** When the timers of the runtime ring, epoch ms; the next one last. */
  private rings: number[] = [];
  private seen = Number.NEGATIVE_INFINITY;

  /** @param clock epoch ms */
  constructor(private readonly clock: () => number) {}

  readonly after: After = (ms, run) => {
    const now = this.look();
    const entry = { at: now + ms, run };
    this.entries.add(entry);
    this.arm(entry.at, now);
    return () => {
      this.entries.delete(entry);
    };
  };

  /** What is under way moves with a clock that was set back. @returns the time, epoch ms */
  private look(): number {
    const now = this.clock();
    const back = this.seen - now;
    if (back > 0) {
      for (const entry of this.entries) entry.at -= back;
      this.rings = this.rings.map((at) => at - back);
    }
    this.seen = now;
    return now;
  }

  private arm(at: number, now: number): void {
    const rings = Math.min(at, now + LONGEST_MS);
    if (rings >= (this.rings.at(-1) ?? Number.POSITIVE_INFINITY)) return;
    this.rings.push(rings);
    setTimeout(() => this.ring(), Math.max(0, rings - now));
  }

  private ring(): void {
    // It has come although the clock may be behind.
    const now = Math.max(this.look(), this.rings.pop() ?? 0);
    const due: Entry[] = [];
    let next = Number.POSITIVE_INFINITY;
    for (const entry of this.entries) {
      if (entry.at <= now) due.push(entry);
      else next = Math.min(next, entry.at);
    }
    if (next < Number.POSITIVE_INFINITY) this.arm(next, now);
    for (const entry of due) {
      try {
        if (this.entries.delete(entry)) entry.run();
      } catch (error) {
        console.error('tocsin: what waited for its time failed', error);
      }
    }
  }
}
