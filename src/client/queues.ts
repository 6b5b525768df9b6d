import type { JobState } from '../job/states';
import { NotFoundError } from '../producer/errors';
import { jsonOf } from '../producer/job';
import { listOf, member, shaped } from './answers';
import { waitParameter } from './bulk';
import { checked } from './conditions';
import {
  type ExportOptions,
  exportQueue,
  type FileText,
  type Imported,
  type ImportOptions,
  importQueue,
} from './export';
import { byCursor, type ListOptions } from './pages';
import {
  type Age,
  ageText,
  type GroupChange,
  type InspectedQueue,
  type PriorityCount,
  type Purged,
  purgedOf,
  type QueueConfig,
  type QueueConfigChange,
  type QueueCounts,
  type QueueDefaults,
  type QueueDeletion,
  type QueueDetail,
  type QueueGroupDetail,
  type QueueGroupsSeen,
  type QueueOverview,
  type QueueRemoval,
  type QueueSettings,
  type QueueState,
  type QueueSummary,
} from './queue-config';
import type { Requests } from './requests';
import { type Open, pathTo } from './transport';

/** The path of the settings that hold for queues without their own. */
const DEFAULTS = '_default';

interface Paged {
  items: unknown;
  pagination: unknown;
}

export class Queues {
  constructor(
    private readonly requests: Requests,
    private readonly open: Open,
  ) {}

  async *list(options: ListOptions = {}): AsyncGenerator<QueueSummary> {
    yield* byCursor<QueueSummary>(this.requests.safely, { path: '/queues', member: 'queues' }, options);
  }

  /** A queue with its settings and counts. @throws {NotFoundError} */
  async get(name: string): Promise<QueueDetail> {
    return await this.requests.read<QueueDetail>(pathTo`/queues/${name}`, 'config', 'the queue');
  }

  /**
   * Creates a queue with settings. A queue exists from its first job on; use this to set it up before.
   * @throws {ConflictError} when it exists; {@link InvalidJobError}
   * @example
   * await tocsin.queues.create('mail', { concurrency: 20, allowedJobTypes: ['email.*'] });
   */
  async create(name: string, config: QueueConfig = {}): Promise<QueueConfig> {
    const body = jsonOf({ name, config }, 'The settings');
    return configOf(await this.requests.once('POST', '/queues', body));
  }

  /** The settings of a queue: its own, and what holds. */
  async config(name: string): Promise<QueueSettings> {
    return settingsOf(await this.requests.safely('GET', pathTo`/queues/${name}/config`));
  }

  /**
   * Changes the named settings; `null` returns one to its default. Creates the queue if it does not exist.
   * @throws {InvalidJobError}
   * @example
   * await tocsin.queues.configure('mail', { rateLimit: { limit: 1000, period: 'minute' }, maxSize: null });
   */
  async configure(name: string, change: QueueConfigChange): Promise<QueueConfig> {
    return configOf(await this.requests.safely('PUT', pathTo`/queues/${name}/config`, jsonOf(change, 'The settings')));
  }

  /** The settings that hold in every queue without its own. */
  async defaults(): Promise<QueueSettings> {
    return settingsOf(await this.requests.safely('GET', pathTo`/queues/${DEFAULTS}/config`));
  }

  /** Changes the settings that hold in every queue without its own, like {@link Queues.configure}. */
  async setDefaults(change: QueueConfigChange): Promise<QueueDefaults> {
    const answer = await this.requests.safely(
      'PUT',
      pathTo`/queues/${DEFAULTS}/config`,
      jsonOf(change, 'The settings'),
    );
    const pending = member(answer, 'pendingQueues');
    return { ...settingsOf(answer), pendingQueues: typeof pending === 'number' ? pending : 0 };
  }

  /** Pauses a queue: it accepts jobs and hands none out, until it is resumed. */
  async pause(name: string): Promise<QueueState> {
    return await this.#set(name, 'pause');
  }

