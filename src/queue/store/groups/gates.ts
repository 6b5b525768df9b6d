/**
 * Which groups may start another job. Three facts decide: how many attempts of the group run, how many jobs of it have
 * started within the period of its rate, and, where the order is strict, whether a job of it has begun and must end
 * first. In memory; rebuilt from the leases, from one index, and from the starts.
 */
import { column, LIMIT } from '../../../durable/sql';
import type { GroupLimits } from '../../../job/group';
import type { GroupRules } from '../../../job/group-rules';
import { isBegun, type JobRow } from '../job-row';
import type { Sizes } from '../sizes';
import { GroupStarts } from './starts';

/** Where a strict order holds, a job that has begun has this group in its row until it has ended. */
const HOLDERS = `SELECT key, holds_group FROM jobs WHERE holds_group IS NOT NULL ORDER BY key ${LIMIT}`;
const HOLDERS_OF = 'SELECT key FROM jobs WHERE holds_group = ? ORDER BY key';

/** Why a group may not start another job now. `opensAt`: when its rate lets it, epoch ms. */
export type Hold = { by: 'pause' | 'order' | 'concurrency' } | { by: 'rate'; opensAt: number };

const NONE: readonly number[] = [];

const BY_PAUSE: Hold = { by: 'pause' };
const BY_ORDER: Hold = { by: 'order' };
const BY_CONCURRENCY: Hold = { by: 'concurrency' };

export class GroupGates {
  readonly starts: GroupStarts;
  /** Their keys, by group; undefined: there are more, and each look at a group reads the index. */
  private holders: Map<string, number[]> | undefined = new Map();
  private held = 0;
  /** Groups that may start a job which they could not start before. */
  private readonly freed = new Set<string>();

  /** @param running attempts that run, by group @param currentRules of the queue; undefined: it has none */
  constructor(
    private readonly sql: SqlStorage,
    private readonly running: ReadonlyMap<string, number>,
    private readonly currentRules: () => GroupRules | undefined,
    private readonly sizes: Sizes,
  ) {
    this.starts = new GroupStarts(sql, () => this.rules?.periods, sizes);
  }

  get rules(): GroupRules | undefined {
    return this.currentRules();
  }

  load(): void {
    this.holders = new Map();
    this.held = 0;
    this.freed.clear();
    this.starts.forget();
    const rows = this.sql.exec<{ key: number; holds_group: string }>(HOLDERS, this.sizes.holders + 1);
    for (const { key, holds_group } of rows) this.holds(holds_group, key);
  }

  /** Are jobs that hold their groups up found only where they stand in the due index? Too many are there for memory. */
  get areFoundLater(): boolean {
    return this.holders === undefined;
  }

  get isStrict(): boolean {
    return this.rules?.order === 'strict';
  }

  /** The priority that counts: where the order is strict, a job of a group would pass others of it by its own. */
  priorityOf(group: string | undefined, priority: number): number {
    return this.isStrict && group !== undefined ? 0 : priority;
  }

  /** Do groups wait for the end of their attempts? */
  get areBounded(): boolean {
    return this.isStrict || this.rules?.boundConcurrency === true;
  }

  /** Why its group keeps this job from starting; undefined: it may. @param taken of the group, by the same claim */
  holdOf(
    group: string,
    row: Pick<JobRow, 'key' | 'attempt' | 'history'>,
    taken: number,
    now: number,
  ): Hold | undefined {
    if (this.isPaused(group)) return BY_PAUSE;
    const limits = this.limitsOf(group);
    const under = this.runningOf(group) + taken;
    if (this.isStrict) {
      if (under > 0) return BY_ORDER;
      const holders = this.keysOf(group);
      if (holders.length > 0 && !holders.includes(row.key)) return BY_ORDER;
    } else if (limits?.concurrency !== undefined && under >= limits.concurrency) return BY_CONCURRENCY;
    const rate = limits?.rate;
    if (!rate || isBegun(row) || this.starts.room(group, rate, taken, now) > 0) return undefined;
    return { by: 'rate', opensAt: this.starts.opensAt(group, rate, taken, now) };
  }

  /** How many jobs of the group its rate lets start together, the given one first. */
  roomForChunk(group: string, now: number): number {
    const rate = this.limitsOf(group)?.rate;
    return rate ? Math.max(1, this.starts.room(group, rate, 0, now)) : Number.POSITIVE_INFINITY;
  }

  /** Jobs of these groups start now: one entry for each. One row written if any of them has a rate. */
  started(groups: readonly string[], now: number): void {
    if (!this.rules?.periods) return;
    const counts = new Map<string, number>();
    for (const group of groups) if (this.limitsOf(group)?.rate) counts.set(group, (counts.get(group) ?? 0) + 1);
    this.starts.note(counts, now);
  }

  /** Does the job continue an attempt that the rate of its group has counted? */
  goesOn(group: string, row: Pick<JobRow, 'attempt' | 'history'>): boolean {
    return isBegun(row) && this.limitsOf(group)?.rate !== undefined;
  }

  isPaused(group: string): boolean {
    return this.rules?.isPaused(group) === true;
  }

  limitsOf(group: string): GroupLimits | undefined {
    return this.rules?.limitsOf(group);
  }

  /** The job that must end before another one of its group starts; undefined: none has begun. */
  holderOf(group: string): number | undefined {
    return this.keysOf(group)[0];
  }

  /** All of them: there are several where the queue had another order when they began. */
  holdersOf(group: string): readonly number[] {
    return this.isStrict ? this.keysOf(group) : [];
  }

  /** Keys of the jobs that have begun and must end first, by group, unless they are found later. */
  get holding(): Iterable<readonly [string, readonly number[]]> {
    return (this.isStrict && this.holders) || [];
  }

  runningOf(group: string): number {
    return this.running.get(group) ?? 0;
  }

  /** The job holds its group up from one move to the next. */
  changed(key: number, before: string | null, after: string | null): void {
    if (before === after) return;
    if (before !== null) this.release(before, key);
    if (after !== null) this.holds(after, key);
  }

  /** Other limits hold for the group. */
  mayContinue(group: string): void {
    this.freed.add(group);
  }

  /** Something ended that the group may have waited for. */
  free(group: string): void {
    if (this.areBounded) this.freed.add(group);
  }

  takeFreed(): string[] {
    if (this.freed.size === 0) return [];
    const groups = [...this.freed];
    this.freed.clear();
    return groups;
  }

  private keysOf(group: string): readonly number[] {
    if (this.holders) return this.holders.get(group) ?? NONE;
    return column(this.sql, HOLDERS_OF, group);
  }

  private holds(group: string, key: number): void {
    if (!this.holders) return;
    const keys = this.holders.get(group);
    if (keys?.includes(key)) return;
    if (keys) keys.push(key);
    else this.holders.set(group, [key]);
    this.held++;
    if (this.held > this.sizes.holders) this.holders = undefined;
  }

  private release(group: string, key: number): void {
    const keys = this.holders?.get(group) ?? NONE;
    const others = keys.filter((other) => other !== key);
    this.held -= keys.length - others.length;
    if (others.length > 0) this.holders?.set(group, others);
    else this.holders?.delete(group);
    this.free(group);
  }
}
