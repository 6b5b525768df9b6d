/** Schedules, below `/cron` and, in the shapes of the dashboard, below `/crons`; and groups of them. */
import type { SkipReason } from '../job/event-data';
import type { JobState } from '../job/states';
import type { JobEnvelope } from '../job/wire';
import type { Also } from '../ojs/names';
import type { OverlapPolicy } from '../schedules/definition';
import type { MissedPolicy } from '../schedules/missed';
import type { CursorQuery, Page, Pagination, Time, Warned } from './common';
import { del, get, judges, patch, post, put, type RouteRules } from './route';

export type { MissedPolicy, OverlapPolicy };

interface CronMembers {
  name: string;
  expression: string;
  timezone: string;
  /** What a fire does while the job of the previous fire has not ended. */
  overlap_policy: OverlapPolicy;
  /** What happens to times that were missed because the platform was down. */
  missed_policy: MissedPolicy;
  /** How many missed times are caught up, with the policy `fire_all`. */
  max_catchup?: number;
  /** First and last moment at which it may fire. */
  start_at?: Time;
  end_at?: Time;
  /** Fires in all. */
  limit?: number;
  enabled: boolean;
  /** `completed`: it will not fire again. */
  status: 'active' | 'paused' | 'completed';
  description?: string;
  /** The group that declares it. */
  group?: string;
  next_run_at: Time | null;
  last_run_at: Time | null;
  last_job_id?: string;
  /** Jobs enqueued, those that were triggered by hand included. */
  run_count: number;
  /** Times of the schedule that enqueued a job. */
  fire_count: number;
  skipped_count: number;
  /** The last fire that enqueued nothing. */
  last_skipped?: CronSkipped;
  /** Fires that wait for the job of the previous fire. */
  waiting: number;
  created_at: Time;
  updated_at: Time;
  /** Queue and type of its jobs. */
  queue: string;
  type: string;
  args: unknown[];
  meta?: Record<string, unknown>;
  options?: Record<string, unknown>;
  /** The job as it was declared. */
  job_template: Record<string, unknown>;
  /** At most five fires ahead. Not in lists. */
  next_fires?: Time[];
}

/** A schedule. */
export interface CronStatus extends Also<'CronStatus', CronMembers> {}

/** The answer about one schedule, flat and under its names. */
export interface CronAnswer extends Omit<CronStatus, 'cron'>, Warned {
  /** The schedule; with the protocol's version in the request: its expression. */
  cron: CronStatus | string;
  /** The schedule. */
  cron_job: CronStatus;
}

/** A schedule after a change. */
export interface CronChanged extends CronStatus, Warned {}

/** A schedule that was saved; flat with the protocol's version in the request. */
export interface CronSaved extends Omit<Partial<CronStatus>, 'cron'>, Warned {
  /** The schedule; with the protocol's version in the request: its expression. */
  cron: CronStatus | string;
  /** The schedule. */
  cron_job: CronStatus;
}

/** A schedule that was deleted, as it was; flat with the protocol's version in the request. */
export interface CronDeleted extends CronSaved {
  deleted: true;
  name: string;
}

interface Crons {
  crons: CronStatus[];
  /** Schedules in all. */
  count: number;
  pagination: Pagination;
}

export interface CronList extends Also<'CronList', Crons> {}

/** The list as the dashboard reads it. */
export interface CronItems {
  items: CronStatus[];
  pagination: Pagination;
}

/** A job that a schedule has enqueued. */
export interface CronExecution {
  job_id: string;
  /** `pruned`: the job has been removed since. */
  state: JobState | 'pruned';
  trigger: 'schedule' | 'manual';
  /** The time in the schedule that the fire stands for. */
  scheduled_at: Time;
  triggered_at: Time;
  started_at: Time | null;
  completed_at: Time | null;
}

/** A fire, or several in a row, that enqueued nothing. */
export interface CronSkipped {
  scheduled_at: Time;
  /** The last one, when they are several. */
  scheduled_until?: Time;
  skipped_at: Time;
  reason: SkipReason;
  /** The job that had not ended, or that a unique policy found. */
  job_id?: string;
  message?: string;
}

