/** Which queues there are: each has a number of its own, which the ids of its jobs carry. */
import type { Schema } from '../durable/schema';
import { put, rows } from '../durable/sql';
import { routeCandidate } from '../job/ids';
import type { KnownQueue, QueueListRequest, QueuePage } from '../rpc/directory';

/** Where a page of queues begins, when nothing is said: before all names. */
const FIRST = '';

export class QueueList {
  private counted: number | undefined;

  /** @param created hears of a new queue, in the transaction that creates it */
  constructor(
    private readonly storage: Pick<DurableObjectStorage, 'sql' | 'transactionSync'>,
    private readonly tables: Schema,
    private readonly created: (name: string) => void,
  ) {}

  /** The queue with this name and its number: given out now, if it has none. */
  numbered(name: string): KnownQueue {
    this.tables.create();
    return this.storage.transactionSync(() => {
      const known = this.select('name = ?', name)[0];
      if (known) return known;
      for (let probe = 0; ; probe++) {
        const route = routeCandidate(name, probe);
        if (this.select('route = ?', route).length > 0) continue;
        const queue = { route, name, created_at: Date.now() };
        put(this.sql, 'queues', { ...queue, ids_listed: 1 });
        this.counted = undefined;
        this.created(name);
        return queue;
      }
    });
  }

  /** A page of the queues, by name. */
  page({ after = FIRST, offset = 0, limit, part = '' }: QueueListRequest): QueuePage {
    const meant = 'name > ? AND instr(name, ?) > 0 ORDER BY name LIMIT ? OFFSET ?';
    const found = this.select(meant, after, part, limit + 1, offset);
    const total = part === '' ? this.count() : this.countWith(part);
    return { queues: found.slice(0, limit), total, more: found.length > limit };
  }

  /** The queues with these routes. */
  resolve(routes: readonly number[]): KnownQueue[] {
    return this.select('route IN (SELECT value FROM json_each(?))', JSON.stringify(routes));
  }

  /** How many queues there are. Counted once and remembered: a count reads every row. */
  count(): number {
    if (!this.tables.exist()) return 0;
    this.counted ??= rows<{ n: number }>(this.sql, 'SELECT count(*) AS n FROM queues')[0]?.n ?? 0;
    return this.counted;
  }

  /** Forgets a queue; not one of the same name that was created after `until`, epoch ms. */
  remove(name: string, until: number): void {
    if (!this.tables.exist()) return;
    rows(this.sql, 'DELETE FROM queues WHERE name = ? AND created_at <= ?', name, until);
    this.counted = undefined;
  }

  /** Memory must be built anew. */
  forget(): void {
    this.counted = undefined;
  }

  private get sql(): SqlStorage {
    return this.storage.sql;
  }

  private countWith(part: string): number {
    if (!this.tables.exist()) return 0;
    return rows<{ n: number }>(this.sql, 'SELECT count(*) AS n FROM queues WHERE instr(name, ?) > 0', part)[0]?.n ?? 0;
  }

  /** Queues by a condition. */
  private select(where: string, ...bindings: (string | number)[]): KnownQueue[] {
    if (!this.tables.exist()) return [];
    const query = `SELECT route, name, created_at FROM queues WHERE ${where}`;
    return rows<{ route: number; name: string; created_at: number }>(this.sql, query, ...bindings);
  }
}
