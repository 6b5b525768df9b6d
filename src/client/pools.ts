import type * as contract from '../contract/pools';
import { jsonOf } from '../producer/job';
import type { Named } from '../producer/names';
import { shaped } from './answers';
import { collection, type ListOptions, parametersFrom } from './pages';
import { pathTo, type Requests } from './requests';

/** `strict`: in the order of the queues; else each queue has its portion. */
export type PoolStrategy = contract.PoolStrategy;

export type QueuePool = Named<contract.QueuePool>;

export type PoolOptions = Readonly<Omit<Named<contract.PoolRequest>, 'queues'>> & { queues: readonly string[] };

/** What pools have given, queue by queue. */
export type SchedulingStats = Named<contract.SchedulingStats>;

/** Pools, as `tocsin.pools`. Needs `admin:read`, and `admin:write` to change them. */
export interface Pools {
  list(options?: ListOptions): AsyncGenerator<QueuePool>;
  /** @throws {NotFoundError} */
  get(name: string): Promise<QueuePool>;
  /**
   * Defines a pool, or defines it again.
   * @throws {InvalidJobError} {@link ConflictError} a queue is in another pool
   * @example
   * await tocsin.pools.put('mail', { strategy: 'weighted', queues: ['urgent', 'bulk'], weights: { urgent: 3 } });
   */
  put(name: string, pool: PoolOptions): Promise<QueuePool>;
  /** Its queues are on their own again. @throws {NotFoundError} */
  delete(name: string): Promise<void>;
  /** What the pools have given, or one of them. */
  stats(pool?: string): Promise<SchedulingStats>;
}

export function createPools(requests: Requests): Pools {
  const poolIn = (answer: unknown) => shaped<{ pool: QueuePool }>(answer, 'pool', 'the pool').pool;
  return {
    ...collection(requests, '/admin/pools', 'pools', poolIn),
    put: async (name, pool) =>
      poolIn(await requests.safely('PUT', pathTo`/admin/pools/${name}`, jsonOf(pool, 'The pool'))),
    stats: (pool) => requests.read(`/admin/scheduling/stats?${parametersFrom({ pool })}`, 'stats', 'the statistics'),
  };
}
