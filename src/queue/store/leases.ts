/**
 * Leases: which runner has which jobs, until when. A claim writes one row for its batch, and nothing at the end: where
 * the job is shows that the entry is over. Later claims reuse rows that are over; a lone job lives in its lease row.
 *
 * The rows also carry how far the line is taken (`head`) and the next sequence number. Memory holds only running
 * attempts.
 */
import { rows } from '../../durable/sql';
import { getOrInsert } from '../../job/get-or-insert';
import { bytesOf, grouped } from '../../job/size';
import { type Active, NEVER } from './active';
import type { Blocks } from './blocks';
import { STATE } from './job-row';
import { type LeaseRow, leasedBy, leaseText, readLease, restored } from './lease-row';
import { writeRow } from './own-rows';
import type { SingleRow } from './singles';

/** Bytes of an entry in a lease row at most, without its type: seven numbers and their separators. */
const ENTRY_BYTES = 150;

/** Bytes of an entry in a lease row. Types are ASCII. */
const entryBytes = ({ type, group = '' }: Pick<Active, 'type' | 'group'>): number =>
  ENTRY_BYTES + type.length + (group === '' ? 0 : bytesOf(JSON.stringify(group)));

const bytesOfUnit = (unit: readonly Claim[]): number => unit.reduce((sum, claim) => sum + entryBytes(claim), 0);

type Claim = Omit<Active, 'leaseId'>;

const LOAD_PAGE = 1_000;

/** Free rows kept for reuse; more than twice as many are deleted together. */
const KEEP_FREE = 64;
/** Free rows deleted in one turn, at most. */
const TRIM_AT_ONCE = 500;

/** When an attempt is over if no report comes before, epoch ms. */
export const endOf = ({ expiresAt, timeoutAt, putOff = 0 }: Active): number =>
  Math.max(Math.min(expiresAt, timeoutAt), putOff);

export class LeaseTable {
  /** Running attempts by job key. */
  readonly active = new Map<number, Active>();
  /** The running attempts that were pushed and take a slot. */
  readonly pushed = new Set<Active>();
  /** No lease or execution limit ends before this time: a lower bound, so checking it costs nothing. */
  earliest = Number.POSITIVE_INFINITY;
  /** How far the line of immediate jobs was taken when the newest lease was written. */
  head = 0;
  /** Sequence numbers below this are on record outside the jobs themselves. */
  recordedSequence = 1;

  readonly runningByKey = new Map<string, number>();
  readonly runningByGroup = new Map<string, number>();

  private readonly live = new Map<number, Set<number>>();
  /** The chunks of strict groups, by their leases and numbers: their attempts in order, those that ended too. */
  private readonly ordered = new Map<number, Map<number | undefined, Active[]>>();
  /** Keys of attempts that ended since the last look. */
  private readonly freed = new Set<string>();
  private anyFreed = false;
  /** All slots were taken, until one of the attempts ended. */
  private wasFull = false;
  /** A lease could not be read when memory was rebuilt: which jobs it held is unknown. */
  private hasLost = false;
  private free: number[] = [];
  private nextId = 1;
  /** The row that was granted last; 0 if memory was rebuilt since. */
  private newestId = 0;

  /** Size of one lease row at most, in bytes: the platform allows 2 MB. */
  maxRowBytes = 1024 * 1024;

  /** Attempts that run at once at most: each takes some hundred bytes of an isolate's 128 MB. */
  mostAtOnce = 200_000;

  /** Calls whose answers this object awaits, by the job's key: no row knows that. */
  readonly underWay = new Set<readonly { readonly active: Active }[]>();

  /** @param metersText JSON that rides in a row which is written */
  constructor(
    private readonly sql: SqlStorage,
    private readonly blocks: Pick<Blocks, 'head' | 'claimsOf' | 'takeAlone' | 'singles'>,
    private readonly metersText: () => string,
  ) {}

  /** Rebuilds memory from storage, however many leases there are. An entry counts only if its claim has not ended. */
  load(): void {
    const { active, runningByKey, runningByGroup, freed, live, ordered } = this;
    for (const memory of [active, this.pushed, runningByKey, runningByGroup, freed, live, ordered]) memory.clear();
    this.anyFreed = false;
    this.wasFull = false;
    this.free = [];
    this.earliest = Number.POSITIVE_INFINITY;
    // Memory may come from a transaction that was rolled back.
    this.head = 0;
    this.recordedSequence = 1;
    this.hasLost = false;
    const pushed = new Map([...this.underWay].flatMap((batch) => batch.map(({ active }) => [active.key, active])));
    const { singles } = this.blocks;
    singles.clear();
    let page: { id: number; lease: LeaseRow }[] = [];
    let inPage: SingleRow[] = [];
    let entries = 0;
    const stored = this.sql.exec<{ id: number; data: string; job: string | null }>('SELECT id, data, job FROM leases');
    for (const { id, data, job } of stored) {
      this.nextId = Math.max(this.nextId, id + 1);
      const lease = readLease(data);
      if (job !== null) inPage.push({ leaseId: id, text: job, leased: lease && leasedBy(lease) });
      if (!lease) {
        // An unreadable row must not stop the queue: its jobs are simply no longer leased.
        this.hasLost = true;
        this.free.push(id);
        continue;
      }
      page.push({ id, lease });
      entries += 1 + lease.e.length;
      if (entries < LOAD_PAGE) continue;
      singles.restore(inPage);
      this.loadPage(page, pushed);
      page = [];
      inPage = [];
      entries = 0;
    }
    singles.restore(inPage);
    this.loadPage(page, pushed);
    for (const row of singles.after(0)) {
      if (this.active.has(row.key)) continue;
      this.hasLost = true;
      // The claim has used up an attempt, and no later run may have its name.
      writeRow(this.sql, { ...row, claims: 1, attempt: 1 });
      singles.leave(row.key);
    }
    // Jobs that lost their lease are still in the line, behind its head: it must be read from the start.
    if (this.hasLost) this.head = 0;
  }

