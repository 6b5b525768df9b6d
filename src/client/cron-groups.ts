import type * as contract from '../contract/cron';
import type { DefaultsOf } from '../producer/defaults';
import { jsonOf } from '../producer/job';
import type { Named } from '../producer/names';
import { listOf, shaped } from './answers';
import { collection } from './collection';
import { type CronEntry, type CronJob, wireCron } from './cron-entry';
import type { ListOptions } from './pages';
import type { Requests } from './requests';
import { pathTo } from './transport';

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
