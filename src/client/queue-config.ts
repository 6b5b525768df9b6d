/** Settings and views of queues, in wire names. Times are RFC 3339. */
import type * as contract from '../contract/queues';
import type { QueueLimits } from '../producer/limits';
import type { Named } from '../producer/names';

/** A minimum age such as `"P1D"` or `"12h"`, or the latest moment that counts. */
export type Age = string | Date;

/** How long ended jobs can be read. */
export type QueueRetention = Named<contract.QueueRetention>;

export type Overflow = contract.Overflow;

export type QueueConfig = Limited<Named<contract.QueueConfig>, QueueLimits>;

/** A change of settings. It affects only the members that it names; `null` returns one to its default. */
export type QueueConfigChange = Limited<Named<contract.QueueConfigChange>, QueueLimits | null>;

/** Settings whose limits contradict nothing. */
type Limited<Settings, Limits> = Omit<Settings, 'rateLimit'> & {
  rateLimit?: Limits;
};

/** The settings of a queue, or of all. */
export type QueueSettings = Omit<Named<contract.QueueSettings>, 'name'>;

/** The settings of all queues after a change. */
export interface QueueDefaults extends QueueSettings {
  /** Queues that have not confirmed the change yet; the directory tries them again. */
  pendingQueues: number;
}

/** What a queue does with its jobs. */
export type QueueMode = contract.QueueMode;

export type QueueState = Named<contract.QueueState>;

export type QueueSummary = Named<contract.QueueSummary>;

export type QueueCounts = Named<contract.QueueStatistics['stats']>;

export type QueueDetail = Named<contract.QueueDetail>;

export type QueueOverview = Named<contract.QueueOverview>;

export type InspectedQueue = Named<contract.InspectedQueue>;

export type PriorityCount = Named<contract.PriorityCount>;

export type QueueGroup = Named<contract.QueueGroup>;

export type GroupLimits = Named<contract.GroupLimits>;

/** A change of one group; `null` returns a member to the queue's setting. */
export type GroupChange = Named<contract.GroupChange>;

/** One group: its settings and its state. */
export type QueueGroupDetail = Named<contract.QueueGroupDetail>;

/** The groups of a queue: those with most waiting jobs first. */
export type QueueGroupsSeen = Omit<Named<contract.QueueGroupList>, 'items' | 'pagination'>;

/** What happens to jobs that have not ended when their queue is deleted. */
export type QueueRemoval =
  /** There must be none. The default. */
  | { strategy?: 'reject'; targetQueue?: never }
  /** They are removed, running ones too. */
  | { strategy: 'discard'; targetQueue?: never }
  /** They go to another queue. */
  | { strategy: 'move'; targetQueue: string };

/** The progress of a queue's deletion, which continues in the background. */
export type QueueDeletion = Named<contract.QueueDeletion>;

/** How many jobs a purge has removed, so far when it is not `completed`: see {@link Bulk.wait}. */
export type Purged = Named<contract.Purged>;
