/** What can be set for a queue, as it travels. */
import type { Duration, Kept, Period, RetentionOptions, RetryPolicy } from '../job/wire';
import type { SchemaMode } from '../schemas/misfit';

/** How long ended jobs can be read. */
export type QueueRetention = Omit<RetentionOptions, 'dead_letter'>;

/** How long dead letters are kept, and how many; the oldest go. */
export interface QueueDeadLetterRetention {
  max_age?: Kept;
  /** Null: there is no bound. */
  max_count?: number | null;
}

/** What happens to a job for which there is no room. */
export type Overflow = 'reject' | 'drop_oldest';

/** Limits of all jobs of a queue together. */
export interface QueueLimits {
  /** Attempts that run at once, pushed and fetched together. */
  concurrency?: number;
  /** Starts in a period. */
  limit?: number;
  period?: Period;
}

/** Limits of one group. */
export interface GroupLimits {
  /** Attempts of the group that run at once, 1 … 10000. */
  concurrency?: number;
  /** Its starts in any period. */
  rate?: { limit: number; period: Period };
  /** Its jobs that may wait, 1 … 10 000 000: those that have not ended and do not run. */
  max_waiting?: number;
}

/** How the groups of a queue are served. Its own limits hold for each group. */
export interface QueueGroups extends GroupLimits {
  /**
   * `fair` (default): groups with few waiting jobs first, the others in turns. `strict`: one job of a group at a time,
   * in the order of enqueue.
   */
  order?: 'fair' | 'strict';
  /** What happens to a job for which its group has no room. Default `reject`. */
  overflow_policy?: Overflow;
  /**
   * Limits of some groups, by name, or by the beginning of a name followed by `*`. What they leave out is that of all
   * groups.
   */
  limits?: Record<string, GroupLimits>;
  /** Shares of groups in the turns, 1 … 100, by name, or by the beginning of a name followed by `*`. Default 1. */
  weights?: Record<string, number>;
}

/** What an operator says of one group, in the place of what its queue says. */
export interface GroupOverride extends GroupLimits {
  /** Its share in the turns, 1 … 100. */
  weight?: number;
  /** It hands out no jobs. */
  paused?: boolean;
}

/** A change of what is said of one group. It affects only the members that it names; null: what its queue says. */
export type GroupChange = OrNull<GroupOverride>;

/**
 * Other spellings of `max_size` and `overflow_policy`, and the part of the bound from which on producers are warned.
 */
export interface Backpressure {
  max_depth?: number;
  /** Default `reject`. */
  strategy?: Overflow;
  /** 0 … 1. Default 0.8. */
  warning_threshold?: number;
}

/** Settings of a queue. */
export interface QueueConfig {
  /** How many pushed jobs run at once, 1 … 10000. */
  concurrency?: number;
  /** Length of a lease: seconds, or a duration with its unit. Answers have seconds. */
  visibility_timeout?: Duration;
  /** Limit of a run: seconds, or a duration with its unit. Answers have seconds. */
  default_timeout?: Duration;
  /** Jobs that have not ended, at most; beyond that `overflow_policy` decides. */
  max_size?: number;
  /** Bytes of their bodies. */
  max_size_bytes?: number;
  overflow_policy?: Overflow;
  backpressure?: Backpressure;
  /**
   * Bytes that the queue may store with its ended jobs: near the bound the oldest of these are removed before their
   * time.
   */
  max_storage_bytes?: number;
  /** Rate and concurrency over all its jobs. */
  rate_limit?: QueueLimits;
  /** Whose turn it is among the groups of jobs. */
  groups?: QueueGroups;
  /** Types that the queue accepts; an entry may end in `*`. */
  allowed_job_types?: string[];
  /**
   * What becomes of jobs that do not fit the schema of their type: accepted, accepted with a warning (default),
   * refused.
   */
  schemas?: SchemaMode;
  default_retry?: RetryPolicy;
  retention?: QueueRetention;
  dead_letter?: { retention: QueueDeadLetterRetention };
}

type OrNull<T> = { [Name in keyof T]?: T[Name] | null };

/** A change of settings. It affects only the members that it names; null returns one to its default. */
export interface QueueConfigChange
  extends OrNull<Omit<QueueConfig, 'default_retry' | 'retention' | 'dead_letter' | 'backpressure'>> {
  default_retry?: OrNull<RetryPolicy> | null;
  /** A duration alone holds for all ends. */
  retention?: string | OrNull<QueueRetention> | null;
  /** Here `max_count` returns to its default with `"default"`. */
  dead_letter?: { retention?: { max_age?: Kept | null; max_count?: number | 'default' | null } } | null;
  backpressure?: OrNull<Backpressure> | null;
}
