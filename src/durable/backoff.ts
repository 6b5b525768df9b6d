/** Backing off from what has just failed, where work can continue without it. */

/** Does a pause until `until` (epoch ms) last? One beyond `longest` (ms) predates a clock that was set back: no. */
export const isPausedUntil = (until: number, now: number, longest: number): boolean =>
  now < until && until <= now + longest;

/** Was `at` (epoch ms) less than `ms` ago? A future moment was noted before the clock was set back: long ago. */
export const isWithin = (at: number, ms: number, now: number): boolean => at <= now && now < at + ms;

/** Pauses after a failure, ms: doubled each time. */
const PAUSE_MS = { first: 1_000, longest: 30_000 };

export class Backoff {
  private until = 0;
  private failures = 0;

  /** @param now epoch ms */
  constructor(private readonly now: () => number) {}

  get isResting(): boolean {
    return isPausedUntil(this.until, this.now(), PAUSE_MS.longest);
  }

  failed(): void {
    this.until = this.now() + Math.min(PAUSE_MS.longest, PAUSE_MS.first * 2 ** this.failures);
    this.failures++;
  }

  succeeded(): void {
    this.until = 0;
    this.failures = 0;
  }

  /** Asks, unless it is backing off; undefined when it was not asked, or failed. @param note called with a failure */
  async ask<T>(ask: () => Promise<T>, note: (error: unknown) => void): Promise<T | undefined> {
    if (this.isResting) return undefined;
    try {
      const answer = await ask();
      this.succeeded();
      return answer;
    } catch (error) {
      this.failed();
      note(error);
      return undefined;
    }
  }
}
