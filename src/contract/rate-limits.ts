/** The keys that limit jobs: how they stand, and what an operator puts in the place of their limits. */
import type { Also } from '../ojs/names';
import type { CursorQuery, IsoDuration, Page, Spreading, Time } from './common';
import { del, get, put } from './route';

/** Limits as they hold now. Absent members are not limited. */
export interface LimitsInForce {
  /** Attempts at once. */
  concurrency?: number;
  /** Starts in a period. */
  limit?: number;
  period?: IsoDuration;
  /** The starts are evenly spread. */
  throttled?: true;
}

/** A key in one queue. */
export interface RateLimitInQueue extends LimitsInForce {
  queue: string;
  /** These are the jobs whose key counts in all queues. Absent: those whose key counts in this one. */
  scope?: 'deployment';
  /** Attempts that run. */
  active: number;
  /** Starts in the present window. */
  current_count: number;
  /** Jobs that wait for the key. */
  waiting: number;
  /** The backlog is too long to be counted to its end: more may wait. */
  complete?: false;
}

/** What a queue has of a limit over all queues. */
export interface LeasedToQueue {
  queue: string;
  /** Attempts that it may run at once. */
  slots: number;
  /** Starts that count: used, or still to be used. */
  starts: number;
}

/** A limit over all queues, as the object that divides it among them sees it. */
export interface DeploymentLimit extends LimitsInForce {
  /** How many more attempts may run, leased or not; absent when that is not limited. */
  available?: number;
  leased: LeasedToQueue[];
}

/** What holds in the place of a key's own limits. */
export interface OverrideInForce extends Omit<LimitsInForce, 'throttled'> {
  /** Absent: until it is removed. */
  expires_at?: Time;
}

interface KeyMembers extends LimitsInForce {
  key: string;
  /** Attempts that run. */
  active: number;
  /** How many more may run; absent when that is not limited. */
  available?: number;
  /** Starts in the present window. */
  current_count: number;
  /** When the next start fits, or the oldest that counts leaves the window; null: nothing counts. */
  window_resets_at: Time | null;
  /** Jobs that wait for the key. */
  waiting: number;
  /** The backlog of a queue is too long to be counted to its end: more may wait. */
  complete?: false;
  override?: OverrideInForce;
  /** Of jobs whose `scope` is the deployment; absent: there are none. */
  deployment?: DeploymentLimit;
  queues: RateLimitInQueue[];
}

/** A key that limits jobs, summed up over all queues and scopes; a key with only an override has no queues. */
export interface RateLimitStatus extends Also<'RateLimitStatus', KeyMembers> {}

export interface RateLimitList extends Also<'RateLimitList', Page<RateLimitStatus>> {}

export interface RateLimitOverridden extends RateLimitStatus, Spreading {}

/** Limits that replace a key's own; 0 stops it. Members left out stay as jobs set them; one of the two is required. */
export interface RateLimitOverride {
  /** Attempts at once, up to 10000. */
  concurrency?: number;
  /** Starts in a period, up to 1000000. */
  limit?: number;
  /** `second`, `minute`, `hour`, `day`, or a duration. Default: the present one of the key. */
  period?: string | number;
  /** A time, or relative: `+PT15M`. Default: until it is removed. */
  expires_at?: string;
}

interface QueuesQuery {
  /** Only as these queues know it, separated by commas; also `queue`. */
  queues?: string;
  queue?: string;
}

type Overriding = { body: RateLimitOverride; 200: RateLimitOverridden; errors: 404 | 409 };

/** Below `/ojs/v1`. */
export const rateLimits = {
  /** Lists the keys that limit jobs. */
  list: get<{ query: CursorQuery & QueuesQuery; 200: RateLimitList }>('/rate-limits'),
  /** Shows a limit key and its use in each queue. */
  show: get<{ query: QueuesQuery; 200: RateLimitStatus; errors: 404 }>('/rate-limits/:key'),
  /** Overrides the limits of a key in every queue. */
  override: put<Overriding>('/rate-limits/:key', {
    audit: 'limit.override',
  }),
  /** Overrides the limits of a key, under another path. */
  overrideBelow: put<Overriding>('/rate-limits/:key/override', { audit: 'limit.override' }),
  /** Removes the override of a key: its own limits apply again. */
  restore: del<{ 204: null; errors: 404 }>('/rate-limits/:key/override', { audit: 'limit.restore' }),
};
