/** The part of a queue object's RPC interface that is about groups of jobs. Times in epoch ms. */
import type { QueueGroup } from '../contract/queue-groups';
import type { GroupLimits, GroupOrder, GroupOverride } from '../job/group';
import type { WaitingFor } from '../job/waiting';

/** Which groups, in the order of the list. */
export interface GroupsRequest {
  offset: number;
  limit: number;
}

/** A group that has jobs which wait or run, or one that holds up the others. */
export interface GroupView extends Omit<QueueGroup, 'blocked_by' | 'oldest_waiting_at' | 'waiting_for'> {
  /** In a strict order: the id of the job that must end before another one starts. */
  blocked_by?: string;
  /** When the first of those that wait became available. */
  oldest?: number;
  /** Why it starts no job now, whether or not one waits. */
  waiting_for?: WaitingFor;
}

/** What holds for one group, and how it gets on. */
export interface GroupDetail extends GroupView {
  limits: GroupLimits;
  /** What an operator says of it. */
  override?: GroupOverride;
  /** False: there are waiting jobs that were not counted. */
  complete: boolean;
  /** It was so before. */
  unchanged?: true;
}

/** The groups of a queue, as far as their jobs were counted. */
export interface GroupsView {
  /** Absent: the queue says nothing of its groups. */
  order?: GroupOrder;
  /** A part of the list: noisy ones first, then by the number of waiting jobs. */
  groups: GroupView[];
  total: number;
  /** Waiting jobs of all groups, running ones, and waiting jobs without a group. */
  waiting: number;
  running: number;
  ungrouped: number;
  /** False: there are waiting jobs that were not counted. */
  complete: boolean;
}
