/** Schedules through the client: declare, look, pause, fire by hand. */
import type { JobEnvelope } from '../job/wire';
import { enqueuedJobOf, malformed, member } from './answers';
import { invalid, jsonOf, type Moment, momentText, type NewJob, wireJob } from './job';
import type { Requests } from './requests';

const PAGE_SIZE = 200;

/** A schedule as a producer declares it. */
export interface CronEntry<Job extends NewJob = NewJob> {
  /** Lower-case letters, digits, `.` and `-`; unique in the deployment. */
  name: string;
  /** Five or six cron fields, `@daily` and the like, or `@every 90s`. */
  expression: string;
  /** What each fire enqueues. `delay` counts from the fire; an `id` is refused. */
  job: Job;
  /** IANA name. Default `UTC`. */
  timezone?: string;
  /** What a fire does while the job of the one before has not ended. Default `skip`. */
  overlapPolicy?: 'skip' | 'allow' | 'cancel_previous' | 'enqueue';
  /** What becomes of times nobody was there to see. Default `fire_once`. */
  missedPolicy?: 'skip' | 'fire_once' | 'fire_all';
  /** How many missed times `fire_all` makes up for, 1 … 1000. Default 100. */
  maxCatchup?: number;
  /** First and last moment at which it may fire. */
  startAt?: Moment;
  endAt?: Moment;
  /** Fires in all. */
  limit?: number;
  /** Default: as it is, so that what an operator has paused stays paused; true for a new one. */
  enabled?: boolean;
  /** At most 1000 characters. */
  description?: string;
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

/** What declaring a group did. The lists hold names. */
export interface CronGroupResult {
  name: string;
  entries: CronStatus[];
  created: string[];
  updated: string[];
  unchanged: string[];
  deleted: string[];
}

/** Cron entries, as `tocsin.cron`. */
export class Crons<Job extends NewJob = NewJob> {
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
  async *list(query: CronQuery = {}): AsyncGenerator<CronStatus> {
    const parameters = new URLSearchParams({ limit: String(PAGE_SIZE) });
    if (query.enabled !== undefined) parameters.set('enabled', String(query.enabled));
    if (query.group !== undefined) parameters.set('group', query.group);
    for (let offset = 0; ; ) {
      parameters.set('offset', String(offset));
      const page = await this.#requests.safely('GET', `/cron?${parameters}`);
      const crons = member(page, 'crons');
      if (!Array.isArray(crons)) throw malformed('the entries');
      yield* crons as CronStatus[];
      offset += crons.length;
      if (crons.length === 0 || member(member(page, 'pagination'), 'has_more') !== true) return;
    }
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
   * Declares all entries of a group: adds, replaces, and deletes those of the group that are not listed. When an answer
   * was lost and the declaration sent again, the result tells what the last try found to do.
   *
   * @param options.timezone for entries that name none
   * @throws {InvalidJobError} with `details.index` of the first wrong entry, then nothing has changed;
   *   {@link ConflictError} when an entry belongs to another group
   * @example
   * const { deleted } = await tocsin.cron.putGroup('billing', [
   *   { name: 'invoices', expression: '0 6 1 * *', job: { type: 'invoice.run', args: [] } },
   *   { name: 'reminders', expression: '0 9 * * MON', job: { type: 'invoice.remind', args: [] } },
   * ], { timezone: 'America/New_York' });
   */
  async putGroup(
    name: string,
    entries: readonly CronEntry<Job>[],
    options: { timezone?: string } = {},
  ): Promise<CronGroupResult> {
    const body = jsonOf({ timezone: options.timezone, entries: entries.map(wireCron) }, 'The group');
    const answer = (await this.#requests.safely('PUT', `/cron-groups/${encodeURIComponent(name)}`, body)) as Partial<
      CronGroupResult | undefined
    >;
    const { entries: stored, created, updated, unchanged, deleted } = answer ?? {};
    if (!stored || !created || !updated || !unchanged || !deleted) throw malformed('the group');
    return { name, entries: stored, created, updated, unchanged, deleted };
  }
}

function pathOf(name: string): string {
  return `/cron/${encodeURIComponent(name)}`;
}

function cronOf(answer: unknown): CronStatus {
  const cron = member(answer, 'cron');
  if (typeof member(cron, 'name') !== 'string') throw malformed('the entry');
  return cron as CronStatus;
}

/** The entry as the server reads it. @throws {InvalidJobError} */
function wireCron(entry: CronEntry): Record<string, unknown> {
  const { type, args, options = {} } = entry.job;
  if (options.id !== undefined) throw invalid('Each fire makes a job of its own: its id cannot be chosen.', 'job.id');
  return {
    name: entry.name,
    expression: entry.expression,
    timezone: entry.timezone,
    overlap_policy: entry.overlapPolicy,
    missed_policy: entry.missedPolicy,
    max_catchup: entry.maxCatchup,
    start_at: momentText(entry.startAt, 'startAt'),
    end_at: momentText(entry.endAt, 'endAt'),
    limit: entry.limit,
    enabled: entry.enabled,
    description: entry.description,
    job_template: wireJob(type, args, options),
  };
}