  /** Drains a queue: it hands out its jobs and accepts none, until it is resumed. */
  async drain(name: string): Promise<QueueState> {
    return await this.#set(name, 'drain');
  }

  /** Ends a pause or a drain. */
  async resume(name: string): Promise<QueueState> {
    return await this.#set(name, 'resume');
  }

  /** How many jobs a queue has in each state; zeros for one that does not exist. */
  async stats(name: string): Promise<QueueCounts> {
    const answer = await this.requests.read<{ stats: QueueCounts }>(
      pathTo`/queues/${name}/stats`,
      'stats',
      'the counts',
    );
    return answer.stats;
  }

  /** How many jobs that have not ended there are of each priority. */
  async priorities(name: string): Promise<PriorityCount[]> {
    const answer = await this.requests.safely('GET', pathTo`/queues/${name}/priority-stats`);
    return listOf<PriorityCount>(answer, 'distribution', 'the counts');
  }

  /**
   * The groups that have jobs which wait or run, those with most waiting jobs first.
   * @param options.limit at most 100, the default
   * @param options.offset groups to leave out first
   * @example
   * const { groups } = await tocsin.queues.groups('invoices');
   * console.log(groups.filter(({ noisy }) => noisy).map(({ group, waiting }) => `${group}: ${waiting}`));
   */
  async groups(name: string, options: { limit?: number; offset?: number } = {}): Promise<QueueGroupsSeen> {
    const { limit = 100, offset = 0 } = options;
    const path = `${pathTo`/queues/${name}/groups`}?limit=${limit}&offset=${offset}`;
    const answer = await this.requests.read<QueueGroupsSeen & Paged>(path, 'groups', 'the groups');
    const { items: _, pagination: __, ...seen } = answer;
    return seen;
  }

  /** One group of a queue: what waits and runs, what limits it, and why it starts no job. */
  async group(name: string, group: string): Promise<QueueGroupDetail> {
    return await this.requests.read<QueueGroupDetail>(pathTo`/queues/${name}/groups/${group}`, 'limits', 'the group');
  }

  /**
   * Changes limits, the weight or the pause of one group; `null` returns one to what the queue says.
   * @throws {ConflictError} when the queue says nothing of its groups; {@link InvalidJobError}
   * @example
   * await tocsin.queues.changeGroup('invoices', 'acme', { concurrency: 2, rate: { limit: 100, period: 'hour' } });
   */
  async changeGroup(name: string, group: string, change: GroupChange): Promise<QueueGroupDetail> {
    const body = jsonOf(change, 'The change');
    return groupOf(await this.requests.safely('PUT', pathTo`/queues/${name}/groups/${group}`, body));
  }

  /** Returns a group to what its queue says: no limits of its own, no weight, no pause. */
  async restoreGroup(name: string, group: string): Promise<QueueGroupDetail> {
    return groupOf(await this.requests.safely('DELETE', pathTo`/queues/${name}/groups/${group}`));
  }

  /** Pauses a group: its jobs wait until it is resumed, those of others run. @throws {ConflictError} */
  async pauseGroup(name: string, group: string): Promise<QueueGroupDetail> {
    return groupOf(await this.requests.safely('POST', pathTo`/queues/${name}/groups/${group}/pause`));
  }

  /** Ends the pause of a group. @throws {ConflictError} */
  async resumeGroup(name: string, group: string): Promise<QueueGroupDetail> {
    return groupOf(await this.requests.safely('POST', pathTo`/queues/${name}/groups/${group}/resume`));
  }

