/** How much of its limits a key has used, how many jobs may start now, and when the next one may. */
import type { Limits, Quota } from './policy';
import { isFromBefore, type Moment, Starts } from './starts';

/** The stored use of a key. Absent members are empty. Times in epoch ms. */
export interface StoredUsage {
  starts?: Moment[];
  /** A throttle admits no start before. */
  spaced_until?: number;
  /** Moments promised to jobs that were rescheduled. */
  booked?: Moment[];
}

export class Usage {
  private readonly starts: Starts;
  private readonly booked: Starts;
  private spacedUntil: number;

  constructor(stored: StoredUsage = {}) {
    this.starts = new Starts(stored.starts?.map(([at, count]) => [at, count]));
    this.booked = new Starts(stored.booked?.map(([at, count]) => [at, count]));
    this.spacedUntil = stored.spaced_until ?? Number.NEGATIVE_INFINITY;
  }

  stored(): StoredUsage {
    return {
      ...(this.starts.entries.length > 0 && { starts: [...this.starts.entries] }),
      ...(Number.isFinite(this.spacedUntil) && { spaced_until: this.spacedUntil }),
      ...(this.booked.entries.length > 0 && { booked: [...this.booked.entries] }),
    };
  }

  /** Do earlier starts still matter to these limits? */
  isEmpty(limits: Limits, now: number): boolean {
    this.booked.forget(now);
    const started = limits.rate ? this.starts.count(now, limits.rate.period_ms) : 0;
    return started === 0 && this.spacedUntil <= now && this.booked.entries.length === 0;
  }

  /** Starts within the period of a rate or throttle; 0 without one. */
  startsIn(quota: Quota | undefined, now: number): number {
    return quota ? this.starts.count(now, quota.period_ms) : 0;
  }

  /** How many may start now: 0 … , infinite without limits. `running`: attempts that run. */
  room(limits: Limits, running: number, now: number): number {
    const { concurrency, rate, throttle } = limits;
    let room = Number.POSITIVE_INFINITY;
    if (concurrency !== undefined) room = Math.min(room, concurrency - running);
    if (rate) room = Math.min(room, rate.limit - this.starts.count(now, rate.period_ms));
    if (throttle) room = Math.min(room, throttle.limit > 0 && now >= this.spacing(throttle, now) ? 1 : 0);
    return Math.max(0, room);
  }

  /** How many attempts may continue now whose starts were counted before. They need a place among those that run. */
  roomToGoOn({ concurrency, rate, throttle }: Limits, running: number): number {
    if (rate?.limit === 0 || throttle?.limit === 0) return 0;
    return Math.max(0, (concurrency ?? Number.POSITIVE_INFINITY) - running);
  }

  /** When rate and throttle admit the next start; undefined: only an operator ends the stop. Without concurrency. */
  opensAt({ rate, throttle }: Limits, now: number): number | undefined {
    if (rate?.limit === 0 || throttle?.limit === 0) return undefined;
    if (rate) this.starts.count(now, rate.period_ms);
    return Math.max(
      rate ? this.starts.opensAt(rate.limit, rate.period_ms) : Number.NEGATIVE_INFINITY,
      throttle ? Math.ceil(this.spacing(throttle, now)) : Number.NEGATIVE_INFINITY,
    );
  }

  /** Until when a throttle admits no start. It does not shut its key for as long as the clock was set back. */
  private spacing({ limit, period_ms }: Quota, now: number): number {
    if (isFromBefore(this.spacedUntil, period_ms, now)) this.spacedUntil = now + period_ms / limit;
    return this.spacedUntil;
  }

  /** When there will be more room than now: when the next start fits, or the oldest counts no more; epoch ms. */
  resetsAt(limits: Limits, now: number): number | undefined {
    const opensAt = this.opensAt(limits, now);
    if (opensAt === undefined || opensAt > now) return opensAt;
    const [oldest] = this.starts.entries;
    return limits.rate && oldest ? oldest[0] + limits.rate.period_ms : undefined;
  }

  /** Notes that `count` jobs start now. @returns whether anything counts them */
  started(limits: Limits, count: number, now: number): boolean {
    const { rate, throttle } = limits;
    // A throttle needs only its spacing; its starts are recorded for statistics.
    const counted = rate ?? throttle;
    if (counted) this.starts.add(now, count, counted.period_ms);
    if (throttle && throttle.limit > 0) {
      this.spacedUntil = Math.max(this.spacedUntil, now) + (count * throttle.period_ms) / throttle.limit;
    }
    return rate !== undefined || throttle !== undefined;
  }

  /** Promises a rescheduled job the first moment that earlier promises leave free; undefined: it cannot be known. */
  book(limits: Limits, now: number): number | undefined {
    const { rate, throttle } = limits;
    if ((!rate && !throttle) || rate?.limit === 0 || throttle?.limit === 0) return undefined;
    this.booked.forget(now);
    let at = now;
    if (throttle) {
      const last = this.booked.entries.at(-1)?.[0];
      const interval = throttle.period_ms / throttle.limit;
      at = Math.max(at, this.spacedUntil, last === undefined ? at : last + interval);
    }
    if (rate) {
      this.starts.forget(now - rate.period_ms);
      const line = new Starts([...this.starts.entries, ...this.booked.entries].map(([when, count]) => [when, count]));
      at = Math.max(at, line.opensAt(rate.limit, rate.period_ms));
    }
    at = Math.max(Math.ceil(at), now + 1, this.booked.entries.at(-1)?.[0] ?? 0);
    // Promises older than the last `limit` ones have no effect any more.
    this.booked.add(at, 1, rate?.period_ms ?? throttle?.period_ms ?? 0);
    return at;
  }
}
