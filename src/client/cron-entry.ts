/** Schedules as a producer writes them, and their JSON. */

import { type CronJobOptions, invalid, type Moment, momentText, type NewJob, wireJob } from '../producer/job';
import type { CronStatus } from './cron-status';

/** A job of a schedule. */
export type CronJob = NewJob<string, readonly unknown[], CronJobOptions>;

/** What happens when fires overlap, and to times that were missed. */
type Policies =
  | {
      /** What a fire does while the job of the previous fire has not ended. Default `skip`. */
      overlapPolicy?: 'skip' | 'allow' | 'cancel_previous' | 'enqueue';
      /** What happens to times that were missed because the platform was down. Default `fire_once`. */
      missedPolicy?: 'skip' | 'fire_once';
      maxCatchup?: never;
    }
  | {
      /** Missed fires that are caught up come all at once; any other policy would admit only one of them. */
      overlapPolicy: 'allow' | 'enqueue';
      missedPolicy: 'fire_all';
      /** How many missed times are caught up, 1 … 1000. Default 100. */
      maxCatchup?: number;
    };

/** A schedule as a producer declares it. */
export type CronEntry<Job extends CronJob = CronJob> = Policies & {
  /** Lower-case letters, digits, `.` and `-`; unique in the deployment. */
  name: string;
  /** Five or six cron fields, `@daily` and the like, or `@every 90s`. */
  expression: string;
  /** What each fire enqueues. `delay` counts from the fire. */
  job: Job;
  /** IANA name. Default `UTC`. */
  timezone?: string;
  /** First and last moment at which it may fire. */
  startAt?: Moment;
  endAt?: Moment;
  /** Fires in all. */
  limit?: number;
  /** Default: unchanged, so that an entry paused by an operator stays paused; true for a new one. */
  enabled?: boolean;
  /** At most 1000 characters. */
  description?: string;
};

/** What to change about a schedule. Members left out stay; `null` removes a date, limit or description. */
export interface CronPatch<Job extends CronJob = CronJob> {
  expression?: string;
  job?: Job;
  timezone?: string;
  overlapPolicy?: CronStatus['overlapPolicy'];
  missedPolicy?: CronStatus['missedPolicy'];
  maxCatchup?: number;
  startAt?: Moment | null;
  endAt?: Moment | null;
  limit?: number | null;
  enabled?: boolean;
  description?: string | null;
}

/** The entry as the server reads it. @throws {InvalidJobError} */
export function wireCron(entry: CronEntry): Record<string, unknown> {
  return { name: entry.name, ...wireCronPatch(entry) };
}

/** The change as the server reads it. @throws {InvalidJobError} */
export function wireCronPatch(change: CronPatch): Record<string, unknown> {
  const moment = (value: Moment | null | undefined, name: string) => (value === null ? null : momentText(value, name));
  return {
    expression: change.expression,
    timezone: change.timezone,
    overlapPolicy: change.overlapPolicy,
    missedPolicy: change.missedPolicy,
    maxCatchup: change.maxCatchup,
    startAt: moment(change.startAt, 'startAt'),
    endAt: moment(change.endAt, 'endAt'),
    limit: change.limit,
    enabled: change.enabled,
    description: change.description,
    jobTemplate: change.job && wireTemplate(change.job),
  };
}

/** @throws {InvalidJobError} when all fires would make the same job */
function wireTemplate({ type, args, options = {} }: CronJob): Record<string, unknown> {
  if ('id' in options && options.id !== undefined) {
    throw invalid('Each fire makes a job of its own: its id cannot be chosen.', 'job.id');
  }
  return wireJob(type, args, options);
}