  /**
   * Removes jobs permanently. Needs `admin:purge`. A purge that takes longer continues in the background:
   * {@link Bulk.wait}.
   * @param states not `active`: cancel those first
   * @param options.olderThan of ended jobs since their end, of others since their enqueue
   * @param options.group only jobs of this group
   * @throws {InvalidJobError}
   * @example
   * await tocsin.queues.purge('mail', ['completed'], { olderThan: 'P1D' });
   */
  async purge(
    name: string,
    states: readonly Exclude<JobState, 'active'>[],
    options: { olderThan?: Age; group?: string } = {},
  ): Promise<Purged> {
    const { olderThan, group } = checked(options, { olderThan: true, group: true });
    const older = olderThan === undefined ? undefined : ageText(olderThan);
    const body = jsonOf({ states, olderThan: older, group, confirm: true });
    return purgedOf(
      await this.requests.once('POST', `${pathTo`/queues/${name}/purge`}?${waitParameter(this.requests)}`, body),
    );
  }

  /**
   * Deletes a queue and all its ended jobs. Needs `admin:purge`.
   * @throws {ConflictError} when there are jobs that have not ended and the strategy is `reject`; {@link NotFoundError}
   * @example
   * await tocsin.queues.delete('old-mail', { strategy: 'move', targetQueue: 'mail' });
   */
  async delete(name: string, removal: QueueRemoval = {}): Promise<QueueDeletion> {
    const { strategy = 'reject', targetQueue } = checked(removal, { strategy: true, targetQueue: true });
    const path = `${pathTo`/queues/${name}`}?${waitParameter(this.requests)}`;
    const body = jsonOf({ strategy, targetQueue });
    return await this.requests.settle<QueueDeletion>(
      async (send) => shaped<QueueDeletion>(await send('DELETE', path, body), 'state', 'the queue'),
      {
        isDone: (error) => error instanceof NotFoundError,
        // The number of jobs is lost with the first answer.
        read: async () => ({ queue: name, strategy, jobsAffected: 0, state: 'deleted' }),
      },
    );
  }

  /**
   * A whole queue as the text of a file, piece by piece, each checked. Needs `admin:export`. Begin again after an
   * error.
   * @throws {NotFoundError} {@link ConflictError} while it is being deleted
   * @example
   * for await (const text of tocsin.queues.export('mail')) await file.write(text);
   */
  export(name: string, options: ExportOptions = {}): AsyncGenerator<string> {
    return exportQueue(this.open, name, options);
  }

  /**
   * Puts what was exported into an empty queue. Needs `admin:export`. Each piece is checked before it is sent. A call
   * that was cut off can be repeated: it continues behind the last part.
   * @param file its text, in pieces of any size
   * @throws {ConflictError} when the queue has other jobs; {@link InvalidJobError} when the file is not as exported
   * @example
   * await tocsin.queues.import('mail', createReadStream('mail.ndjson'));
   */
  async import(name: string, file: FileText, options: ImportOptions = {}): Promise<Imported> {
    return await importQueue(this.requests.safely, name, file, options);
  }

  /** Every queue with its counts. Needs `admin:read`. */
  async *overview(options: ListOptions = {}): AsyncGenerator<QueueOverview> {
    yield* byCursor<QueueOverview>(this.requests.safely, { path: '/admin/queues', member: 'items' }, options);
  }

  /** A queue with the time its jobs wait. Needs `admin:read`. @throws {NotFoundError} */
  async inspect(name: string): Promise<InspectedQueue> {
    return await this.requests.read<InspectedQueue>(pathTo`/admin/queues/${name}`, 'configuration', 'the queue');
  }

  async #set(name: string, action: 'pause' | 'resume' | 'drain'): Promise<QueueState> {
    const answer = await this.requests.safely('POST', pathTo`/queues/${name}/${action}`);
    const { name: queue, paused, status } = shaped<QueueState>(answer, 'paused', 'the queue');
    return { name: queue, paused, status };
  }
}

function groupOf(answer: unknown): QueueGroupDetail {
  return shaped<QueueGroupDetail>(answer, 'limits', 'the group');
}

function configOf(answer: unknown): QueueConfig {
  return shaped<{ config: QueueConfig }>(answer, 'config', 'the settings').config;
}

function settingsOf(answer: unknown): QueueSettings {
  const { config, declared, effective } = shaped<QueueSettings>(answer, 'effective', 'the settings');
  return { config, ...(declared && { declared }), effective };
}
