import type { DefaultsOf } from '../producer/defaults';
import type { JobEnvelope } from '../producer/envelope';
import { jsonOf } from '../producer/job';
import { enqueuedJobOf, listOf } from './answers';
import { checked } from './conditions';
import { type CronEntry, type CronJob, type CronPatch, wireCron, wireCronPatch } from './cron-entry';
import { type CronExecution, type CronHistory, type CronSkipped, type CronStatus, cronOf } from './cron-status';
import { byCursor, type ListOptions, parametersFrom } from './pages';
import type { Requests } from './requests';
import { pathTo } from './transport';

/** Which schedules to list. */
export interface CronQuery {
  enabled?: boolean;
  group?: string;
}

/** Cron entries, as `tocsin.cron`. */
export class Crons<Job extends CronJob = CronJob> {
  constructor(
    private readonly requests: Requests,
    private readonly defaultsOf?: DefaultsOf,
  ) {}

  /**
   * Declares an entry: creates it, or replaces the one of that name. Declaring the same again changes nothing, so an
   * application may do it at every start.
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
    return cronOf(await this.requests.safely('POST', '/cron', jsonOf(wireCron(entry, this.defaultsOf), 'The entry')));
  }

  /** Reads an entry, with its next fires. @throws {NotFoundError} */
  async get(name: string): Promise<CronStatus> {
    return cronOf(await this.requests.safely('GET', pathTo`/cron/${name}`));
  }

  /** Every entry that matches, read page by page, each at most once. */
  async *list(query: CronQuery = {}, options: ListOptions = {}): AsyncGenerator<CronStatus> {
    const conditions = parametersFrom({ ...checked(query, { enabled: true, group: true }) });
    yield* byCursor<CronStatus>(this.requests.safely, { path: '/cron', conditions, member: 'crons' }, options);
  }

  /** Changes an entry. @throws {NotFoundError} {@link InvalidJobError} */
  async patch(name: string, change: CronPatch<Job>): Promise<CronStatus> {
    const body = jsonOf(wireCronPatch(change), 'The change');
    return cronOf(await this.requests.safely('PATCH', pathTo`/cron/${name}`, body));
  }

  /** Deletes an entry. The jobs it has enqueued stay. @throws {NotFoundError} */
  async delete(name: string): Promise<void> {
    await this.requests.remove(pathTo`/cron/${name}`);
  }

  /** Stops an entry from firing. Times during the pause are not caught up. @throws {NotFoundError} */
  async pause(name: string): Promise<CronStatus> {
    return cronOf(await this.requests.safely('POST', pathTo`/cron/${name}/pause`));
  }

  /** Lets a paused entry fire again. @throws {NotFoundError} */
  async resume(name: string): Promise<CronStatus> {
    return cronOf(await this.requests.safely('POST', pathTo`/cron/${name}/resume`));
  }

  /**
   * Enqueues the job of an entry now, whatever its schedule, limit and pause. Not repeated after a lost answer.
   * @returns the job; `deduplicated: true` when its unique policy has found another @throws {NotFoundError}
   */
  async trigger(name: string): Promise<JobEnvelope> {
    return enqueuedJobOf(await this.requests.once('POST', pathTo`/cron/${name}/trigger`));
  }

  /**
   * The jobs that an entry enqueued recently, and its skipped fires. @param options.limit 1 … 50 @throws
   * {NotFoundError}
   */
  async history(name: string, options: { limit?: number } = {}): Promise<CronHistory> {
    const answer = await this.requests.safely('GET', `${pathTo`/cron/${name}/history`}?${parametersFrom(options)}`);
    return {
      executions: listOf<CronExecution>(answer, 'executions', 'the history'),
      skipped: listOf<CronSkipped>(answer, 'skipped', 'the history'),
    };
  }
}
