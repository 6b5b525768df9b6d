import type * as contract from '../contract/cron';
import type { DefaultsOf } from '../producer/defaults';
import { jsonOf } from '../producer/job';
import type { Named } from '../producer/names';
import { listOf, shaped } from './answers';
import { type CronEntry, type CronJob, wireCron } from './cron-entry';
import { byCursor, type ListOptions } from './pages';
import type { Requests } from './requests';
import { pathTo } from './transport';

/** A group with its schedules. */
export type CronGroup = Pick<Named<contract.CronGroup>, 'name' | 'entries'>;

/** What declaring a group did. The lists hold names. */
export type CronGroupResult = CronGroup & Omit<Named<contract.CronGroupDeclared>, 'group' | 'count' | 'warnings'>;

/** An entry of the list of groups. */
export type CronGroupSummary = Named<contract.CronGroupSummary>;

/** Groups of cron entries, as `tocsin.cronGroups`. */
export class CronGroups<Job extends CronJob = CronJob> {
  constructor(
    private readonly requests: Requests,
    private readonly defaultsOf?: DefaultsOf,
  ) {}

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
  async put(
    name: string,
    entries: readonly CronEntry<Job>[],
    options: { timezone?: string } = {},
  ): Promise<CronGroupResult> {
    const declared = entries.map((entry) => wireCron(entry, this.defaultsOf));
    const body = jsonOf({ timezone: options.timezone, entries: declared }, 'The group');
    const answer = await this.requests.safely('PUT', pathTo`/cron-groups/${name}`, body);
    const names = (change: string) => listOf<string>(answer, change, 'the group');
    return {
      ...groupOf(answer),
      created: names('created'),
      updated: names('updated'),
      unchanged: names('unchanged'),
      deleted: names('deleted'),
    };
  }

  /** Reads a group, with the next fires of its entries. @throws {NotFoundError} */
  async get(name: string): Promise<CronGroup> {
    return groupOf(await this.requests.safely('GET', pathTo`/cron-groups/${name}`));
  }

  /** Every group, by name. */
  async *list(options: ListOptions = {}): AsyncGenerator<CronGroupSummary> {
    yield* byCursor<CronGroupSummary>(this.requests.safely, { path: '/cron-groups', member: 'groups' }, options);
  }

  /** Deletes a group with all its entries. The jobs they have enqueued stay. @throws {NotFoundError} */
  async delete(name: string): Promise<void> {
    await this.requests.remove(pathTo`/cron-groups/${name}`);
  }
}

function groupOf(answer: unknown): CronGroup {
  const { name, entries } = shaped<CronGroup>(answer, 'entries', 'the group');
  return { name, entries };
}
