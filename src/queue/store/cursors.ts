/**
 * How far consumers have read, so that claims read little. Each push target has a cursor; pull workers share one per
 * set of types. Memory only, bounded: without one a consumer reads from the start.
 */
import { TERM_MS } from '../../allowance/rules';
import { isWithin } from '../../durable/backoff';
import { getOrInsert } from '../../job/get-or-insert';
import { ChunkScan } from './chunks/scan';
import { Scan } from './scan';
import { MemoryBudget, type Sizes } from './sizes';

/** Cursors of sets of types, and characters of their names, that are kept. */
const MAX_CURSORS = 64;
const MAX_CHARS = 1024 * 1024;

/** Begins the names of workers that pull, among those of all consumers that gather chunks. */
export const PULLED = 'pull ';

/** Groups of which it is known where their first job of the line waits. */
const MAX_READ_FOR = 1_000;

class PullScans {
  readonly any: Scan;
  /** When a worker last asked, epoch ms. */
  private askedAt = Number.NEGATIVE_INFINITY;
  /** Those used last stand last. */
  private readonly byTypes = new Map<string, Scan>();
  private chars = 0;

  constructor(
    private readonly memory: MemoryBudget,
    private readonly isAwaited: () => boolean,
  ) {
    this.any = new Scan(memory);
  }

  /** A worker asks. @param now epoch ms @returns whether none had within {@link TERM_MS} */
  asks(now: number): boolean {
    const isBack = !isWithin(this.askedAt, TERM_MS, now);
    this.askedAt = now;
    return isBack;
  }

  /** Could a worker take jobs that may start now? Others are as good as gone until they ask. */
  isServed(now: number): boolean {
    return this.isAwaited() || isWithin(this.askedAt, TERM_MS, now);
  }

  /** The cursor for these types. @param types see {@link typesKey}; empty: any @param head how far the line is taken */
  of(types: string, head: number): Scan {
    if (types === '') return this.any;
    let scan = this.byTypes.get(types);
    if (scan) this.byTypes.delete(types);
    else {
      scan = new Scan(this.memory);
      scan.reset(head);
      this.chars += types.length;
    }
    this.byTypes.set(types, scan);
    for (const [oldest] of this.byTypes) {
      if (oldest === types || (this.byTypes.size <= MAX_CURSORS && this.chars <= MAX_CHARS)) break;
      this.byTypes.delete(oldest);
      this.chars -= oldest.length;
    }
    return scan;
  }

  all(): Scan[] {
    return [this.any, ...this.byTypes.values()];
  }
}

export class Cursors {
  private readonly memory: MemoryBudget;
  readonly pull: PullScans;
  readonly push = new Map<string, Scan>();
  /** What is gathered into chunks, by consumer. Those used last stand last. */
  readonly chunks = new Map<string, ChunkScan>();
  /** Memory was lost: which keys jobs wait for is unknown, until claims have read them again. */
  private isLost = true;
  /** Up to this key the line was discarded to make room. */
  shedUntil = 0;
  /** Up to this key the line has no job of the group that waits, as far as is known. */
  private readonly readFor = new Map<string, number>();

  /** @param leases know how far the line of immediate jobs was taken @param isPulled does a worker wait for jobs? */
  constructor(
    private readonly leases: { readonly head: number },
    sizes: Sizes,
    isPulled: () => boolean,
  ) {
    this.memory = new MemoryBudget(sizes, () => this.all().reduce((sum, { held }) => sum + held, 0));
    this.pull = new PullScans(this.memory, isPulled);
  }

  reset(): void {
    this.isLost = true;
    this.shedUntil = 0;
    this.readFor.clear();
    for (const scan of this.all()) scan.reset(this.leases.head);
  }

  all(): Scan[] {
    return [...this.pull.all(), ...this.push.values(), ...this.chunks.values()];
  }

  /** What a consumer gathers into chunks. @param name names it, and how it gathers */
  chunksOf(name: string): ChunkScan {
    const scan = this.chunks.get(name) ?? this.begun(new ChunkScan(this.memory));
    this.chunks.delete(name);
    this.chunks.set(name, scan);
    for (const [oldest] of this.chunks) {
      if (this.chunks.size <= MAX_CURSORS) break;
      this.chunks.delete(oldest);
    }
    return scan;
  }

  readForGroup(group: string): number {
    return this.readFor.get(group) ?? 0;
  }

  hasReadForGroup(group: string, key: number): void {
    this.readFor.delete(group);
    this.readFor.set(group, key);
    const [oldest] = this.readFor.keys();
    if (this.readFor.size > MAX_READ_FOR && oldest !== undefined) this.readFor.delete(oldest);
  }

  /** When the first of the groups may start a job again that wait for a moment, epoch ms. */
  nextGroup(): number {
    return this.all().reduce((next, scan) => Math.min(next, scan.nextGroup), Number.POSITIVE_INFINITY);
  }

  /** A key has room. @param starts for new jobs @param runs for begun ones @returns may more jobs start than before? */
  opens(key: string, starts: number, runs: number): boolean {
    let isNew = this.isLost && (starts > 0 || runs > 0);
    if (isNew) this.isLost = false;
    for (const scan of this.all()) if (scan.opens(key, starts, runs)) isNew = true;
    return isNew;
  }

  /** Do jobs that a consumer has read wait for this key, as far as is known without room? */
  waitFor(key: string): boolean {
    return this.all().some((scan) => scan.waitsFor(key));
  }

  /** As {@link waitFor}, of consumers that could take these jobs now. @param now epoch ms */
  needs(key: string, now: number): boolean {
    if (this.pull.isServed(now)) return this.waitFor(key);
    const gathered = [...this.chunks].flatMap(([name, scan]) => (name.startsWith(PULLED) ? [] : [scan]));
    return [...this.push.values(), ...gathered].some((scan) => scan.waitsFor(key));
  }

  /** The keys that jobs wait for which were read, as often as there are any. */
  *keysBehind(): Generator<string> {
    for (const scan of this.all()) for (const lanes of scan.behind.values()) yield* lanes.keys();
  }

  ofTarget(target: string): Scan {
    return getOrInsert(this.push, target, () => this.begun(new Scan(this.memory)));
  }

  private begun<S extends Scan>(scan: S): S {
    scan.reset(this.leases.head);
    return scan;
  }

  /** How far the line of immediate jobs is taken, as far as the cursors know. */
  head(): number {
    return this.all().reduce((head, scan) => Math.max(head, scan.head), this.leases.head);
  }
}

/** A name for a set of types, the same in whatever order they come. Empty: any type. */
export const typesKey = (types: readonly string[] | undefined): string =>
  types === undefined ? '' : [...new Set(types)].sort().join(' ');
