/**
 * Leases: who runs what, and until when.
 *
 * A claim writes one row for its whole batch. Nothing is written when an attempt ends: the place of the job (its own row
 * ended or with `claims` raised, the archive, or no place at all) shows that the entry is over. A row whose entries are all over is reused by a later claim,
 * so a lease costs one written row for each claim and none for its end.
 *
 * The same rows carry, for nothing, what must survive an eviction: how far the line of immediate jobs was taken (`head`)
 * and the next sequence number, so that no number is ever given twice.
 *
 * In memory stays only what runs right now, never the backlog.
 */
import { grouped } from '../../job/size';
import { STATE } from './columns';

/** One running attempt. Times in epoch ms. */
export interface Active {
  key: number;
  type: string;
  /** Number of this claim over the job's whole life, from 1. */
  claim: number;
  /** Attempt number shown to the world, from 1. */
  attempt: number;
  leaseId: number;
  workerId?: string;
  startedAt: number;
  /** The lease ends at this time… */
  expiresAt: number;
  /** …and a heartbeat moves it to now + this, in ms. */
  visibilityMs: number;
  /** Execution limit; no heartbeat moves it. */
  timeoutAt: number;
  /** It is over and could not be ended: to be looked at again at this time. */
  putOff?: number;
  /** Name of the target, when pushed. */
  target?: string;
  /**
   * Pushed by this object before it was restarted: nobody waits for the answer, and most likely nobody works at it. Its
   * lease runs on, but it takes no slot from the jobs that wait.
   */
  orphaned?: true;
  /** Suspected of killing its handler Worker: nothing else runs there meanwhile. */
  solo?: true;
  /** The key it counts under, if it is limited. */
  limitKey?: string;
  /** Did the job come from the due index (true) or from the line of immediate jobs? */
  indexed: boolean;
}

/** A pushed attempt's lease ends this long after its execution limit, ms: the dispatcher's own timer comes first. */
export const LEASE_BEYOND_TIMEOUT_MS = 10_000;

/** Who runs the attempt, as far as it is known by name. @param by is given these names */
export function ranBy<T extends { worker_id?: string; target?: string }>({ workerId, target }: Active, by: T): T {
  if (workerId !== undefined) by.worker_id = workerId;
  if (target !== undefined) by.target = target;
  return by;
}

/** The execution limit of a pushed attempt in ms; undefined when it was pulled. */
export function pushedTimeoutMs(active: Active): number | undefined {
  return active.target === undefined ? undefined : active.visibilityMs - LEASE_BEYOND_TIMEOUT_MS;
}

interface LeaseRow {
  /** Holder. */
  w?: string;
  /** Target, when pushed. */
  t?: string;
  /** Start of the attempts. */
  s: number;
  /** Head of the line of immediate jobs. */
  h: number;
  /** Next sequence number. */
  q: number;
  /** [key, claim, attempt, expiresAt, visibilityMs, timeoutAt, indexed, type]; older rows may have a ninth member. */
  e: [number, number, number, number, number, number, 0 | 1, string][];
  /** What the queue has counted lately: it rides along. */
  m?: object;
}

/** Parses a lease row; undefined when it cannot be read. */
function readLease(data: string): LeaseRow | undefined {
  try {
    const lease = JSON.parse(data) as Partial<LeaseRow> | null;
    const readable =
      Number.isSafeInteger(lease?.s) &&
      Number.isSafeInteger(lease?.h) &&
      Number.isSafeInteger(lease?.q) &&
      Array.isArray(lease?.e) &&
      lease.e.every((entry) => Array.isArray(entry) && entry.slice(0, 6).every(Number.isSafeInteger));
    return readable ? (lease as LeaseRow) : undefined;
  } catch {
    return undefined;
  }
}

/**
 * A running attempt as its lease row has it. A push whose answer this object still awaits goes on as before; of any other
 * nobody awaits the answer, so its lease ends it.
 * @param pushed the push of this job that is under way
 */
