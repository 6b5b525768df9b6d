/** Pools: their list, in the directory, and the object of each, which says who is next and counts what runs. */
import type { Outcome } from '../job/errors';
import type { Pool } from '../job/pools/pool';
import type { Portion } from '../job/pools/turns';

/** What a fetch by a worker of a pool may take. */
export interface PoolPlan {
  /** Names the fetch when it ends. */
  ticket: string;
  /** Taken first, in this order. */
  portions: Portion[];
  /** Every queue, those that are next first: for what the portions leave. */
  order: string[];
  /** Jobs in all. */
  count: number;
}

/** How a fetch came out. */
export interface PoolTaken {
  /** By queue. */
  taken: Record<string, number>;
  /** Queues that had fewer jobs than were asked of them. */
  short: string[];
}

/** What the object of a pool has seen. Times in epoch ms. */
export interface PoolCounts {
  since: number;
  /** Jobs given, by queue, and when the last one was. */
  dispatched: Record<string, { count: number; at: number }>;
  /** Workers that fetched within the last minute. */
  workers: number;
}

/** In the directory. */
export interface PoolListApi {
  pools(): Promise<Pool[]>;
  /** @returns whether there was none of this name; 413 when there are too many */
  putPool(pool: Pool): Promise<Outcome<boolean>>;
  removePool(name: string): Promise<boolean>;
}

/** In the object of a pool. */
export interface PoolApi {
  /** The pool is as this says from now on; null: it is no more. */
  definePool(pool: Pool | null): Promise<void>;
  /** A worker wants jobs. 404 when there is no such pool. */
  planFetch(count: number, worker?: string): Promise<Outcome<PoolPlan>>;
  /** The fetch is over. */
  endFetch(ticket: string, taken: PoolTaken): Promise<void>;
  poolCounts(): Promise<PoolCounts>;
}
