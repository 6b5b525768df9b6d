/** Queues as a whole: their settings and counts, and what operators do with them. */

import type { JobState } from '../job/states';
import type { EnvelopeWaiting } from '../job/wire';
import type { LastHour } from '../metrics/series';
import type { Also } from '../ojs/names';
import type { QueueMode } from '../settings';
import type { Continued, CursorQuery, OperationPreview, Page, PageQuery, Spreading, Time } from './common';
import type { QueueGroupList } from './queue-groups';
import type { Backpressure, Overflow, QueueConfig, QueueConfigChange } from './queue-settings';
import { del, get, judges, onQueue, post, put } from './route';
import type { Minute, Pace, StateCounts } from './stats';

export type * from './queue-groups';
export type * from './queue-settings';
export type { QueueMode };

/** A new queue: its name and settings, those also beside the name. */
export interface QueueCreation extends QueueConfigChange {
  name: string;
  config?: QueueConfigChange;
}

/** A queue that was created. */
export interface QueueCreated {
  name: string;
  state: 'active';
  config: QueueConfig;
  created_at?: Time;
}

/** The settings of a queue after a change. */
export interface QueueConfigured {
  name: string;
  config: QueueConfig;
}

/** The settings of a queue, or of all. */
export interface QueueSettings extends QueueConfigured {
  /** What the deployment's code declares for the queue; its own settings go before it. */
  declared?: QueueConfig;
  /** What holds, with the settings of all queues and the built-in values. */
  effective: QueueConfig;
}

/** The settings of all queues. */
export type QueueDefaults = Omit<QueueSettings, 'declared'>;

/** The settings of all queues after a change. */
export interface QueueDefaultsChanged extends QueueDefaults, Spreading {}

/** A queue in few words. */
export interface QueueState {
  name: string;
  paused: boolean;
  /** `paused`: it accepts jobs and hands none out. `draining`: it hands out its jobs and accepts none. */
  status: QueueMode;
}

/** An entry of the list of queues. */
export interface QueueSummary extends QueueState {
  created_at: Time;
}

export interface QueueSummaryList extends Also<'QueueSummaryList', Page<QueueSummary>> {}

/** How full the object of a queue is. */
export interface StorageUse {
  bytes: number;
  max_bytes: number;
  /** `full`: it takes no jobs. `pruning`: ended jobs go before their time. */
  state: 'ok' | 'pruning' | 'full';
}

/** How many jobs a queue has in each state. */
export interface QueueCounts extends StateCounts {
  queue: string;
  /** Jobs that have not ended. */
  depth: number;
  /** Dead letters, part of `discarded`. */
  dead: number;
  /** Absent: the queue does not exist. */
  storage?: StorageUse;
}

interface StateBothWays extends Also<'QueueMode', QueueState> {
  created_at?: Time;
}

/** A queue with its settings and counts. */
export interface QueueDetail extends StateBothWays {
  /** The members beside it, as one. */
  queue: StateBothWays;
  /** Jobs that have not ended. */
  depth: number;
  /** Attempts that run. */
  running: number;
  config: QueueConfig;
  stats: QueueCounts;
}

/** The counts of a queue, with what happened in the last hour. */
export interface QueueStatistics extends QueueState, StateCounts {
  /** The members beside it, as one; with the protocol's version in the request: the name of the queue. */
  queue: string | (QueueState & StateCounts);
  stats: QueueCounts & LastHour;
  computed_at: Time;
  /** Only with the protocol's version in the request, as the two below. */
  created_at?: Time;
  depth?: number;
  dead_letter?: number;
}

/** How many jobs that have not ended there are of a priority. */
export interface PriorityCount {
  priority: number;
  count: number;
}

export interface Priorities {
  queue: string;
  distribution: PriorityCount[];
}

/** What a change of a queue's mode has come to. */
interface ModeChange extends QueueState {
  /** The members beside it, as one. */
  queue: QueueState;
}

export interface QueuePaused extends ModeChange {
  paused_at: Time;
}

export interface QueueResumed extends ModeChange {
  resumed_at: Time;
}

export interface QueueDraining extends ModeChange {
  drained_at: Time;
}

