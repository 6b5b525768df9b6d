import { v7 as uuidv7 } from 'uuid';
import type { Schema } from '../durable/schema';
import { notFound, payloadTooLarge } from '../job/errors';
import { own } from '../job/own';
import type { Pool } from '../pools/pool';
import { inTurn, moveOn, type Passes, portions } from '../pools/turns';
import type { PoolCounts, PoolPlan, PoolTaken } from '../rpc/pools';

/** Pools at most: their list is one row. */
const MAX_POOLS = 100;

/** A fetch that did not report its end is forgotten after this, ms: none takes as long. */
const FETCH_MS = 60_000;

/** A worker that fetched within this time belongs to the pool, ms. */
const RECENTLY_MS = 60_000;

/** Dispatch counts are written at most this often, ms: a row each. */
const SAVE_EVERY_MS = 10_000;

export class PoolList {
  constructor(private readonly tables: Schema) {}

  all(): Pool[] {
    return this.tables.fact<Pool[]>('pools') ?? [];
  }

  /** @returns whether there was none of this name @throws {ApiError} 413 */
  put(pool: Pool): boolean {
    const others = this.all().filter(({ name }) => name !== pool.name);
    const isNew = others.length === this.all().length;
    if (isNew && others.length >= MAX_POOLS) throw payloadTooLarge('pools', others.length + 1, MAX_POOLS, 'pools');
    const all = [...others, pool].sort((a, b) => (a.name < b.name ? -1 : 1));
    this.tables.writeFact('pools', all);
    return isNew;
  }

  remove(name: string): boolean {
    const all = this.all();
    const others = all.filter((pool) => pool.name !== name);
    if (others.length < all.length) this.tables.writeFact('pools', others);
    return others.length < all.length;
  }
}

interface Past {
  passes: Passes;
  dispatched: PoolCounts['dispatched'];
  since: number;
}

export class PoolDesk {
  private past: Past | undefined;
  private savedAt = 0;
  /** Jobs that fetches under way may take, by their tickets. */
  private readonly open = new Map<string, { count: number; until: number }>();
  private readonly workers = new Map<string, number>();
  /** Plans are made one after the other, so that two do not find the same room. */
  private last: Promise<unknown> = Promise.resolve();

  /** @param active how many jobs of a queue run */
  constructor(
    private readonly tables: Schema,
    private readonly active: (queue: string) => Promise<number>,
    private readonly name: string,
  ) {}

  define(pool: Pool | null): void {
    if (!pool && !this.tables.exist()) return;
    this.tables.writeFact('pool', pool ?? undefined);
    if (pool) return;
    this.tables.writeFact('past', undefined);
    this.past = undefined;
  }

  /** @throws {ApiError} 404 */
  private defined(): Pool {
    const pool = this.tables.fact<Pool>('pool');
    if (!pool) throw notFound('pool', this.name, 'GET /ojs/v1/admin/pools lists all pools.');
    return pool;
  }

  /** @throws {ApiError} 404 */
  plan(count: number, worker: string | undefined, clock: () => number): Promise<PoolPlan> {
    const plan = this.last.then(async () => {
      const pool = this.defined();
      const now = clock();
      if (worker !== undefined) this.workers.set(worker, now);
      const most = Math.min(count, await this.room(pool, now));
      const ticket = uuidv7();
      if (most > 0 && pool.concurrency !== undefined) this.open.set(ticket, { count: most, until: now + FETCH_MS });
      const { passes } = this.pastAt(now);
      return {
        ticket,
        portions: most > 0 ? portions(pool, passes, most) : [],
        order: inTurn(pool, passes),
        count: most,
      };
    });
    this.last = plan.catch(() => undefined);
    return plan;
  }

  /** How many more jobs may run. What fetches under way may take counts as running. */
  private async room({ concurrency, queues }: Pool, now: number): Promise<number> {
    if (concurrency === undefined) return Number.POSITIVE_INFINITY;
    let taken = 0;
    for (const [ticket, { count, until }] of this.open) {
      if (until <= now) this.open.delete(ticket);
      else taken += count;
    }
    const running = await Promise.all(queues.map(this.active));
    return Math.max(0, concurrency - taken - running.reduce((sum, one) => sum + one, 0));
  }

  end(ticket: string, { taken, short }: PoolTaken, now: number): void {
    this.open.delete(ticket);
    const pool = this.tables.fact<Pool>('pool');
    if (!pool) return;
    const past = this.pastAt(now);
    past.passes = moveOn(pool, past.passes, taken, short);
    for (const [queue, count] of Object.entries(taken)) {
      if (count > 0 && pool.queues.includes(queue))
        past.dispatched[queue] = { count: (own(past.dispatched, queue)?.count ?? 0) + count, at: now };
    }
    if (Object.keys(taken).length === 0 || now - this.savedAt < SAVE_EVERY_MS) return;
    this.savedAt = now;
    this.tables.writeFact('past', past);
  }

  counts(now: number): PoolCounts {
    for (const [worker, at] of this.workers) if (now - at > RECENTLY_MS) this.workers.delete(worker);
    const { dispatched, since } = this.pastAt(now);
    return { dispatched, since, workers: this.workers.size };
  }

  private pastAt(now: number): Past {
    this.past ??= this.tables.fact<Past>('past') ?? { passes: {}, dispatched: {}, since: now };
    return this.past;
  }
}