function restored(
  leaseId: number,
  lease: LeaseRow,
  [key, claim, attempt, expiresAt, visibilityMs, timeoutAt, indexed, type]: LeaseRow['e'][number],
  limitKey: string | null,
  pushed: Active | undefined,
): Active {
  const isPushed = lease.t !== undefined;
  const underWay = pushed?.claim === claim ? pushed : undefined;
  return {
    ...{ key, type, claim, attempt, leaseId, startedAt: lease.s, expiresAt, visibilityMs, indexed: indexed === 1 },
    timeoutAt: isPushed && !underWay ? Number.MAX_SAFE_INTEGER : timeoutAt,
    ...(lease.w !== undefined && { workerId: lease.w }),
    ...(isPushed && { target: lease.t as string }),
    ...(isPushed && !underWay && { orphaned: true as const }),
    ...(underWay?.solo && { solo: true as const }),
    ...(limitKey !== null && { limitKey }),
  };
}

/** Bytes of an entry in a lease row at most, beside its type: seven numbers and what separates them. */
const ENTRY_BYTES = 150;

/** Bytes of an entry in a lease row. Types are ASCII. */
const entryBytes = ({ type }: Pick<Active, 'type'>): number => ENTRY_BYTES + type.length;

/** Entries that are read together. */
const LOAD_PAGE = 1_000;

/** Free rows kept for reuse; more than twice as many are deleted together. */
const KEEP_FREE = 64;
/** So many are deleted in one turn at most. */
const TRIM_AT_ONCE = 500;

/** When an attempt is over if nobody reports before, epoch ms. */
function endOf({ expiresAt, timeoutAt, putOff = 0 }: Active): number {
  return Math.max(Math.min(expiresAt, timeoutAt), putOff);
}

export class LeaseTable {
  /** Running attempts by job key. */
  readonly active = new Map<number, Active>();
  /** Those of them that were pushed and take a slot. */
  readonly pushed = new Set<Active>();
  /** No lease or execution limit ends before this time: a lower bound, so checking it costs nothing. */
  earliest = Number.POSITIVE_INFINITY;
  /** How far the line of immediate jobs was taken when the newest lease was written. */
  head = 0;
  /** Sequence numbers below this are on record outside the jobs themselves. */
  recordedSequence = 1;

  /** Running attempts of each key that limits any. */
  readonly runningByKey = new Map<string, number>();

  private readonly live = new Map<number, Set<number>>();
  /** Keys of attempts that ended since the last look. */
  private readonly freed = new Set<string>();
  private anyFreed = false;
  /** A lease could not be read when memory was rebuilt: which jobs it held is unknown. */
  hasLost = false;
  private free: number[] = [];
  private nextId = 1;
  /** The row that was granted last; 0 when memory was rebuilt since. */
  private newestId = 0;

  /** Size of one lease row at most, in bytes: the platform allows 2 MB. */
  maxRowBytes = 1024 * 1024;

  /** Attempts that run at once at most: each takes some hundred bytes of an isolate's 128 MB. */
  mostAtOnce = 200_000;

  /** The pushes whose answers this object awaits: no row knows that. */
  underWay: () => Iterable<Active> = () => [];

  /** @param rider JSON that rides in a row which is written */
  constructor(
    private readonly sql: SqlStorage,
    private readonly blocks: { holds(key: number): boolean },
    private readonly rider: () => string,
  ) {}