/** Recent fires of a schedule, the latest first. */
export interface CronHistory {
  name: string;
  executions: CronExecution[];
  skipped: CronSkipped[];
  /** Executions of this answer. */
  count: number;
}

/**
 * The job that a schedule has enqueued on demand, flat and as a member. `deduplicated`: its unique policy has found
 * another; `accumulated`: it has become a part of that.
 */
export interface CronTriggered extends Partial<JobEnvelope> {
  job: JobEnvelope;
  job_id: string;
}

/** What to change about a schedule. Members left out stay; null removes a date, limit or description. */
export interface CronChange {
  /** Five or six cron fields, `@daily` and the like, or `@every 90s`. Also `cron` and `schedule`. */
  expression?: string;
  /** What each fire enqueues, as in an enqueue; its members may also be given at the schedule's own level. */
  job_template?: Record<string, unknown>;
  /** IANA name. Default `UTC`. */
  timezone?: string;
  /** What a fire does while the job of the previous fire has not ended. Default `skip`. */
  overlap_policy?: OverlapPolicy;
  /** What happens to times that were missed because the platform was down. Default `fire_once`. */
  missed_policy?: MissedPolicy;
  /** How many missed times are caught up, with the policy `fire_all`, 1 … 1000. Default 100. */
  max_catchup?: number;
  /** First and last moment at which it may fire. */
  start_at?: Time | null;
  end_at?: Time | null;
  /** Fires in all. */
  limit?: number | null;
  /** Default: unchanged, so that an entry paused by an operator stays paused; true for a new one. */
  enabled?: boolean;
  /** At most 1000 characters. */
  description?: string | null;
}

/** A schedule, as a producer declares it. */
export interface CronDeclaration extends CronChange {
  /** Lower-case letters, digits, `.` and `-`; unique in the deployment. */
  name: string;
}

/** A group with its schedules. */
export interface CronGroup {
  name: string;
  group: { name: string; entries: CronStatus[] };
  /** Those of `group`. */
  entries: CronStatus[];
  count: number;
}

/** What declaring a group did. The lists hold names. */
export interface CronGroupDeclared extends CronGroup, Warned {
  created: string[];
  updated: string[];
  unchanged: string[];
  deleted: string[];
}

/** A group that was deleted: the names of its schedules. */
export interface CronGroupDeleted {
  deleted: true;
  name: string;
  entries: string[];
  count: number;
}

/** An entry of the list of groups. */
export interface CronGroupSummary {
  name: string;
  /** How many schedules it has. */
  count: number;
}

export interface CronGroupList extends Also<'CronGroupList', Omit<Page<CronGroupSummary>, 'total'>> {}

/** All schedules of a group. */
export interface CronGroupDeclaration {
  /** Of schedules that name none. */
  timezone?: string;
  entries: CronDeclaration[];
}

interface CronQuery extends CursorQuery {
  enabled?: boolean;
  /** Only schedules of this group. */
  group?: string;
}

interface HistoryQuery {
  /** Executions, 1 … 50. Default 50. */
  limit?: number;
}

type Triggering = { 200: CronTriggered; 201: CronTriggered; errors: 404 | 409 | 422 | 429 };

const onCron = (audit: string): RouteRules => ({ bound: 'cron', audit });

const CHANGE = { judgesMembers: true, audit: 'cron.change' } as const;

