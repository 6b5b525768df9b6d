import type { DefaultsOf } from '../producer/defaults';
import type { JobEnvelope } from '../producer/envelope';
import { jsonOf } from '../producer/job';
import { enqueuedJobOf, listOf } from './answers';
import { collection } from './collection';
import { checked } from './conditions';
import { type CronEntry, type CronJob, type CronPatch, wireCron, wireCronPatch } from './cron-entry';
import { type CronExecution, type CronHistory, type CronSkipped, type CronStatus, cronOf } from './cron-status';
import { byCursor, type ListOptions, parametersFrom } from './pages';
import type { Requests } from './requests';
import { pathTo } from './transport';

export interface CronQuery {
  enabled?: boolean;
  group?: string;
}

/** Cron entries, as `tocsin.cron`. */
export interface Crons<Job extends CronJob = CronJob> {
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
  put(entry: CronEntry<Job>): Promise<CronStatus>;
  /** Reads an entry, with its next fires. @throws {NotFoundError} */
  get(name: string): Promise<CronStatus>;
  /** Every entry that matches, read page by page, each at most once. */
  list(query?: CronQuery, options?: ListOptions): AsyncGenerator<CronStatus>;
  /** Changes an entry. @throws {NotFoundError} {@link InvalidJobError} */
  patch(name: string, change: CronPatch<Job>): Promise<CronStatus>;
  /** Deletes an entry. The jobs it has enqueued stay. @throws {NotFoundError} */
  delete(name: string): Promise<void>;
  /** Stops an entry from firing. Times during the pause are not caught up. @throws {NotFoundError} */
  pause(name: string): Promise<CronStatus>;
  /** Lets a paused entry fire again. @throws {NotFoundError} */
  resume(name: string): Promise<CronStatus>;
  /**
   * Enqueues the job of an entry now, whatever its schedule, limit and pause. Not repeated after a lost answer.
   * @returns the job; `deduplicated: true` when its unique policy has found another @throws {NotFoundError}
   */
  trigger(name: string): Promise<JobEnvelope>;
  /** Jobs that an entry enqueued recently, and skipped fires. @param options.limit 1 … 50 @throws {NotFoundError} */
  history(name: string, options?: { limit?: number }): Promise<CronHistory>;
}

export function createCrons<Job extends CronJob>(requests: Requests, defaultsOf?: DefaultsOf): Crons<Job> {
  const { once, safely } = requests;
  return {
    ...collection(requests, '/cron', 'crons', cronOf),
    put: async (entry) => cronOf(await safely('POST', '/cron', jsonOf(wireCron(entry, defaultsOf), 'The entry'))),
    async *list(query = {}, options = {}) {
      const conditions = parametersFrom({ ...checked(query, { enabled: true, group: true }) });
      yield* byCursor<CronStatus>(safely, { path: '/cron', conditions, member: 'crons' }, options);
    },
    patch: async (name, change) =>
      cronOf(await safely('PATCH', pathTo`/cron/${name}`, jsonOf(wireCronPatch(change), 'The change'))),
    pause: async (name) => cronOf(await safely('POST', pathTo`/cron/${name}/pause`)),
    resume: async (name) => cronOf(await safely('POST', pathTo`/cron/${name}/resume`)),
    trigger: async (name) => enqueuedJobOf(await once('POST', pathTo`/cron/${name}/trigger`)),
    history: async (name, options = {}) => {
      const answer = await safely('GET', `${pathTo`/cron/${name}/history`}?${parametersFrom(options)}`);
      return {
        executions: listOf<CronExecution>(answer, 'executions', 'the history'),
        skipped: listOf<CronSkipped>(answer, 'skipped', 'the history'),
      };
    },
  };
}
