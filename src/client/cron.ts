/** Schedules through the client: declare, look, change, pause, fire by hand. */
import type { JobState } from '../job/record';
import type { JobEnvelope } from '../job/wire';
import { enqueuedJobOf, listOf, malformed, member, shaped } from './answers';
import { type CronJobOptions, invalid, jsonOf, type Moment, momentText, type NewJob, wireJob } from './job';
import { byOffset, type ListOptions, parametersFrom } from './pages';
import type { Requests } from './requests';

/** A job of a schedule. */
export type CronJob = NewJob<string, readonly unknown[], CronJobOptions>;

/** When fires meet, and what becomes of times nobody was there to see. */
type Policies =
  | {
      /** What a fire does while the job of the one before has not ended. Default `skip`. */
      overlapPolicy?: 'skip' | 'allow' | 'cancel_previous' | 'enqueue';
      /** What becomes of times nobody was there to see. Default `fire_once`. */
      missedPolicy?: 'skip' | 'fire_once';
      maxCatchup?: never;
    }
  | {
      /** Fires that are made up for come at once: other policies would let only one of them be. */
      overlapPolicy: 'allow' | 'enqueue';
      missedPolicy: 'fire_all';
      /** How many missed times are made up for, 1 … 1000. Default 100. */
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
  /** Default: as it is, so that what an operator has paused stays paused; true for a new one. */
  enabled?: boolean;
  /** At most 1000 characters. */
  description?: string;
};

/** What to change about a schedule. What is left out stays; `null` takes a date, limit or description away. */
export interface CronPatch<Job extends CronJob = CronJob> {
  expression?: string;
  job?: Job;
  timezone?: string;
  overlapPolicy?: CronStatus['overlap_policy'];
  missedPolicy?: CronStatus['missed_policy'];
  maxCatchup?: number;
  startAt?: Moment | null;
  endAt?: Moment | null;
  limit?: number | null;
  enabled?: boolean;
  description?: string | null;
}

/** A schedule as the server shows it. Times are RFC 3339. */
export interface CronStatus {
  name: string;
  expression: string;
  timezone: string;
  overlap_policy: 'skip' | 'allow' | 'cancel_previous' | 'enqueue';
  missed_policy: 'skip' | 'fire_once' | 'fire_all';
  max_catchup?: number;
  start_at?: string;
  end_at?: string;
  limit?: number;
  enabled: boolean;
  /** `completed`: it will not fire again. */
  status: 'active' | 'paused' | 'completed';
  description?: string;
  group?: string;
  next_run_at: string | null;
  last_run_at: string | null;
  last_job_id?: string;
  /** Jobs enqueued, those of {@link Crons.trigger} included. */
  run_count: number;
  /** Times of the schedule that enqueued a job. */
  fire_count: number;
  skipped_count: number;
  /** Fires that wait for the job of the one before. */
  waiting: number;
  created_at: string;
  updated_at: string;
  /** Queue and type of its jobs. */
  queue: string;
  type: string;
  args: unknown[];
  /** The job as it was declared, under wire names. */
  job_template: Record<string, unknown>;
  /** At most five fires ahead. Not in lists. */
  next_fires?: string[];
}

/** Which schedules are meant. */
export interface CronQuery {
  enabled?: boolean;
  group?: string;
}

/** A job that a schedule has enqueued. */
export interface CronExecution {
  job_id: string;
  state: JobState;
  trigger: 'schedule' | 'manual';
  /** The time in the schedule that it stands for. */
  scheduled_at: string;
  triggered_at: string;
  started_at: string | null;
  completed_at: string | null;
}

/** A fire, or several in a row, that enqueued nothing. */
export interface CronSkipped {
  scheduled_at: string;
  /** The last one, when they are several. */
  scheduled_until?: string;
  skipped_at: string;
  reason: 'overlap_skip' | 'waiting_full' | 'missed' | 'unique' | 'refused';
  /** The job in the way. */
  job_id?: string;
  message?: string;
}

/** What a schedule has done lately, the latest first. Times are RFC 3339. */
export interface CronHistory {
  executions: CronExecution[];
  skipped: CronSkipped[];
}

/** Cron entries, as `tocsin.cron`. */
export class Crons<Job extends CronJob = CronJob> {
  readonly #requests: Requests;

  constructor(requests: Requests) {
    this.#requests = requests;
  }