/** Below `/ojs/v1`. */
export const crons = {
  /** Creates a schedule, or replaces the one with this name. */
  save: post<{ body: CronDeclaration; 200: CronSaved; 201: CronSaved; errors: 409 | 422 }>(
    '/cron',
    judges('cron.save'),
  ),
  /** Lists the schedules. */
  list: get<{ query: CronQuery; 200: CronList }>('/cron', { bound: 'queues' }),
  /** Lists the schedules as the dashboard reads them. */
  items: get<{ query: CronQuery; 200: CronItems }>('/crons', { bound: 'queues' }),
  /** Deletes a schedule. The jobs it has enqueued stay. */
  remove: del<{ 200: CronDeleted; errors: 404 }>('/cron/:name', onCron('cron.delete')),
  /** Deletes a schedule, without a body in the response. The jobs it has enqueued stay. */
  removeItem: del<{ 204: null; errors: 404 }>('/crons/:name', onCron('cron.delete')),
  /** Shows a schedule, with its next fires. */
  show: get<{ 200: CronAnswer; errors: 404 }>('/cron/:name', { bound: 'cron' }),
  /** Changes the given members of a schedule. */
  change: patch<{ body: CronChange; 200: CronAnswer; errors: 404 | 409 | 422 }>('/cron/:name', CHANGE),
  /** Changes the given members of a schedule, like PATCH. */
  replace: put<{ body: CronChange; 200: CronAnswer; errors: 404 | 409 | 422 }>('/cron/:name', CHANGE),
  /** Pauses a schedule. It does not catch up on the times of the pause. */
  pause: post<{ 200: CronAnswer; errors: 404 }>('/cron/:name/pause', onCron('cron.pause')),
  /** Resumes a paused schedule. */
  resume: post<{ 200: CronAnswer; errors: 404 }>('/cron/:name/resume', onCron('cron.resume')),
  /** Enqueues the job of a schedule now, regardless of its times, limit and pause. */
  trigger: post<Triggering>('/cron/:name/trigger', { audit: 'cron.trigger' }),
  /** Lists jobs that a schedule enqueued recently, and skipped fires. */
  history: get<{ query: HistoryQuery; 200: CronHistory; errors: 404 }>('/cron/:name/history', { bound: 'cron' }),
  /** Shows a schedule, with its next fires, as the dashboard reads it. */
  showItem: get<{ 200: CronStatus; errors: 404 }>('/crons/:name', { bound: 'cron' }),
  /** Changes the given members of a schedule. */
  changeItem: patch<{ body: CronChange; 200: CronChanged; errors: 404 | 409 | 422 }>('/crons/:name', CHANGE),
  /** Changes the given members of a schedule, like PATCH. */
  replaceItem: put<{ body: CronChange; 200: CronChanged; errors: 404 | 409 | 422 }>('/crons/:name', CHANGE),
  /** Pauses a schedule. */
  pauseItem: post<{ 200: CronStatus; errors: 404 }>('/crons/:name/pause', onCron('cron.pause')),
  /** Resumes a paused schedule. */
  resumeItem: post<{ 200: CronStatus; errors: 404 }>('/crons/:name/resume', onCron('cron.resume')),
  /** Enqueues the job of a schedule now. */
  triggerItem: post<Triggering>('/crons/:name/trigger', { audit: 'cron.trigger' }),
  /** Lists jobs that a schedule enqueued recently, and skipped fires. */
  historyOfItem: get<{ query: HistoryQuery; 200: CronHistory; errors: 404 }>('/crons/:name/history', { bound: 'cron' }),
};

/** Below `/ojs/v1`. */
export const cronGroups = {
  /** Lists the groups of schedules. */
  list: get<{ query: CursorQuery; 200: CronGroupList }>('/cron-groups'),
  /** Shows a group with its schedules and their next fires. */
  show: get<{ 200: CronGroup; errors: 404 }>('/cron-groups/:name'),
  /** Replaces all schedules of a group; schedules that are not listed are deleted. */
  replace: put<{ body: CronGroupDeclaration; 200: CronGroupDeclared; errors: 409 | 422 }>('/cron-groups/:name', {
    judgesMembers: true,
    audit: 'cron_group.replace',
  }),
  /** Deletes a group with all its schedules. The jobs they have enqueued stay. */
  remove: del<{ 200: CronGroupDeleted; errors: 404 }>('/cron-groups/:name', { audit: 'cron_group.delete' }),
};
