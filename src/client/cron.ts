import type * as contract from '../contract/cron';
import type { DefaultsOf } from '../producer/defaults';
import type { JobEnvelope } from '../producer/envelope';
import { jsonOf } from '../producer/job';
import type { Named } from '../producer/names';
import { enqueuedJobOf, listOf, shaped } from './answers';
import {
  type CronEntry,
  type CronExecution,
  type CronHistory,
  type CronJob,
  type CronPatch,
  type CronSkipped,
  type CronStatus,
  cronOf,
  wireCron,
  wireCronPatch,
} from './cron-entry';
import { byCursor, collection, type ListOptions, matching, parametersFrom } from './pages';
import { pathTo, type Requests } from './requests';

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

const CONDITIONS = { enabled: true, group: true };

export function createCrons<Job extends CronJob>(requests: Requests, defaultsOf?: DefaultsOf): Crons<Job> {
  const { once, safely } = requests;
  return {
    ...collection(requests, '/cron', 'crons', cronOf),
    put: async (entry) => cronOf(await safely('POST', '/cron', jsonOf(wireCron(entry, defaultsOf), 'The entry'))),
    list: (query = {}, options = {}) =>
      byCursor(safely, { path: '/cron', conditions: matching(query, CONDITIONS), member: 'crons' }, options),
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

export type CronGroup = Pick<Named<contract.CronGroup>, 'name' | 'entries'>;

/** What declaring a group did. The lists hold names. */
export type CronGroupResult = CronGroup & Omit<Named<contract.CronGroupDeclared>, 'group' | 'count' | 'warnings'>;

export type CronGroupSummary = Named<contract.CronGroupSummary>;

/** Groups of cron entries, as `tocsin.cronGroups`. */
export interface CronGroups<Job extends CronJob = CronJob> {
  /**
   * Declares all entries of a group: adds, replaces, and deletes entries of the group that are not listed. After a lost
   * answer the declaration is sent again; the result then shows only what the last try changed.
   * @param options.timezone for entries that name none
   * @throws {InvalidJobError} with `details.index` of the first wrong entry, then nothing has changed;
   *   {@link ConflictError} when an entry belongs to another group
   * @example
   * const { deleted } = await tocsin.cronGroups.put('billing', [
   *   { name: 'invoices', expression: '0 6 1 * *', job: { type: 'invoice.run', args: [] } },
   *   { name: 'reminders', expression: '0 9 * * MON', job: { type: 'invoice.remind', args: [] } },
   * ], { timezone: 'America/New_York' });
   */
  put(name: string, entries: readonly CronEntry<Job>[], options?: { timezone?: string }): Promise<CronGroupResult>;
  /** Reads a group, with the next fires of its entries. @throws {NotFoundError} */
  get(name: string): Promise<CronGroup>;
  /** Every group, by name. */
  list(options?: ListOptions): AsyncGenerator<CronGroupSummary>;
  /** Deletes a group with all its entries. The jobs they have enqueued stay. @throws {NotFoundError} */
  delete(name: string): Promise<void>;
}

export function createCronGroups<Job extends CronJob>(requests: Requests, defaultsOf?: DefaultsOf): CronGroups<Job> {
  return {
    ...collection<CronGroup, CronGroupSummary>(requests, '/cron-groups', 'groups', groupOf),
    put: async (name, entries, options = {}) => {
      const declared = entries.map((entry) => wireCron(entry, defaultsOf));
      const body = jsonOf({ timezone: options.timezone, entries: declared }, 'The group');
      const answer = await requests.safely('PUT', pathTo`/cron-groups/${name}`, body);
      const names = (change: string) => listOf<string>(answer, change, 'the group');
      const [created, updated] = [names('created'), names('updated')];
      return { ...groupOf(answer), created, updated, unchanged: names('unchanged'), deleted: names('deleted') };
    },
  };
}

function groupOf(answer: unknown): CronGroup {
  const { name, entries } = shaped<CronGroup>(answer, 'entries', 'the group');
  return { name, entries };
}