  private loadPage(page: readonly { id: number; lease: LeaseRow }[], pushed: ReadonlyMap<number, Active>): void {
    const claims = this.claimsOf(page.flatMap(({ lease }) => lease.e.map((entry) => entry[0])));
    for (const { id, lease } of page) {
      this.head = Math.max(this.head, lease.h);
      if (lease.q >= this.recordedSequence) this.newestId = id;
      this.recordedSequence = Math.max(this.recordedSequence, lease.q);
      const members = new Set<number>();
      for (const [index, [key, claim]] of lease.e.entries()) {
        const job = claims.get(key);
        const isOver = job?.claims !== claim - 1;
        if (isOver && !lease.p?.[index]) continue;
        const active = restored(id, lease, index, job?.limit_key ?? null, pushed.get(key));
        this.order(active);
        if (isOver) continue;
        members.add(key);
        this.begin(active);
        this.earliest = Math.min(this.earliest, active.expiresAt, active.timeoutAt);
      }
      if (members.size > 0) this.live.set(id, members);
      else this.over(id);
    }
  }

  private claimsOf(keys: number[]): Map<number, { claims: number; limit_key: string | null }> {
    const own = `SELECT key, claims, limit_key FROM jobs
      WHERE key IN (SELECT value FROM json_each(?)) AND state = ${STATE.waiting}`;
    const found = rows<{ key: number; claims: number; limit_key: string | null }>(this.sql, own, JSON.stringify(keys));
    const claims = new Map<number, { claims: number; limit_key: string | null }>(found.map((row) => [row.key, row]));
    for (const key of keys) {
      const head = claims.has(key) ? undefined : this.blocks.head(key);
      if (head) claims.set(key, { claims: this.blocks.claimsOf(key), limit_key: head.limit_key });
    }
    return claims;
  }

  /** Writes the lease of a batch of claims. One row written, unless one cannot hold them all; chunks stay whole. */
  grant(batch: readonly Claim[], position: { head: number; nextSequence: number }): void {
    const isOfChunk = ([{ chunk }]: readonly [Claim, ...Claim[]], claim: Claim) =>
      chunk !== undefined && chunk === claim.chunk;
    const units = grouped(batch, entryBytes, Number.POSITIVE_INFINITY, undefined, isOfChunk);
    for (const part of grouped(units, bytesOfUnit, this.maxRowBytes)) this.grantRow(part.flat(), position);
  }

  private grantRow(batch: readonly Claim[], position: { head: number; nextSequence: number }): void {
    const id = this.free.pop() ?? this.nextId++;
    const [only] = batch;
    this.blocks.singles.put(id, batch.length === 1 && only ? this.blocks.takeAlone(only.key) : undefined);
    const members = new Set<number>();
    for (const entry of batch) {
      members.add(entry.key);
      const active = { ...entry, leaseId: id };
      this.begin(active);
      this.order(active);
      this.earliest = Math.min(this.earliest, entry.expiresAt, entry.timeoutAt);
    }
    this.live.set(id, members);
    this.head = Math.max(this.head, position.head);
    this.recordedSequence = Math.max(this.recordedSequence, position.nextSequence);
    this.newestId = id;
    this.write(id);
  }

  /** Forgets a running attempt; the job's row already shows that it is over. No row written. */
  release(active: Active): void {
    this.ended(active);
    const members = this.live.get(active.leaseId);
    if (!members) return;
    members.delete(active.key);
    if (members.size === 0) {
      this.live.delete(active.leaseId);
      this.over(active.leaseId);
    }
  }

  /** Does an earlier job of its chunk wait again, in a strict group? @param waits for an ended attempt */
  isBehind(active: Active, waits: (mate: Active) => boolean): boolean {
    const chunk = this.chunkOf(active);
    for (let at = 0; at < chunk.length && chunk[at]?.key !== active.key; ) {
      const mate = chunk[at] as Active;
      if (this.active.has(mate.key)) at++;
      else if (waits(mate)) return true;
      else chunk.splice(at, 1);
    }
    return false;
  }

