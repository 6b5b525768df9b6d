/**
 * Which groups may start another job. Two facts decide: how many attempts of the group run, and, where the order is
 * strict, whether a job of it has begun and must end first. In memory; rebuilt from the leases, and from one index.
 */
import type { GroupSettings } from '../../../job/group';

/** Where a strict order holds, a job that has begun has this group in its row until it has ended. */
const HOLDERS = 'SELECT key, holds_group FROM jobs WHERE holds_group IS NOT NULL ORDER BY key';

export class GroupGates {
  /** Keys of jobs that have begun and wait to continue, by group. */
  private readonly holders = new Map<string, number[]>();
  /** Groups that may start a job which they could not start before. */
  private readonly freed = new Set<string>();

  /**
   * @param running attempts that run, by group
   * @param said what the queue says of its groups; undefined: nothing
   */
  constructor(
    private readonly sql: SqlStorage,
    private readonly running: ReadonlyMap<string, number>,
    private readonly said: () => GroupSettings | undefined,
  ) {}

  get settings(): GroupSettings | undefined {
    return this.said();
  }

  /** Rebuilds memory from storage. */
  load(): void {
    this.holders.clear();
    this.freed.clear();
    for (const { key, holds_group } of this.sql.exec<{ key: number; holds_group: string }>(HOLDERS)) {
      this.holds(holds_group, key);
    }
  }

  get isStrict(): boolean {
    return this.settings?.order === 'strict';
  }

  /** Do groups wait for the end of their attempts? */
  get areBounded(): boolean {
    return this.isStrict || this.settings?.concurrency !== undefined;
  }

  /**
   * May this job start, as far as its group is concerned?
   * @param taken jobs of the group that the same claim has taken
   */
  mayStart(group: string, key: number, taken: number): boolean {
    const under = (this.running.get(group) ?? 0) + taken;
    if (!this.isStrict) return under < (this.settings?.concurrency ?? Number.POSITIVE_INFINITY);
    const holders = this.holders.get(group);
    return under === 0 && (holders === undefined || holders.includes(key));
  }

  /** The job that must end before another one of its group starts; undefined: none has begun. */
  holderOf(group: string): number | undefined {
    return this.holders.get(group)?.[0];
  }

  /** All of them: there are several where the queue had another order when they began. */
  holdersOf(group: string): readonly number[] {
    return (this.isStrict && this.holders.get(group)) || [];
  }

  /** Keys of the jobs that have begun and must end first, by group. */
  get holding(): Iterable<readonly [string, readonly number[]]> {
    return this.isStrict ? this.holders : [];
  }

  /** Attempts of the group that run. */
  runningOf(group: string): number {
    return this.running.get(group) ?? 0;
  }

  /** The job holds its group up from one move to the next. */
  changed(key: number, before: string | null, after: string | null): void {
    if (before === after) return;
    if (before !== null) this.release(before, key);
    if (after !== null) this.holds(after, key);
  }

  /** Something ended that the group may have waited for. */
  free(group: string): void {
    if (this.areBounded) this.freed.add(group);
  }

  /** The groups that were freed since the last call. */
  takeFreed(): string[] {
    if (this.freed.size === 0) return [];
    const groups = [...this.freed];
    this.freed.clear();
    return groups;
  }

  private holds(group: string, key: number): void {
    const keys = this.holders.get(group);
    if (!keys) this.holders.set(group, [key]);
    else if (!keys.includes(key)) keys.push(key);
  }

  private release(group: string, key: number): void {
    const keys = this.holders.get(group)?.filter((other) => other !== key) ?? [];
    if (keys.length > 0) this.holders.set(group, keys);
    else this.holders.delete(group);
    this.free(group);
  }
}
