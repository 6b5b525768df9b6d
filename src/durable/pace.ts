/**
 * Counts events of the last minute, to the second. In memory only: a queue that slept has counted nothing meanwhile.
 */

const MINUTE_S = 60;

export class Pace {
  /** Count by second since the epoch, oldest first. */
  private readonly seconds = new Map<number, number>();

  /** It happened at `time`, epoch ms. */
  note(time: number): void {
    const second = Math.floor(time / 1000);
    this.seconds.set(second, (this.seconds.get(second) ?? 0) + 1);
    if (this.seconds.size > 2 * MINUTE_S) this.forget(second);
  }

  /** How often in the minute before `now`, epoch ms. */
  perMinute(now: number): number {
    const second = Math.floor(now / 1000);
    this.forget(second);
    let count = 0;
    for (const [at, times] of this.seconds) if (at <= second) count += times;
    return count;
  }

  private forget(second: number): void {
    for (const at of this.seconds.keys()) if (at <= second - MINUTE_S) this.seconds.delete(at);
  }
}