/** How a queue gets on, as operators see it. */
export interface QueueStanding extends Also<'QueueMode', QueueState>, Pace {
  counts: StateCounts;
  /** When the job that waits longest became available; null: none waits. */
  oldest_available_at: Time | null;
  /** Why that job does not run. */
  waiting_for?: EnvelopeWaiting;
  /** Dead letters, part of `discarded`. */
  dead: number;
  /** How full the queue is, in jobs or bytes, whichever bound is closer; absent until producers are warned. */
  pressure?: { depth: number; bound: number };
  storage?: StorageUse;
  /** How many pushed jobs may run at once, and how many run. */
  concurrency: { limit: number | null; active: number };
  /** Targets that jobs are not sent to for now. */
  suspended_targets: string[];
  /** The last half hour by minute, with `include=recent`. */
  recent?: Minute[];
}

/** A queue in the operators' list. */
export interface QueueOverview extends QueueStanding {
  created_at: Time;
}

export type QueueOverviewList = Page<QueueOverview>;

/** The settings in force, and how they bear on what is there. */
export interface QueueConfiguration extends Omit<QueueConfig, 'backpressure'> {
  backpressure: Backpressure & {
    enabled: boolean;
    strategy: Overflow;
    /** The depth from which on producers are warned; null: no bound is set. */
    threshold: number | null;
    current_depth: number;
    state: 'normal' | 'warning' | 'critical';
  };
}

/** A queue as operators see it. */
export interface InspectedQueue extends QueueStanding {
  created_at?: Time;
  configuration: QueueConfiguration;
}

/** A queue as operators see it, after a change of its settings. */
export interface InspectedQueueConfigured extends InspectedQueue {
  /** The change. */
  config: QueueConfigChange;
}

/** Which jobs to remove for good. */
export interface QueuePurge {
  /** Not `active`: cancel those first. */
  states: Exclude<JobState, 'active'>[];
  /** A duration, or a time. Of ended jobs since their end, of others since their enqueue. */
  older_than?: string;
  /** Only jobs of this group. */
  group?: string;
  /** Only says how many jobs would go. */
  dry_run?: boolean;
}

/** How many jobs a purge has removed, so far when it is not `completed`. */
export interface Purged extends Continued {
  deleted: number;
}

/** How many jobs a purge has removed, as operators' routes say it. */
export interface PurgedByOperator extends Continued {
  purged_count: number;
  states: JobState[];
}

/**
 * What happens to jobs that have not ended: there must be none (default), they are removed, or they go to another
 * queue.
 */
export type RemovalStrategy = 'reject' | 'discard' | 'move';

/** How a queue goes. */
export interface QueueRemoval {
  strategy?: RemovalStrategy;
  /** Where `move` moves jobs to. */
  target_queue?: string;
  /** Taken, as by other removals, and not required. */
  confirm?: boolean;
}

/** The progress of a queue's deletion, which continues by itself. */
export interface QueueDeletion {
  queue: string;
  strategy: RemovalStrategy;
  jobs_affected: number;
  state: 'deleting' | 'deleted';
}

interface WaitQuery {
  /** Seconds to wait for the end, in the place of answering at once. */
  wait?: number;
}

interface Included {
  /** With the last half hour by minute. */
  include?: 'recent';
}

interface OverviewQuery extends CursorQuery, Included {
  /** Only queues with this in their name. */
  name?: string;
}

const CONFIGURE = { ...onQueue('queue.configure'), judgesMembers: true };

/** Below `/ojs/v1` and `/ojs/v1/admin`. They stand before those of single queues. */
export const queueDefaults = {
  /** Shows the default settings of all queues. */
  show: get<{ 200: QueueDefaults }>('/queues/_default/config'),
  /** Changes the default settings of all queues. */
  change: put<{ body: QueueConfigChange; 200: QueueDefaultsChanged; errors: 422 }>('/queues/_default/config', {
    judgesMembers: true,
    audit: 'defaults.configure',
  }),
};

