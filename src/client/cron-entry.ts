import type * as contract from '../contract/cron';
import { type DefaultsOf, withDefaults } from '../producer/defaults';
import {
  type CronJobOptions,
  invalid,
  type Moment,
  momentText,
  type NewJob,
  refuseBeside,
  wireJob,
} from '../producer/job';
import { namesOf, refuseUnknown } from '../producer/known';
import type { Named } from '../producer/names';
import { member, shaped } from './answers';

/** A job of a schedule. */
export type CronJob = NewJob<string, readonly unknown[], CronJobOptions>;

type Policies =
  | {
      /** What a fire does while the job of the previous fire has not ended. Default `skip`. */
      overlapPolicy?: CronStatus['overlapPolicy'] | undefined;
      /** What happens to times that were missed because the platform was down. Default `fire_once`. */
      missedPolicy?: 'skip' | 'fire_once' | undefined;
      maxCatchup?: undefined;
    }
  | {
      /** Missed fires that are caught up come all at once; any other policy would admit only one of them. */
      overlapPolicy: 'allow' | 'enqueue';
      missedPolicy: 'fire_all';
      /** How many missed times are caught up, 1 … 1000. Default 100. */
      maxCatchup?: number | undefined;
    };

/** A schedule as a producer declares it. */
export type CronEntry<Job extends CronJob = CronJob> = Policies & {
  name: string;
  /** Five or six cron fields, `@daily` and the like, or `@every 90s`. */
  expression: string;
  /** What each fire enqueues. `delay` counts from the fire. */
  job: Job;
  /** IANA name. Default `UTC`. */
  timezone?: string | undefined;
  /** First and last moment at which it may fire. */
  startAt?: Moment | undefined;
  endAt?: Moment | undefined;
  limit?: number | undefined;
  /** Default: unchanged, so that an entry paused by an operator stays paused; true for a new one. */
  enabled?: boolean | undefined;
  /** At most 1000 characters. */
  description?: string | undefined;
};

/** What to change about a schedule. Members left out stay; `null` removes a date, limit or description. */
export type CronPatch<Job extends CronJob = CronJob> = {
  [Name in Exclude<keyof CronEntry, 'name'>]?: CronEntry<Job>[Name] | (Name extends Removable ? null : never);
};

type Removable = 'startAt' | 'endAt' | 'limit' | 'description';

const PATCH = namesOf<CronPatch>({
  ...{ expression: true, job: true, timezone: true, overlapPolicy: true, missedPolicy: true, maxCatchup: true },
  ...{ startAt: true, endAt: true, limit: true, enabled: true, description: true },
});

/** The entry as the server reads it. @throws {InvalidJobError} @throws {TypeError} for a member that does not exist */
export function wireCron({ name, ...entry }: CronEntry, defaultsOf?: DefaultsOf): Record<string, unknown> {
  return { name, ...wireCronPatch(entry, defaultsOf) };
}

/** The change as the server reads it. @throws as {@link wireCron} */
export function wireCronPatch(change: CronPatch, defaultsOf?: DefaultsOf): Record<string, unknown> {
  refuseUnknown(change, PATCH, 'A schedule has no');
  const moment = (value: Moment | null | undefined, name: string) => (value === null ? null : momentText(value, name));
  const { job, startAt, endAt, ...rest } = change;
  return {
    ...rest,
    startAt: moment(startAt, 'startAt'),
    endAt: moment(endAt, 'endAt'),
    jobTemplate: job && wireTemplate(job, defaultsOf),
  };
}

/** @throws {InvalidJobError} when all fires would make the same job */
function wireTemplate(job: CronJob, defaultsOf?: DefaultsOf): Record<string, unknown> {
  refuseBeside(job);
  const { type, args, options = {} } = job;
  if ('id' in options && options.id !== undefined) {
    throw invalid('Each fire creates its own job: the id cannot be chosen.', 'job.id');
  }
  return wireJob(type, args, withDefaults(options, defaultsOf?.(type)));
}

export type CronStatus = Named<contract.CronStatus>;

export type CronExecution = Named<contract.CronExecution>;

/** A fire, or several in a row, that enqueued nothing. */
export type CronSkipped = Named<contract.CronSkipped>;

/** Recent fires of a schedule, the latest first. */
export type CronHistory = Pick<Named<contract.CronHistory>, 'executions' | 'skipped'>;

/** The schedule in an answer about one schedule. @throws {UnavailableError} */
export const cronOf = (answer: unknown): CronStatus => shaped<CronStatus>(member(answer, 'cron'), 'name', 'the entry');