  /** The attempt of this job in the chunk of another one, if it came behind that, in a strict group. */
  behind(active: Active, key: number): Active | undefined {
    const chunk = this.chunkOf(active);
    const at = chunk.findIndex((mate) => mate.key === key);
    return at > chunk.findIndex((mate) => mate.key === active.key) ? chunk[at] : undefined;
  }

  private chunkOf({ leaseId, chunk }: Active): Active[] {
    return this.ordered.get(leaseId)?.get(chunk) ?? [];
  }

  /** The call of these pushes is over. Nothing awaits an answer for those that still run: their leases end them. */
  callOver(batch: readonly { readonly active: Active }[]): void {
    this.underWay.delete(batch);
    for (const { active: one } of batch) {
      // Memory may have been rebuilt since.
      const active = this.active.get(one.key);
      if (active?.claim !== one.claim) continue;
      this.pushed.delete(active);
      active.orphaned = true;
      active.timeoutAt = NEVER;
    }
  }

  /** Has an attempt ended since the last call of {@link takeFreed}? */
  get hasFreed(): boolean {
    return this.anyFreed;
  }

  /** The attempts that ended since the last call: their keys, and whether no other could start before. */
  takeFreed(): { keys: string[]; wasFull: boolean } {
    const { wasFull } = this;
    const keys = [...this.freed];
    this.freed.clear();
    this.anyFreed = false;
    this.wasFull = false;
    return { keys, wasFull };
  }

  private begin(active: Active): void {
    this.active.set(active.key, active);
    if (active.target !== undefined && !active.orphaned) this.pushed.add(active);
    const { limitKey, group } = active;
    if (limitKey !== undefined) changeBy(this.runningByKey, limitKey, 1);
    if (group !== undefined) changeBy(this.runningByGroup, group, 1);
  }

  private order(active: Active): void {
    if (active.place === undefined) return;
    const chunks = getOrInsert(this.ordered, active.leaseId, () => new Map<number | undefined, Active[]>());
    getOrInsert(chunks, active.chunk, (): Active[] => []).push(active);
  }

  /** All entries of the row are over. */
  private over(id: number): void {
    this.free.push(id);
    this.ordered.delete(id);
  }

  private ended(active: Active): void {
    const isFull = this.active.size >= this.mostAtOnce;
    if (!this.active.delete(active.key)) return;
    this.wasFull ||= isFull;
    this.pushed.delete(active);
    this.anyFreed = true;
    const { limitKey, group } = active;
    if (group !== undefined) changeBy(this.runningByGroup, group, -1);
    if (limitKey === undefined) return;
    this.freed.add(limitKey);
    changeBy(this.runningByKey, limitKey, -1);
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

  /** Running attempts whose lease or execution limit ended, earliest first, at most `limit`; updates `earliest`. */
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

  /** Is the attempt over, though its end is not processed yet? */
  isOverdue(key: number, now: number): boolean {
    const entry = this.active.get(key);
    return entry !== undefined && endOf(entry) <= now;
  }

  /** An overdue attempt could not be ended: it is looked at again at `at` (epoch ms). */
  putOff(entry: Active, at: number): void {
    entry.putOff = at;
    this.earliest = Math.min(this.earliest, at);
  }

  /** Deletes surplus free rows, which only a burst of single claims leaves behind. Answers whether any went. */
  trim(): boolean {
    if (this.free.length <= 2 * KEEP_FREE) return false;
    // The row written last has the next sequence number.
    const newest = this.free.indexOf(this.newestId);
    if (newest > 0) [this.free[0], this.free[newest]] = [this.newestId, this.free[0] as number];
    const surplus = this.free.splice(KEEP_FREE, TRIM_AT_ONCE);
    this.sql.exec('DELETE FROM leases WHERE id IN (SELECT value FROM json_each(?))', JSON.stringify(surplus)).toArray();
    this.blocks.singles.left(surplus);
    return true;
  }

  private write(id: number): void {
    const live = [...(this.live.get(id) ?? [])].map((key) => this.active.get(key) as Active);
    if (live.length === 0) return;
    const ordered = [...(this.ordered.get(id)?.values() ?? [])].flat();
    const entries = [...live.filter(({ place }) => place === undefined), ...ordered];
    const position = { head: this.head, nextSequence: this.recordedSequence };
    const data = leaseText(entries, position, this.metersText());
    const job = this.blocks.singles.textOf(id);
    this.sql.exec('INSERT OR REPLACE INTO leases (id, data, job) VALUES (?, ?, ?)', id, data, job).toArray();
  }
}

/** Counts one more or one less; what is counted no more is forgotten. */
function changeBy(counts: Map<string, number>, name: string, by: 1 | -1): void {
  const count = (counts.get(name) ?? 0) + by;
  if (count > 0) counts.set(name, count);
  else counts.delete(name);
}
