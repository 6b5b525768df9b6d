/** Pools: queues that share their workers, and how what they gave is spread over them. */
import type { Also } from '../ojs/names';
import type { PoolStrategy } from '../pools/pool';
import type { CursorQuery, Page, Time } from './common';
import { del, get, put } from './route';

export type { PoolStrategy };

interface PoolMembers {
  name: string;
  /** `strict`: in the order of the queues; else each queue has its portion. */
  strategy: PoolStrategy;
  queues: string[];
  /** Of each queue, by its name. */
  weights: Record<string, number>;
  /** Jobs of the pool that run at once; null: not bounded. */
  concurrency: number | null;
  workers: number;
  active_jobs: number;
}

/** A pool, and how it stands. */
export interface QueuePool extends Also<'QueuePool', PoolMembers> {}

export interface PoolAnswer {
  pool: QueuePool;
}

export interface PoolList extends Also<'PoolList', Page<QueuePool>> {}

/** What a pool says. */
export interface PoolRequest {
  queues: string[];
  /** Default `round-robin`; with weights `weighted`. */
  strategy?: PoolStrategy;
  /** Of each queue, by its name; 1 where nothing is said. */
  weights?: Record<string, number>;
  /** Jobs of the pool that run at once. */
  concurrency?: number | null;
}

/** What a queue has given to the workers of its pool. */
export interface QueueShare {
  pool: string;
  /** Of the queue. */
  name: string;
  weight: number;
  dispatched: number;
  /** It has jobs and gave none for a while, in which others of its pool gave some. */
  starved: boolean;
}

/** What pools have given, queue by queue. */
export interface SchedulingStats {
  /** `mixed`: the pools have different ones. */
  strategy: PoolStrategy | 'mixed';
  queues: QueueShare[];
  stats: {
    pools: number;
    /** Those that this answer is about. */
    pools_told: number;
    dispatched: number;
    starved: number;
    /** When counting began, by the names of pools. */
    since: Record<string, Time>;
  };
}

interface StatsQuery {
  /** Only of this pool. */
  pool?: string;
}

/** Below `/ojs/v1/admin`. */
export const pools = {
  /** Lists the pools of queues. */
  list: get<{ query: CursorQuery; 200: PoolList }>('/pools'),
  /** Shows a pool. */
  show: get<{ 200: PoolAnswer; errors: 404 }>('/pools/:name'),
  /** Creates or replaces a pool. */
  define: put<{ body: PoolRequest; 200: PoolAnswer; 201: PoolAnswer; errors: 409 }>('/pools/:name', {
    audit: 'pool.put',
  }),
  /** Deletes a pool; its queues are kept. */
  remove: del<{ 200: { deleted: true }; errors: 404 }>('/pools/:name', { audit: 'pool.delete' }),
  /** Shows how many jobs the pools handed out, by queue. */
  stats: get<{ query: StatsQuery; 200: SchedulingStats; errors: 404 }>('/scheduling/stats'),
};
