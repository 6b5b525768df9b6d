/** Settings and views of queues, in wire names. Times are RFC 3339. */

import type { JobState } from '../job/states';
import type { Duration, RetentionOptions, RetryPolicy } from '../producer/envelope';
import { momentText } from '../producer/job';
import type { QueueLimits } from '../producer/limits';
import { member, shaped } from './answers';
import type { RetryChange } from './patch';
import type { Percentiles, Throughput } from './stats';

/** A minimum age such as `"P1D"` or `"12h"`, or the latest moment that counts. */
export type Age = string | Date;

/** How long ended jobs can be read. */
export type QueueRetention = Omit<RetentionOptions, 'deadLetter'>;

/** What happens to a job for which there is no room. */
export type Overflow = 'reject' | 'drop_oldest';

/** Settings of a queue. A change affects only the members that it names; `null` returns one to its default. */
export interface QueueConfig {
  /** How many pushed jobs run at once, 1 … 10000. */
  concurrency?: number;
  /** Rate and concurrency over all its jobs. */
  rateLimit?: QueueLimits;
  /** Length of a lease: seconds, or a duration with its unit. */
  visibilityTimeout?: Duration;
  /** Limit of a run: seconds, or a duration with its unit. */
  defaultTimeout?: Duration;
  defaultRetry?: RetryPolicy;
  retention?: QueueRetention;
  deadLetter?: { retention: { maxAge?: Duration; maxCount?: number } };
  /** Types that the queue accepts; an entry may end in `*`. */
  allowedJobTypes?: readonly string[];
  /** What becomes of jobs that do not fit the schema of their type: accepted, accepted with a warning (default), refused. */
  schemas?: 'off' | 'warn' | 'strict';
  /** Jobs that have not ended, at most; beyond that `overflowPolicy` decides. */
  maxSize?: number;
  /** Bytes of their bodies. */
  maxSizeBytes?: number;
  overflowPolicy?: Overflow;
  /** Bytes that the queue may store with its ended jobs: near the bound the oldest of these are removed before their time. */
  maxStorageBytes?: number;
  /**
   * Other spellings of `maxSize` and `overflowPolicy`, and the part of the bound from which on producers are warned.
   */
  backpressure?: { maxDepth?: number; strategy?: Overflow; warningThreshold?: number };
}

/** A change of settings. */
export type QueueConfigChange = {
  [K in keyof QueueConfig]?: (K extends 'defaultRetry' ? RetryChange : QueueConfig[K]) | null;
};

/** The settings of a queue, or of all. */
export interface QueueSettings {
  /** What it says itself. */
  config: QueueConfig;
  /** What the deployment's code declares for the queue; its own settings go before it. */
  declared?: QueueConfig;
  /** What holds, with the settings of all queues and the built-in values. */
  effective: QueueConfig;
}

/** The settings of all queues after a change. */
export interface QueueDefaults extends QueueSettings {
  /** Queues that have not confirmed the change yet; the directory tries them again. */
  pendingQueues: number;
}

/** What a queue does with its jobs. */
export type QueueMode = 'active' | 'paused' | 'draining';

/** A queue in few words. */
export interface QueueState {
  name: string;
  paused: boolean;
  status: QueueMode;
}

/** An entry of the list of queues. */
export interface QueueSummary extends QueueState {
  createdAt: string;
}

/** How many jobs a queue has in each state; `depth` counts those that have not ended, `dead` the dead letters. */
export type QueueCounts = Record<JobState, number> & { queue: string; depth: number; dead: number };

/** A queue with its settings and counts. */
export interface QueueDetail extends QueueState {
  config: QueueConfig;
  stats: QueueCounts;
  createdAt?: string;
}

/** A queue in the operators' list. */
export interface QueueOverview extends QueueSummary {
  counts: Record<JobState, number>;
}

/** A queue as operators see it. */
export interface InspectedQueue extends QueueState {
  counts: Record<JobState, number>;
  createdAt?: string;
  configuration: QueueConfig;
  /** When the job that waits longest became available; null: none waits. */
  oldestAvailableAt: string | null;
  /** How long attempts took. */
  latencyMs: Percentiles;
  /** How long jobs that could run waited for it. */
  queueTimeMs: Percentiles;
  throughput: Throughput;
  /** Part of the attempts of the last five minutes that failed. */
  errorRate: number;
}

/** How many jobs that have not ended there are of a priority. */
export interface PriorityCount {
  priority: number;
  count: number;
}

/** What happens to jobs that have not ended when their queue is deleted. */
export type QueueRemoval =
  /** There must be none. The default. */
  | { strategy?: 'reject'; targetQueue?: never }
  /** They are removed, running ones too. */
  | { strategy: 'discard'; targetQueue?: never }
  /** They go to another queue. */
  | { strategy: 'move'; targetQueue: string };

/** The progress of a queue's deletion, which goes on by itself. */
export interface QueueDeletion {
  queue: string;
  strategy: 'reject' | 'discard' | 'move';
  jobsAffected: number;
  state: 'deleting' | 'deleted';
}

/** How many jobs a purge has removed, so far when it is not `completed`. */
export interface Purged {
  deleted: number;
  operationId: string;
  /** False: it goes on by itself; see {@link Bulk.wait}. */
  completed: boolean;
}

/** Reads the answer to a purge. @throws {UnavailableError} */
export function purgedOf(answer: unknown): Purged {
  type Answer = { deleted: number; operationId: string };
  const { deleted, operationId } = shaped<Answer>(answer, 'deleted', 'the outcome');
  return { deleted, operationId, completed: member(answer, 'completed') !== false };
}

/** An age as the server reads it. */
export function ageText(age: Age): string {
  return typeof age === 'string' ? age : (momentText(age, 'olderThan') ?? '');
}
