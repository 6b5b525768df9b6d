/**
 * Starts of the last period, for a sliding window: exact up to {@link MAX_MOMENTS} moments, beyond that neighbours
 * merge at the later moment, so the limit always holds. A start at `s` counts until just before `s + period`.
 */

/** Moments stored separately. A window is stored as JSON, so this bounds its size at some 20 kB. */
export const MAX_MOMENTS = 1024;

/** Moments that lie further ahead than this, and than their period, were noted before the clock was set back, ms. */
export const SET_BACK_MS = 60_000;

/** Was this moment, at most a period ahead, noted before the clock was set back by much? Epoch ms. */
export const isFromBefore = (at: number | undefined, periodMs: number, now: number): boolean =>
  at !== undefined && at > now + Math.max(periodMs, SET_BACK_MS);

/** When, and how many. Epoch ms. */
export type Moment = [at: number, count: number];

export class Starts {
  private total: number;

  /** @param moments in ascending order */
  constructor(private moments: Moment[] = []) {
    this.total = moments.reduce((sum, [, count]) => sum + count, 0);
  }

  get entries(): readonly Moment[] {
    return this.moments;
  }

  count(now: number, periodMs: number): number {
    this.keep(now, periodMs);
    return this.total;
  }

  add(now: number, count: number, periodMs: number): void {
    this.keep(now, periodMs);
    const last = this.moments.at(-1);
    // A clock that was set back must not drop earlier starts from the window too soon.
    if (last && last[0] >= now) last[1] += count;
    else this.moments.push([now, count]);
    this.total += count;
    if (this.moments.length > MAX_MOMENTS) this.merge(periodMs, MAX_MOMENTS);
  }

  /** When the next start fits, if nothing else starts; the past: one fits now. `limit` is at least 1. */
  opensAt(limit: number, periodMs: number): number {
    let newest = 0;
    for (let index = this.moments.length - 1; index >= 0; index--) {
      const [at, count] = this.moments[index] as Moment;
      newest += count;
      if (newest >= limit) return at + periodMs;
    }
    return Number.NEGATIVE_INFINITY;
  }

  /** Drops what counts no more. Starts from before the clock was set back count for one more period, from now on. */
  private keep(now: number, periodMs: number): void {
    if (isFromBefore(this.moments.at(-1)?.[0], periodMs, now)) {
      this.moments = this.moments.map(([at, count]) => [Math.min(at, now), count]);
    }
    this.forget(now - periodMs);
  }

  /** Drops starts at or before `cutoff`. */
  forget(cutoff: number): void {
    let gone = 0;
    for (const [at, count] of this.moments) {
      if (at > cutoff) break;
      gone++;
      this.total -= count;
    }
    if (gone > 0) this.moments = this.moments.slice(gone);
  }

  /** Merges neighbours. @param most moments of a period afterwards, about */
  merge(periodMs: number, most: number): void {
    const grain = (2 * periodMs) / most;
    const merged: Moment[] = [];
    let begin = Number.NEGATIVE_INFINITY;
    for (const [at, count] of this.moments) {
      const group = merged.at(-1);
      if (group && at - begin < grain) {
        group[0] = at;
        group[1] += count;
      } else {
        merged.push([at, count]);
        begin = at;
      }
    }
    this.moments = merged;
  }
}
