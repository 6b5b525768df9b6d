/** Pools of queues through the client: queues that share their workers. */
import { jsonOf } from '../producer/job';
import { shaped } from './answers';
import { byCursor, type ListOptions, parametersFrom } from './pages';
import type { Requests } from './requests';
import { pathTo } from './transport';

/** `strict`: in the order of the queues; else each queue has its portion. */
export type PoolStrategy = 'strict' | 'round-robin' | 'weighted';

/** A pool, and how it stands. */
export interface QueuePool {
  name: string;
  strategy: PoolStrategy;
  queues: string[];
  /** Of each queue, by its name. */
  weights: Record<string, number>;
  concurrency: number | null;
  workers: number;
  activeJobs: number;
}

/** What a pool says. */
export interface PoolOptions {
  queues: readonly string[];
  /** Default `round-robin`; with weights `weighted`. */
  strategy?: PoolStrategy;
  weights?: Readonly<Record<string, number>>;
  /** Jobs of the pool that run at once. */
  concurrency?: number | null;
}

/** What pools have given, queue by queue. */
export interface SchedulingStats {
  /** `mixed`: the pools have different ones. */
  strategy: PoolStrategy | 'mixed';
  queues: { pool: string; name: string; weight: number; dispatched: number; starved: boolean }[];
  /** `since`: when counting began, by the names of pools. */
  stats: { pools: number; poolsTold: number; dispatched: number; starved: number; since: Record<string, string> };
}

/** Pools, as `tocsin.pools`. Needs `admin:read`, and `admin:write` to change them. */
export class Pools {
  constructor(private readonly requests: Requests) {}

  /** Every pool, read page by page. */
  async *list(options: ListOptions = {}): AsyncGenerator<QueuePool> {
    yield* byCursor<QueuePool>(this.requests.safely, { path: '/admin/pools', member: 'pools' }, options);
  }

  /** @throws {NotFoundError} */
  async get(name: string): Promise<QueuePool> {
    return poolIn(await this.requests.safely('GET', pathTo`/admin/pools/${name}`));
  }

  /**
   * Defines a pool, or defines it anew.
   * @throws {InvalidJobError} {@link ConflictError} a queue is in another pool
   * @example
   * await tocsin.pools.put('mail', { strategy: 'weighted', queues: ['urgent', 'bulk'], weights: { urgent: 3 } });
   */
  async put(name: string, pool: PoolOptions): Promise<QueuePool> {
    return poolIn(await this.requests.safely('PUT', pathTo`/admin/pools/${name}`, jsonOf(pool, 'The pool')));
  }

  /** Its queues are on their own again. @throws {NotFoundError} */
  async delete(name: string): Promise<void> {
    await this.requests.remove(pathTo`/admin/pools/${name}`);
  }

  /** What the pools have given, or one of them. */
  async stats(pool?: string): Promise<SchedulingStats> {
    const path = `/admin/scheduling/stats?${parametersFrom({ pool })}`;
    return await this.requests.read<SchedulingStats>(path, 'stats', 'the statistics');
  }
}

const poolIn = (answer: unknown): QueuePool => shaped<{ pool: QueuePool }>(answer, 'pool', 'the pool').pool;
