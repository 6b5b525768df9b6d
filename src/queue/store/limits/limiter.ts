/** One key in the memory of its queue: its limits, and what it used. */
import type { Holder, Situation } from '../../../allowance/holder';
import { parseStored } from '../../../durable/sql';
import { holds } from '../../../job/limits/overrides';
import { type LimitOverride, type Limits, overridden, plainKey } from '../../../job/limits/policy';
import { type StoredUsage, Usage } from '../../../job/limits/usage';
import type { Allowances } from './allowances';
import type { Overrides } from './overrides';

/** Available jobs of a key that do not run, and those of them whose starts were counted. */
export interface WaitingJobs {
  all: number;
  begun: number;
}

interface StoredKey extends StoredUsage {
  limits: Limits;
  /** When a job named them, epoch ms; of a key that counts in all queues. */
  named_at?: number;
}

export type StoredRow = { check_at: number | null; data: string };

export class Limiter {
  limits: Limits = {};
  /** What the queue holds of the key's allowance; undefined: the key counts in this queue alone. */
  readonly holder: Holder | undefined;
  readonly usage: Usage;
  /** When it is next looked at, epoch ms, as it will be stored. */
  checkAt: number | null = null;
  isStored = false;
  isChanged = false;
  /** `checkAt` differs from the row. */
  isCheckMoved = false;
  /** A job has come, and no answer of the key's desk since. */
  hasArrived = false;

  constructor(
    readonly key: string,
    private readonly around: { overrides: Overrides; allowances: Allowances },
    row?: StoredRow,
  ) {
    // An unreadable row counts as a key without limits.
    const stored = ((row && parseStored(row.data)) ?? {}) as Partial<StoredKey>;
    if (row) {
      this.checkAt = row.check_at;
      this.isStored = true;
    }
    this.limits = stored.limits ?? {};
    this.usage = new Usage(stored);
    this.holder = around.allowances.of(key);
    if (this.holder && stored.limits) {
      this.holder.declared ??= { limits: stored.limits, at: stored.named_at ?? 0 };
    }
  }

  get name(): string {
    return plainKey(this.key);
  }

  data(): string {
    const stored: StoredKey = {
      limits: this.limits,
      ...this.usage.stored(),
      ...(this.holder?.declared && { named_at: this.holder.declared.at }),
    };
    return JSON.stringify(stored);
  }

  overrideAt(now: number): LimitOverride | undefined {
    const override = this.around.overrides.get(this.name);
    return override && holds(override, now) ? override : undefined;
  }

  inForce(now: number): Limits {
    if (this.holder) return this.holder.limits(this.situation(now));
    return overridden(this.limits, this.around.overrides.at(this.key, now));
  }

  private situation(now: number, running?: number): Situation {
    return this.around.allowances.situation(this.key, now, running);
  }

  /** It has no room, but the key's desk may have some: nothing is decided. */
  isUndecided(running: number, now: number): boolean {
    return this.holder?.isUndecided(this.situation(now, running)) ?? false;
  }

  isStopped(now: number): boolean {
    const { concurrency, rate, throttle } = this.inForce(now);
    return concurrency === 0 || rate?.limit === 0 || throttle?.limit === 0;
  }

  /** How many may start now, while `running` attempts run. @param hasBegun for jobs whose start was counted before */
  room(running: number, now: number, hasBegun = false): number {
    if (this.holder) {
      const situation = this.situation(now, running);
      return hasBegun ? this.holder.roomToRun(situation) : this.holder.room(situation);
    }
    const limits = this.inForce(now);
    return hasBegun ? this.usage.roomToGoOn(limits, running) : this.usage.room(limits, running, now);
  }

  /** When rate and throttle let the next job start, epoch ms; undefined: an operator or the end of an attempt must. */
  opensAt(now: number): number | undefined {
    return this.holder ? this.holder.opensAt(this.situation(now)) : this.usage.opensAt(this.inForce(now), now);
  }

  /** When there will be more room than now, epoch ms. */
  resetsAt(now: number): number | undefined {
    return this.holder ? this.opensAt(now) : this.usage.resetsAt(this.inForce(now), now);
  }

  /** Can such a moment be known? */
  mayBook(now: number): boolean {
    if (this.holder) return this.opensAt(now) !== undefined;
    const { rate, throttle } = this.inForce(now);
    return (rate !== undefined || throttle !== undefined) && !this.isStopped(now);
  }

  /** A moment for a job that is rescheduled, epoch ms; undefined: it cannot be known. */
  book(now: number): number | undefined {
    return this.holder ? this.opensAt(now) : this.usage.book(this.inForce(now), now);
  }

  withoutRoom({ all, begun }: WaitingJobs, running: number, now: number): number {
    return Math.max(0, all - begun - this.room(running, now), all - this.room(running, now, true));
  }

  started(count: number, now: number): void {
    if (this.holder) this.holder.take(count, this.situation(now));
    else if (this.usage.started(this.inForce(now), count, now)) this.isChanged = true;
  }

  setCheck(at: number | null): void {
    if (at === this.checkAt) return;
    this.checkAt = at;
    this.isChanged = true;
    this.isCheckMoved = true;
  }
}
