import type * as contract from '../contract/pools';
import { jsonOf } from '../producer/job';
import type { Named } from '../producer/names';
import { shaped } from './answers';
import { byCursor, type ListOptions, parametersFrom } from './pages';
import type { Requests } from './requests';
import { pathTo } from './transport';

/** `strict`: in the order of the queues; else each queue has its portion. */
export type PoolStrategy = contract.PoolStrategy;

/** A pool, and how it stands. */
export type QueuePool = Named<contract.QueuePool>;

export type PoolOptions = Readonly<Omit<Named<contract.PoolRequest>, 'queues'>> & { queues: readonly string[] };

/** What pools have given, queue by queue. */
export type SchedulingStats = Named<contract.SchedulingStats>;

/** Pools, as `tocsin.pools`. Needs `admin:read`, and `admin:write` to change them. */
export class Pools {
  constructor(private readonly requests: Requests) {}

  async *list(options: ListOptions = {}): AsyncGenerator<QueuePool> {
    yield* byCursor<QueuePool>(this.requests.safely, { path: '/admin/pools', member: 'pools' }, options);
  }

  /** @throws {NotFoundError} */
  async get(name: string): Promise<QueuePool> {
    return poolIn(await this.requests.safely('GET', pathTo`/admin/pools/${name}`));
  }

  /**
   * Defines a pool, or defines it again.
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