/** Below `/ojs/v1`. */
export const queues = {
  /** Lists the queues by name. */
  list: get<{ query: CursorQuery; 200: QueueSummaryList }>('/queues', { bound: 'queues' }),
  /** Shows a queue with its settings and counts. */
  show: get<{ 200: QueueDetail; errors: 404 }>('/queues/:name', { bound: 'queue' }),
  /** Counts the jobs of a queue; zeros for one that does not exist. */
  stats: get<{ 200: QueueStatistics; errors: 404 }>('/queues/:name/stats', { bound: 'queue' }),
  /** Pauses a queue: it accepts jobs but hands none out. */
  pause: post<{ 200: QueuePaused; errors: 404 | 409 }>('/queues/:name/pause', onQueue('queue.pause')),
  /** Ends a pause or a drain. */
  resume: post<{ 200: QueueResumed; errors: 404 | 409 }>('/queues/:name/resume', onQueue('queue.resume')),
  /** Shows the settings of a queue: its own, and the effective ones. */
  config: get<{ 200: QueueSettings; errors: 404 }>('/queues/:name/config', { bound: 'queue' }),
  /** Changes the given settings. Creates the queue if it does not exist. */
  configure: put<{ body: QueueConfigChange; 200: QueueConfigured; errors: 404 | 422 }>(
    '/queues/:name/config',
    CONFIGURE,
  ),
  /** Counts the jobs that have not ended, by priority. */
  priorities: get<{ 200: Priorities; errors: 404 }>('/queues/:name/priority-stats', { bound: 'queue' }),
  /** Lists the groups with waiting or running jobs, noisy groups first. */
  groups: get<{ query: PageQuery; 200: QueueGroupList; errors: 404 }>('/queues/:name/groups', { bound: 'queue' }),
};

/** Below `/ojs/v1`. */
export const queueManagement = {
  /** Creates a queue with settings. One exists from its first job on; this sets it up before. */
  create: post<{ body: QueueCreation; 201: QueueCreated; errors: 409 | 422 }>('/queues', judges('queue.create')),
  /** Drains a queue: it hands out its jobs but accepts none. */
  drain: post<{ 200: QueueDraining; errors: 404 }>('/queues/:name/drain', onQueue('queue.drain')),
  /** Deletes jobs of a queue permanently. A longer purge continues by itself. */
  purge: post<{
    query: WaitQuery;
    body: QueuePurge & { confirm?: true };
    200: Purged | OperationPreview;
    202: Purged;
    207: Purged;
    errors: 404;
  }>('/queues/:name/purge', { ...onQueue('queue.purge'), scope: 'admin:purge' }),
  /** Deletes a queue and all its ended jobs. */
  remove: del<{ query: WaitQuery & QueueRemoval; body: QueueRemoval; 202: QueueDeletion; errors: 404 | 409 }>(
    '/queues/:name',
    { ...onQueue('queue.delete'), scope: 'admin:purge' },
  ),
};

/** Below `/ojs/v1/admin`. */
export const adminQueues = {
  /** Lists the queues with their counts and statistics. */
  list: get<{ query: OverviewQuery; 200: QueueOverviewList }>('/queues', { bound: 'queues' }),
  /** Shows a queue with its statistics and settings. */
  show: get<{ query: Included; 200: InspectedQueue; errors: 404 }>('/queues/:name', { bound: 'queue' }),
  /** Pauses a queue: it accepts jobs but hands none out. */
  pause: post<{ 200: QueuePaused; errors: 404 | 409 }>('/queues/:name/pause', onQueue('queue.pause')),
  /** Ends a pause or a drain. */
  resume: post<{ 200: QueueResumed; errors: 404 | 409 }>('/queues/:name/resume', onQueue('queue.resume')),
  /** Changes the given settings. */
  configure: put<{ query: Included; body: QueueConfigChange; 200: InspectedQueueConfigured; errors: 404 | 422 }>(
    '/queues/:name/config',
    CONFIGURE,
  ),
  /** Deletes jobs of a queue permanently. A longer purge continues by itself. */
  purge: del<{
    query: WaitQuery;
    body: QueuePurge & { confirm: true };
    200: PurgedByOperator | OperationPreview;
    202: PurgedByOperator;
    errors: 404;
  }>('/queues/:name/jobs', { ...onQueue('queue.purge'), scope: 'admin:purge' }),
};
