/** The groups of a queue: how they get on, and what operators do with one. */

import type { EnvelopeWaiting } from '../job/wire';
import type { Also } from '../ojs/names';
import type { Page, Time } from './common';
import type { GroupChange, GroupLimits, GroupOverride } from './queue-settings';
import { del, get, onQueue, post, put } from './route';

/** A group of jobs in a queue. */
export interface QueueGroup {
  group: string;
  /** Jobs that are available. */
  waiting: number;
  /** Of these, those that wait for room under the key of their limits. */
  limited: number;
  /** Attempts that run. */
  running: number;
  /** Its share in the turns. */
  weight: number;
  /** More than 30 jobs wait: a fair queue serves it in turns, after the quiet groups. */
  noisy: boolean;
  /** An operator keeps it from starting jobs. */
  paused: boolean;
  /** In a strict order: the job that must end before another one of the group starts; null: none. */
  blocked_by: string | null;
  /** When the first of those that wait became available; null: none waits. */
  oldest_waiting_at: Time | null;
  /** Why it starts no job now, whether or not one waits; null: it may. Lists leave out limit keys. */
  waiting_for: EnvelopeWaiting | null;
}

/** One group: what holds for it, and how it gets on. */
export interface QueueGroupDetail extends QueueGroup {
  queue: string;
  /** What limits it. */
  limits: GroupLimits;
  /** What an operator says of it; null: nothing. */
  override: GroupOverride | null;
  /** There are more waiting jobs than were counted. */
  counts_are_exact?: false;
}

/**
 * The groups that have jobs which wait or run, that are blocked, or of which an operator says something: those with
 * most waiting jobs first.
 */
export interface QueueGroupList extends Also<'QueueGroupList', Page<QueueGroup>> {
  queue: string;
  /** How the queue serves them; null: it says nothing of groups. */
  order: 'fair' | 'strict' | null;
  /** Waiting jobs of all groups. */
  waiting: number;
  /** Attempts of all groups that run. */
  running: number;
  /** Waiting jobs without a group. */
  ungrouped: number;
  /** There are more waiting jobs than were counted. */
  counts_are_exact?: false;
}

const GROUP = '/queues/:name/groups/:group';

/** Below `/ojs/v1`. */
export const queueGroups = {
  /** Shows a group: its jobs, its limits, and why its jobs wait. */
  show: get<{ 200: QueueGroupDetail; errors: 404 }>(GROUP, { bound: 'queue' }),
  /** Changes the limits, the weight or the pause of one group. */
  change: put<{ body: GroupChange; 200: QueueGroupDetail; errors: 404 | 409 | 422 }>(GROUP, {
    ...onQueue('group.change'),
    judgesMembers: true,
  }),
  /** Removes the limits, weight and pause of a group. */
  restore: del<{ 200: QueueGroupDetail; errors: 404 }>(GROUP, onQueue('group.restore')),
  /** Pauses a group: its jobs wait until it is resumed. Those of other groups continue. */
  pause: post<{ 200: QueueGroupDetail; errors: 404 | 409 }>(`${GROUP}/pause`, onQueue('group.pause')),
  /** Ends the pause of a group. */
  resume: post<{ 200: QueueGroupDetail; errors: 404 | 409 }>(`${GROUP}/resume`, onQueue('group.resume')),
};
