/**
 * How many jobs of each group have not ended: counted when a bound first asks for it, then kept in memory. The groups
 * that come first have counters of their own, the others share some. So memory is bounded however many groups there
 * are, and what a shared counter has is never too low. Where it would refuse a job, that group is counted again.
 */
import { fnv1a } from '../../../job/fnv';
import { groupOfRow, type JobRow } from '../job-row';

/** Groups with a counter of their own, at most, and counters that all others share: a power of two. */
const MAX_OWN = 100_000;
const SHARED = 2 ** 20;

type Owned = Pick<JobRow, 'group' | 'body'>;

export class GroupCounts {
  private own: Map<string, number> | undefined;
  private shared: Uint32Array | undefined;

  /** @param open all jobs that have not ended, those without a group left out as far as that is known */
  constructor(private readonly open: () => Iterable<Owned>) {}

  forget(): void {
    this.own = undefined;
    this.shared = undefined;
  }

  added(job: Owned): void {
    if (!this.own) return;
    const group = groupOfRow(job);
    if (group !== undefined) this.add(this.own, group);
  }

  gone(job: Owned): void {
    if (!this.own) return;
    const group = groupOfRow(job);
    if (group === undefined) return;
    const count = this.own.get(group);
    if (count === undefined) {
      this.addShared(group, -1);
    } else if (count > 1) this.own.set(group, count - 1);
    else this.own.delete(group);
  }

  /** Do more jobs than this of the group not have ended? Then how many; else undefined. */
  above(group: string, limit: number): number | undefined {
    this.own ??= this.countAll();
    const shared = this.shared?.[placeOf(group)] ?? 0;
    const most = (this.own.get(group) ?? 0) + shared;
    if (most <= limit) return undefined;
    const count = shared === 0 ? most : this.recount(group);
    return count > limit ? count : undefined;
  }

  private countAll(): Map<string, number> {
    const own = new Map<string, number>();
    for (const job of this.open()) {
      const group = groupOfRow(job);
      if (group !== undefined) this.add(own, group);
    }
    return own;
  }

  private add(own: Map<string, number>, group: string): void {
    const count = own.get(group);
    if (count !== undefined || own.size < MAX_OWN) {
      own.set(group, (count ?? 0) + 1);
      return;
    }
    this.addShared(group, 1);
  }

  private addShared(group: string, by: 1 | -1): void {
    this.shared ??= new Uint32Array(SHARED);
    const place = placeOf(group);
    this.shared[place] = (this.shared[place] as number) + by;
  }

  private recount(group: string): number {
    let count = 0;
    for (const job of this.open()) if (groupOfRow(job) === group) count++;
    return count;
  }
}

/** A number below {@link SHARED}. */
export function placeOf(group: string): number {
  const hash = fnv1a(group);
  return (hash ^ (hash >>> 12)) & (SHARED - 1);
}