  /**
   * Rebuilds memory from storage, however many leases there are: entries count only if their job still waits for exactly that
   * claim to end.
   */
  load(): void {
    this.active.clear();
    this.pushed.clear();
    this.runningByKey.clear();
    this.freed.clear();
    this.anyFreed = false;
    this.live.clear();
    this.free = [];
    this.earliest = Number.POSITIVE_INFINITY;
    // What memory says may come from a transaction that was rolled back.
    this.head = 0;
    this.recordedSequence = 1;
    this.hasLost = false;
    const pushed = new Map(Array.from(this.underWay(), (active) => [active.key, active]));
    let page: { id: number; lease: LeaseRow }[] = [];
    let entries = 0;
    for (const { id, data } of this.sql.exec<{ id: number; data: string }>('SELECT id, data FROM leases')) {
      this.nextId = Math.max(this.nextId, id + 1);
      const lease = readLease(data);
      if (!lease) {
        // A row that cannot be read must not stop the queue: its jobs are simply no longer leased.
        this.hasLost = true;
        this.free.push(id);
        continue;
      }
      page.push({ id, lease });
      entries += 1 + lease.e.length;
      if (entries < LOAD_PAGE) continue;
      this.loadPage(page, pushed);
      page = [];
      entries = 0;
    }
    this.loadPage(page, pushed);
    // Jobs that lost their lease still stand in the line, behind its head: it must be read from the start.
    if (this.hasLost) this.head = 0;
  }

  private loadPage(page: readonly { id: number; lease: LeaseRow }[], pushed: ReadonlyMap<number, Active>): void {
    const claims = this.claimsOf(page.flatMap(({ lease }) => lease.e.map((entry) => entry[0])));
    for (const { id, lease } of page) {
      this.head = Math.max(this.head, lease.h);
      if (lease.q >= this.recordedSequence) this.newestId = id;
      this.recordedSequence = Math.max(this.recordedSequence, lease.q);
      const members = new Set<number>();
      for (const entry of lease.e) {
        const [key, claim] = entry;
        const job = claims.get(key);
        if (job?.claims !== claim - 1) continue;
        members.add(key);
        const active = restored(id, lease, entry, job.limit_key, pushed.get(key));
        this.begin(active);
        this.earliest = Math.min(this.earliest, active.expiresAt, active.timeoutAt);
      }
      if (members.size > 0) this.live.set(id, members);
      else this.free.push(id);
    }
  }

  private claimsOf(keys: number[]): Map<number, { claims: number; limit_key: string | null }> {
    const rows = this.sql
      .exec<{ key: number; claims: number; limit_key: string | null }>(
        `SELECT key, claims, limit_key FROM jobs WHERE key IN (SELECT value FROM json_each(?)) AND state = ${STATE.waiting}`,
        JSON.stringify(keys),
      )
      .toArray();
    const claims = new Map<number, { claims: number; limit_key: string | null }>(rows.map((row) => [row.key, row]));
    // No claim of a job in a block is over.
    for (const key of keys)
      if (!claims.has(key) && this.blocks.holds(key)) claims.set(key, { claims: 0, limit_key: null });
    return claims;
  }

  /** Writes the lease of a batch of claims. One row written, unless one cannot hold them all. */
  grant(batch: Omit<Active, 'leaseId'>[], position: { head: number; nextSequence: number }): void {
    for (const part of grouped(batch, entryBytes, this.maxRowBytes)) this.grantRow(part, position);
  }

  private grantRow(batch: Omit<Active, 'leaseId'>[], position: { head: number; nextSequence: number }): void {
    const id = this.free.pop() ?? this.nextId++;
    const members = new Set<number>();
    for (const entry of batch) {
      members.add(entry.key);
      this.begin({ ...entry, leaseId: id });
      this.earliest = Math.min(this.earliest, entry.expiresAt, entry.timeoutAt);
    }
    this.live.set(id, members);
    this.head = Math.max(this.head, position.head);
    this.recordedSequence = Math.max(this.recordedSequence, position.nextSequence);
    this.newestId = id;
    this.write(id);
  }

  /** Forgets a running attempt; the job's row already says that it is over. No row written. */
  release(active: Active): void {
    this.over(active);
    const members = this.live.get(active.leaseId);
    if (!members) return;
    members.delete(active.key);
    if (members.size === 0) {
      this.live.delete(active.leaseId);
      this.free.push(active.leaseId);
    }
  }

  /** Has an attempt ended since the last call of {@link takeFreed}? */
  get hasFreed(): boolean {
    return this.anyFreed;
  }

  /** The keys of the attempts that ended since the last call. */
  takeFreed(): string[] {
    const keys = [...this.freed];
    this.freed.clear();
    this.anyFreed = false;
    return keys;
  }