  /**
   * Declares an entry: makes it, or replaces the one of that name. Declaring the same again changes nothing, so an
   * application may do it at every start.
   *
   * @throws {InvalidJobError} with `details.field` of what is wrong
   * @example
   * await tocsin.cron.put({
   *   name: 'nightly-report',
   *   expression: '0 2 * * MON-FRI',
   *   timezone: 'Europe/Paris',
   *   job: { type: 'report.build', args: [{ of: 'sales' }], options: { queue: 'reports' } },
   * });
   */
  async put(entry: CronEntry<Job>): Promise<CronStatus> {
    return cronOf(await this.#requests.safely('POST', '/cron', jsonOf(wireCron(entry), 'The entry')));
  }

  /**
   * Reads an entry, with its next fires.
   * @throws {NotFoundError}
   * @example
   * const { next_fires } = await tocsin.cron.get('nightly-report');
   */
  async get(name: string): Promise<CronStatus> {
    return cronOf(await this.#requests.safely('GET', pathOf(name)));
  }

  /**
   * Every entry that matches, read page by page. One that is made or deleted meanwhile may shift the pages.
   * @example
   * for await (const entry of tocsin.cron.list({ enabled: false })) console.log(entry.name, 'is paused');
   */
  async *list(query: CronQuery = {}, options: ListOptions = {}): AsyncGenerator<CronStatus> {
    const conditions = parametersFrom({ enabled: query.enabled, group: query.group });
    yield* byOffset<CronStatus>(this.#requests.safely, { path: '/cron', conditions, member: 'crons' }, options);
  }

  /**
   * Changes an entry.
   * @throws {NotFoundError} {@link InvalidJobError}
   * @example
   * await tocsin.cron.patch('nightly-report', { expression: '30 2 * * *', endAt: null });
   */
  async patch(name: string, change: CronPatch<Job>): Promise<CronStatus> {
    const body = jsonOf(wireCronPatch(change), 'The change');
    return cronOf(await this.#requests.safely('PATCH', pathOf(name), body));
  }

  /**
   * Deletes an entry. The jobs it has enqueued stay.
   * @throws {NotFoundError}
   * @example
   * await tocsin.cron.delete('nightly-report');
   */
  async delete(name: string): Promise<void> {
    await this.#requests.remove(pathOf(name));
  }

  /**
   * Stops an entry from firing. What would have fired meanwhile is not made up for.
   * @throws {NotFoundError}
   * @example
   * await tocsin.cron.pause('nightly-report');
   */
  async pause(name: string): Promise<CronStatus> {
    return cronOf(await this.#requests.safely('POST', `${pathOf(name)}/pause`));
  }

  /**
   * Lets a paused entry fire again.
   * @throws {NotFoundError}
   * @example
   * const { next_run_at } = await tocsin.cron.resume('nightly-report');
   */
  async resume(name: string): Promise<CronStatus> {
    return cronOf(await this.#requests.safely('POST', `${pathOf(name)}/resume`));
  }

  /**
   * Enqueues the job of an entry now, whatever its schedule, its limit and a pause say. Not repeated when there was no
   * answer, lest there be two jobs.
   *
   * @returns the job; `deduplicated: true` when its unique policy has found another
   * @throws {NotFoundError}
   * @example
   * const job = await tocsin.cron.trigger('nightly-report');
   */
  async trigger(name: string): Promise<JobEnvelope> {
    return enqueuedJobOf(await this.#requests.once('POST', `${pathOf(name)}/trigger`));
  }

  /**
   * The jobs an entry has enqueued lately, and the fires that enqueued none.
   * @param options.limit jobs, 1 … 50; default 50
   * @throws {NotFoundError}
   */
  async history(name: string, options: { limit?: number } = {}): Promise<CronHistory> {
    const answer = await this.#requests.safely('GET', `${pathOf(name)}/history?${parametersFrom(options)}`);
    return {
      executions: listOf<CronExecution>(answer, 'executions', 'the history'),
      skipped: listOf<CronSkipped>(answer, 'skipped', 'the history'),
    };
  }
}

function pathOf(name: string): string {
  return `/cron/${encodeURIComponent(name)}`;
}

function cronOf(answer: unknown): CronStatus {
  const cron = member(answer, 'cron');
  if (cron === undefined) throw malformed('the entry');
  return shaped<CronStatus>(cron, 'name', 'the entry');
}

/** The entry as the server reads it. @throws {InvalidJobError} */
export function wireCron(entry: CronEntry): Record<string, unknown> {
  return { name: entry.name, ...wireCronPatch(entry) };
}

function wireCronPatch(change: CronPatch): Record<string, unknown> {
  const moment = (value: Moment | null | undefined, name: string) => (value === null ? null : momentText(value, name));
  return {
    expression: change.expression,
    timezone: change.timezone,
    overlap_policy: change.overlapPolicy,
    missed_policy: change.missedPolicy,
    max_catchup: change.maxCatchup,
    start_at: moment(change.startAt, 'startAt'),
    end_at: moment(change.endAt, 'endAt'),
    limit: change.limit,
    enabled: change.enabled,
    description: change.description,
    job_template: change.job && wireTemplate(change.job),
  };
}

/** @throws {InvalidJobError} when all fires would make the same job */
function wireTemplate({ type, args, options = {} }: CronJob): Record<string, unknown> {
  if ('id' in options && options.id !== undefined) {
    throw invalid('Each fire makes a job of its own: its id cannot be chosen.', 'job.id');
  }
  return wireJob(type, args, options);
}
