/** Pools: their list, in the directory, and the object of each, which says who is next and counts what runs. */
import type { Portion } from '../pools/turns';

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