  private begin(active: Active): void {
    this.active.set(active.key, active);
    if (active.target !== undefined && !active.orphaned) this.pushed.add(active);
    const { limitKey } = active;
    if (limitKey !== undefined) this.runningByKey.set(limitKey, (this.runningByKey.get(limitKey) ?? 0) + 1);
  }

  private over(active: Active): void {
    if (!this.active.delete(active.key)) return;
    this.pushed.delete(active);
    this.anyFreed = true;
    const { limitKey } = active;
    if (limitKey === undefined) return;
    this.freed.add(limitKey);
    const running = (this.runningByKey.get(limitKey) ?? 0) - 1;
    if (running > 0) this.runningByKey.set(limitKey, running);
    else this.runningByKey.delete(limitKey);
  }

  /** Moves the end of these leases to now + their own length (or `visibilityMs`). One row written per lease. */
  extend(entries: Active[], now: number, visibilityMs?: number): void {
    const touched = new Set<number>();
    for (const entry of entries) {
      if (visibilityMs !== undefined) entry.visibilityMs = visibilityMs;
      entry.expiresAt = now + entry.visibilityMs;
      this.earliest = Math.min(this.earliest, entry.expiresAt);
      touched.add(entry.leaseId);
    }
    for (const id of touched) this.write(id);
  }

  /**
   * Running attempts whose lease or execution limit has ended, at most `limit`, earliest first. Makes `earliest` exact again
   * when these are all.
   */
  overdue(now: number, limit: number): Active[] {
    if (now < this.earliest) return [];
    const due: Active[] = [];
    let earliest = Number.POSITIVE_INFINITY;
    for (const entry of this.active.values()) {
      const end = endOf(entry);
      if (end > now) earliest = Math.min(earliest, end);
      else if (due.push(entry) === limit) break;
    }
    if (due.length < limit) this.earliest = earliest;
    return due.sort((a, b) => endOf(a) - endOf(b));
  }

  /** Is the attempt over, though nobody has ended it yet? */
  isOverdue(key: number, now: number): boolean {
    const entry = this.active.get(key);
    return entry !== undefined && endOf(entry) <= now;
  }

  /** An attempt that is over could not be ended: it is looked at again at `at` (epoch ms). */
  putOff(entry: Active, at: number): void {
    entry.putOff = at;
    this.earliest = Math.min(this.earliest, at);
  }

  /** Deletes surplus free rows, which only a burst of single claims leaves behind. Answers whether any went. */
  trim(): boolean {
    if (this.free.length <= 2 * KEEP_FREE) return false;
    // The row written last says how far sequence numbers are given out.
    const newest = this.free.indexOf(this.newestId);
    if (newest > 0) [this.free[0], this.free[newest]] = [this.newestId, this.free[0] as number];
    const surplus = this.free.splice(KEEP_FREE, TRIM_AT_ONCE);
    this.sql.exec('DELETE FROM leases WHERE id IN (SELECT value FROM json_each(?))', JSON.stringify(surplus)).toArray();
    return true;
  }

  private write(id: number): void {
    const entries = [...(this.live.get(id) ?? [])].map((key) => this.active.get(key) as Active);
    const first = entries[0];
    if (!first) return;
    const row: LeaseRow = {
      ...(first.workerId !== undefined && { w: first.workerId }),
      ...(first.target !== undefined && { t: first.target }),
      s: first.startedAt,
      h: this.head,
      q: this.recordedSequence,
      e: entries.map((entry) => [
        entry.key,
        entry.claim,
        entry.attempt,
        entry.expiresAt,
        entry.visibilityMs,
        entry.timeoutAt,
        entry.indexed ? 1 : 0,
        entry.type,
      ]),
    };
    const data = `${JSON.stringify(row).slice(0, -1)},"m":${this.rider()}}`;
    this.sql.exec('INSERT OR REPLACE INTO leases (id, data) VALUES (?, ?)', id, data).toArray();
  }
}
