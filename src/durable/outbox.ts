/**
 * The outbox: messages to other objects, kept from the deciding transaction until arrival (`outbox-relay.ts` sends
 * them): one row to post, one to remove. Gathered messages to an address go in order, many to a row; other kinds have
 * one per address, replaced by later ones.
 */

import { getOrInsert } from '../job/get-or-insert';
import { LIMIT, put, rows, rowsUntil } from './sql';

/** A message that was just posted, or is being sent, has an alarm this much later, in case the object dies; ms. */
export const STANDBY_MS = 1_000;

/** Items and characters in a row of what is gathered, unless a single one is larger. A row holds 2 MB. */
const MAX_ITEMS = 100;
const MAX_CHUNK = 256 * 1024;

export interface OutboxMessage {
  readonly number: number;
  readonly data: string;
}

interface Gathered {
  kind: string;
  address: string;
  json: string;
}

export class Outbox {
  private gathered: Gathered[] = [];
  /** Which kinds may have outbox messages. Absent: look. */
  private readonly filled = new Map<string, boolean>();

  /** @param wake something becomes due at this moment (epoch ms) that the running transaction wrote */
  constructor(
    private readonly sql: SqlStorage,
    private readonly wake: (at: number) => void,
  ) {}

  load(): void {
    this.filled.clear();
  }

  get size(): number {
    return this.gathered.length;
  }

  /** Forgets what was gathered after `size`: it was rolled back. */
  rollback(size: number): void {
    this.gathered.length = size;
    this.filled.clear();
  }

  has(kind: string): boolean {
    const any = 'SELECT 1 FROM outbox WHERE kind = ? LIMIT 1';
    return getOrInsert(this.filled, kind, () => rows(this.sql, any, kind).length > 0);
  }

  get isEmpty(): boolean {
    return rows(this.sql, 'SELECT 1 FROM outbox LIMIT 1').length === 0;
  }

  /** The text of the only outbox message to an address. */
  find(kind: string, address: string): string | undefined {
    if (!this.has(kind)) return undefined;
    const query = 'SELECT data FROM outbox WHERE kind = ? AND address = ?';
    return rows<{ data: string }>(this.sql, query, kind, address)[0]?.data;
  }

  /**
   * Posts the only outbox message to an address, replacing the one before. One row written.
   * @param dueAt when the outbox relay sends it if no caller has, epoch ms; absent: at once, whatever the clock
   */
  post(kind: string, address: string, data: string, now: number, dueAt = 0): void {
    this.write(kind, address, 0, data, dueAt);
    this.wake(Math.max(dueAt, now + STANDBY_MS));
  }

  /** Adds to what goes to an address. Written by {@link flush}, many to a row. @param json JSON text of the item */
  gather(kind: string, address: string, json: string, now: number): void {
    this.gathered.push({ kind, address, json });
    this.wake(now + STANDBY_MS);
  }

  /** Writes what was gathered, in as few rows as size allows. Call once, at the end of the transaction. */
  flush(): void {
    if (this.gathered.length === 0) return;
    const chunks = new Map<string, { of: Gathered; items: string[]; chars: number }>();
    for (const of of this.gathered) {
      const id = `${of.kind} ${of.address}`;
      let chunk = chunks.get(id);
      if (chunk && (chunk.items.length === MAX_ITEMS || chunk.chars + of.json.length > MAX_CHUNK)) {
        this.append(chunk.of, chunk.items);
        chunk = undefined;
      }
      chunk ??= { of, items: [], chars: 0 };
      chunk.items.push(of.json);
      chunk.chars += of.json.length;
      chunks.set(id, chunk);
    }
    this.gathered = [];
    for (const { of, items } of chunks.values()) this.append(of, items);
  }

  /** The outbox message to an address is void. @returns whether there was one */
  withdraw(kind: string, address: string): boolean {
    if (this.find(kind, address) === undefined) return false;
    rows(this.sql, 'DELETE FROM outbox WHERE kind = ? AND address = ?', kind, address);
    this.filled.delete(kind);
    return true;
  }

  /** Drops the oldest gathered messages to an address beyond `most`, a row each. @returns how many */
  dropOldest(kind: string, address: string, most: number): number {
    if (!this.has(kind)) return 0;
    const newest = 'SELECT max(number) FROM outbox WHERE kind = ?1 AND address = ?2';
    const drop = `DELETE FROM outbox WHERE kind = ?1 AND address = ?2 AND number <= (${newest}) - ?3 RETURNING number`;
    return rows(this.sql, drop, kind, address, most).length;
  }

  count(kind: string): number {
    return this.sql.exec<{ n: number }>('SELECT count(*) AS n FROM outbox WHERE kind = ?', kind).one().n;
  }

  // ---- for the outbox relay --------------------------------------------------------------------

  /** Addresses with an outbox message that is due, at most `limit`, none of `except`. */
  due(kind: string, now: number, except: readonly string[], limit: number): string[] {
    if (!this.has(kind)) return [];
    const query = `SELECT DISTINCT address FROM outbox
      WHERE kind = ? AND due_at <= ? AND address NOT IN (SELECT value FROM json_each(?)) ${LIMIT}`;
    const found = rows<{ address: string }>(this.sql, query, kind, now, JSON.stringify(except), limit);
    return found.map(({ address }) => address);
  }

  /** When the next outbox message to another address than these is due, epoch ms. */
  nextAt(kind: string, except: readonly string[]): number {
    if (!this.has(kind)) return Number.POSITIVE_INFINITY;
    const query = `SELECT min(due_at) AS at FROM outbox
      WHERE kind = ? AND address NOT IN (SELECT value FROM json_each(?))`;
    const [first] = rows<{ at: number | null }>(this.sql, query, kind, JSON.stringify(except));
    return first?.at ?? Number.POSITIVE_INFINITY;
  }

  read(kind: string, address: string): Iterable<OutboxMessage> {
    const query = 'SELECT number, data FROM outbox WHERE kind = ? AND address = ? ORDER BY number';
    return rowsUntil<{ number: number; data: string }>(this.sql, query, kind, address);
  }

  /** Removes an outbox message, unless another has taken its place. One row written. */
  remove(kind: string, address: string, { number, data }: OutboxMessage): void {
    const exactly = 'DELETE FROM outbox WHERE kind = ? AND address = ? AND number = ? AND data = ?';
    rows(this.sql, exactly, kind, address, number, data);
    this.filled.delete(kind);
  }

  private append({ kind, address }: Gathered, items: readonly string[]): void {
    const query = 'SELECT max(number) AS last FROM outbox WHERE kind = ? AND address = ?';
    const [found] = rows<{ last: number | null }>(this.sql, query, kind, address);
    this.write(kind, address, (found?.last ?? 0) + 1, `[${items.join(',')}]`, 0);
  }

  private write(kind: string, address: string, number: number, data: string, dueAt: number): void {
    put(this.sql, 'outbox', { kind, address, number, data, due_at: dueAt });
    this.filled.set(kind, true);
  }
}
