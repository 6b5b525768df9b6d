/** The keys of one queue: used ones in memory, all in the table. A transaction writes a changed key at most once. */
import { cell, column, firstRow, LIMIT, rows } from '../../../durable/sql';
import type { Allowances } from './allowances';
import { Limiter, type StoredRow } from './limiter';
import type { Overrides } from './overrides';

const MAX_IDLE = 2_000;

/** The key of the queue's own limit. No job's key is empty. */
export const QUEUE_KEY = '';

export class Limiters {
  private readonly cache = new Map<string, Limiter>();
  private readonly changed = new Set<Limiter>();
  /** Changed since the last mark; and what marks have noted of this transaction, by key. */
  private readonly unmarked = new Set<Limiter>();
  private readonly marked = new Map<string, StoredRow>();
  private readonly touched = new Set<string>();
  /** No stored key is due before, epoch ms. */
  private nextRow = Number.POSITIVE_INFINITY;

  constructor(
    private readonly sql: SqlStorage,
    readonly overrides: Overrides,
    readonly allowances: Allowances,
  ) {}

  /** No key is due before, epoch ms. */
  get nextCheck(): number {
    return Math.min(this.nextRow, this.overrides.nextEnd, this.allowances.nextLook);
  }

  /** Forgets memory, except the overrides for all queues. */
  load(): void {
    this.cache.clear();
    this.changed.clear();
    this.unmarked.clear();
    this.touched.clear();
    this.overrides.forgetEnds();
    this.readNextCheck();
  }

  readNextCheck(): void {
    this.nextRow = cell<number>(this.sql, 'SELECT min(check_at) FROM limit_keys') ?? Number.POSITIVE_INFINITY;
  }

  find(key: string): Limiter | undefined {
    const cached = this.cache.get(key);
    if (cached) return cached;
    const row = firstRow<StoredRow>(this.sql, 'SELECT check_at, data FROM limit_keys WHERE key = ?', key);
    if (!row) return undefined;
    const limiter = new Limiter(key, this, row);
    this.cache.set(key, limiter);
    return limiter;
  }

  /** The key, new if it is not known. */
  get(key: string): Limiter {
    let limiter = this.find(key);
    if (!limiter) {
      limiter = new Limiter(key, this);
      this.cache.set(key, limiter);
    }
    return limiter;
  }

  /** Keys whose rows are due by `now`, the earliest first. */
  due(now: number, limit: number): string[] {
    if (now < this.nextRow) return [];
    const query = `SELECT key FROM limit_keys WHERE check_at <= ? ORDER BY check_at ${LIMIT}`;
    return column(this.sql, query, Math.floor(now), limit);
  }

  known(limit: number): string[] {
    return column(this.sql, `SELECT key FROM limit_keys WHERE key > ? ORDER BY key ${LIMIT}`, QUEUE_KEY, limit);
  }

  /** Something about the key changed that may let jobs in, or means that one must be let in later. */
  touch(key: string): void {
    this.touched.add(key);
  }

  takeTouched(): string[] {
    if (this.touched.size === 0) return [];
    const keys = [...this.touched];
    this.touched.clear();
    return keys;
  }

  /** The key's row will be written, at the latest with the transaction. */
  save(limiter: Limiter): void {
    if (!limiter.isChanged && limiter.isStored) return;
    this.changed.add(limiter);
    this.unmarked.add(limiter);
    if (limiter.checkAt !== null) this.nextRow = Math.min(this.nextRow, limiter.checkAt);
  }

  remove(limiter: Limiter): void {
    this.cache.delete(limiter.key);
    this.changed.delete(limiter);
    this.unmarked.delete(limiter);
    this.marked.delete(limiter.key);
    this.allowances.drop(limiter.key);
    if (limiter.isStored) this.sql.exec('DELETE FROM limit_keys WHERE key = ?', limiter.key).toArray();
  }

  /** Writes what changed. Two rows for a new key; one, or with a new moment to look at it two, for another. */
  flush(): void {
    for (const limiter of this.changed) this.write(limiter);
    this.changed.clear();
    this.unmarked.clear();
    this.marked.clear();
    if (this.cache.size > MAX_IDLE) this.cache.clear();
  }

  /** Notes what this transaction writes: counted starts survive a later failed operation. @returns is it the first? */
  mark(): boolean {
    for (const limiter of this.unmarked) {
      this.marked.set(limiter.key, { check_at: limiter.checkAt, data: limiter.data() });
    }
    this.unmarked.clear();
    return this.marked.size === 0;
  }

  /** Undoes what came after a mark, after {@link load}. @param isFirst from {@link mark} */
  rollback(isFirst: boolean): void {
    if (isFirst) this.marked.clear();
    if (this.changed.size > 0) return;
    for (const [key, row] of this.marked) this.putBack(key, row);
  }

  private putBack(key: string, row: StoredRow): void {
    const stored = this.find(key);
    const limiter = new Limiter(key, this, row);
    limiter.isStored = stored !== undefined;
    limiter.isCheckMoved = stored?.checkAt !== row.check_at;
    limiter.isChanged = true;
    this.cache.set(key, limiter);
    this.save(limiter);
    this.touch(key);
  }

  private write(limiter: Limiter): void {
    const { key, checkAt } = limiter;
    const data = limiter.data();
    if (!limiter.isStored)
      rows(this.sql, 'INSERT INTO limit_keys (key, check_at, data) VALUES (?, ?, ?)', key, checkAt, data);
    else if (limiter.isCheckMoved)
      rows(this.sql, 'UPDATE limit_keys SET check_at = ?, data = ? WHERE key = ?', checkAt, data, key);
    else rows(this.sql, 'UPDATE limit_keys SET data = ? WHERE key = ?', data, key);
    limiter.isStored = true;
    limiter.isChanged = false;
    limiter.isCheckMoved = false;
  }
}
