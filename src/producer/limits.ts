/** Limits as a producer or an operator writes them; members that contradict each other do not compile. */
import type { Period } from '../job/wire';

export type { Period };

export interface Quota {
  /** 1 … 1000000. */
  limit: number;
  period: Period;
}

/** Starts in any period of that length, in one of three spellings. */
type Rate =
  | { rate: number; period: Period; maxPerSecond?: never }
  | { rate: Quota; period?: never; maxPerSecond?: never }
  | { maxPerSecond: number; rate?: never; period?: never };

type NoRate = { rate?: never; period?: never; maxPerSecond?: never };

interface Members {
  /** Jobs with the same key count together. Default: the queue's name. */
  key?: string | undefined;
  /** In one queue (default), or in all queues of the `deployment`; then `key` is required. */
  scope?: 'queue' | 'deployment' | undefined;
  /** Attempts that may run at once, 1 … 10000. */
  concurrency?: number | undefined;
  /** As many, evenly spread. */
  throttle?: Quota | undefined;
  /** What happens to the job when its turn comes and its key has no room. Default `wait`. */
  onLimit?: 'wait' | 'reschedule' | 'drop' | undefined;
}

/** The limits of a job: a key, or a limit, or both. */
export type RateLimitOptions = Members &
  (Rate | NoRate) &
  ({ key: string } | { concurrency: number } | { throttle: Quota } | Rate);

/** Limits of a queue as a whole; at least one. */
export type QueueLimits = (Quota | { limit?: never; period?: never }) &
  (Quota | { concurrency: number }) & {
    /** Attempts that run at once, pushed and fetched together. */
    concurrency?: number | undefined;
  };
