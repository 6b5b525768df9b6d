import type { JobState } from '../job/states';
import { NotFoundError } from '../producer/errors';
import { jsonOf } from '../producer/job';
import { listOf, member, shaped } from './answers';
import { ageText, purgedOf, waitParameter } from './bulk';
import {
  type ExportOptions,
  exportQueue,
  type FileText,
  type Imported,
  type ImportOptions,
  importQueue,
} from './export';
import { byCursor, type ListOptions } from './pages';
import type {
  Age,
  GroupChange,
  InspectedQueue,
  PriorityCount,
  Purged,
  QueueConfig,
  QueueConfigChange,
  QueueCounts,
  QueueDefaults,
  QueueDeletion,
  QueueDetail,
  QueueGroupDetail,
  QueueGroupsSeen,
  QueueOverview,
  QueueRemoval,
  QueueSettings,
  QueueState,
  QueueSummary,
} from './queue-config';
import { checked, pathTo, type Requests } from './requests';
import type { Open } from './transport';

/** The path of the settings that hold for queues without their own. */
const DEFAULTS = '_default';

export interface Queues {
  list(options?: ListOptions): AsyncGenerator<QueueSummary>;
  /** A queue with its settings and counts. @throws {NotFoundError} */
  get(name: string): Promise<QueueDetail>;
  /**
   * Creates a queue with settings. A queue exists from its first job on; use this to set it up before.
   * @throws {ConflictError} when it exists; {@link InvalidJobError}
   * @example
   * await tocsin.queues.create('mail', { concurrency: 20, allowedJobTypes: ['email.*'] });
   */
  create(name: string, config?: QueueConfig): Promise<QueueConfig>;
  /** The settings of a queue: its own, and what holds. */
  config(name: string): Promise<QueueSettings>;
  /**
   * Changes the named settings; `null` returns one to its default. Creates the queue if it does not exist.
   * @throws {InvalidJobError}
   * @example
   * await tocsin.queues.configure('mail', { rateLimit: { limit: 1000, period: 'minute' }, maxSize: null });
   */
  configure(name: string, change: QueueConfigChange): Promise<QueueConfig>;
  /** The settings that hold in every queue without its own. */
  defaults(): Promise<QueueSettings>;
  /** Changes the settings that hold in every queue without its own, like {@link Queues.configure}. */
  setDefaults(change: QueueConfigChange): Promise<QueueDefaults>;
  /** Pauses a queue: it accepts jobs and hands none out, until it is resumed. */
  pause(name: string): Promise<QueueState>;
  /** Drains a queue: it hands out its jobs and accepts none, until it is resumed. */
  drain(name: string): Promise<QueueState>;
  /** Ends a pause or a drain. */
  resume(name: string): Promise<QueueState>;
  /** How many jobs a queue has in each state; zeros for one that does not exist. */
  stats(name: string): Promise<QueueCounts>;
  /** How many jobs that have not ended there are of each priority. */
  priorities(name: string): Promise<PriorityCount[]>;
  /**
   * The groups that have jobs which wait or run, those with most waiting jobs first.
   * @param options.limit at most 100, the default
   * @param options.offset groups to leave out first
   * @example
   * const { groups } = await tocsin.queues.groups('invoices');
   * console.log(groups.filter(({ noisy }) => noisy).map(({ group, waiting }) => `${group}: ${waiting}`));
   */
  groups(name: string, options?: { limit?: number; offset?: number }): Promise<QueueGroupsSeen>;
  /** One group of a queue: what waits and runs, what limits it, and why it starts no job. */
  group(name: string, group: string): Promise<QueueGroupDetail>;
  /**
   * Changes limits, the weight or the pause of one group; `null` returns one to the queue's setting.
   * @throws {ConflictError} when the queue has no settings of groups; {@link InvalidJobError}
   * @example
   * await tocsin.queues.changeGroup('invoices', 'acme', { concurrency: 2, rate: { limit: 100, period: 'hour' } });
   */
  changeGroup(name: string, group: string, change: GroupChange): Promise<QueueGroupDetail>;
  /** Returns a group to its queue's settings: no limits of its own, no weight, no pause. */
  restoreGroup(name: string, group: string): Promise<QueueGroupDetail>;
  /** Pauses a group: its jobs wait until it is resumed, those of others run. @throws {ConflictError} */
  pauseGroup(name: string, group: string): Promise<QueueGroupDetail>;
  /** Ends the pause of a group. @throws {ConflictError} */
  resumeGroup(name: string, group: string): Promise<QueueGroupDetail>;
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
  purge(
    name: string,
    states: readonly Exclude<JobState, 'active'>[],
    options?: { olderThan?: Age; group?: string },
  ): Promise<Purged>;
  /**
   * Deletes a queue and all its ended jobs. Needs `admin:purge`.
   * @throws {ConflictError} when there are jobs that have not ended and the strategy is `reject`; {@link NotFoundError}
   * @example
   * await tocsin.queues.delete('old-mail', { strategy: 'move', targetQueue: 'mail' });
   */
  delete(name: string, removal?: QueueRemoval): Promise<QueueDeletion>;
  /**
   * A whole queue as the text of a file, piece by piece, each checked. Needs `admin:export`. Begin again after an
   * error.
   * @throws {NotFoundError} {@link ConflictError} while it is being deleted
   * @example
   * for await (const text of tocsin.queues.export('mail')) await file.write(text);
   */
  export(name: string, options?: ExportOptions): AsyncGenerator<string>;
  /**
   * Puts what was exported into an empty queue. Needs `admin:export`. Each piece is checked before it is sent. A call
   * that was cut off can be repeated: it continues behind the last part.
   * @param file its text, in pieces of any size
   * @throws {ConflictError} when the queue has other jobs; {@link InvalidJobError} when the file is not as exported
   * @example
   * await tocsin.queues.import('mail', createReadStream('mail.ndjson'));
   */
  import(name: string, file: FileText, options?: ImportOptions): Promise<Imported>;
  /** Every queue with its counts. Needs `admin:read`. */
  overview(options?: ListOptions): AsyncGenerator<QueueOverview>;
  /** A queue with the time its jobs wait. Needs `admin:read`. @throws {NotFoundError} */
  inspect(name: string): Promise<InspectedQueue>;
}

export function createQueues(requests: Requests, open: Open): Queues {
  const { once, safely, ask, read } = requests;
  const set = (action: 'pause' | 'resume' | 'drain') => async (queue: string) => {
    const answer = await safely('POST', pathTo`/queues/${queue}/${action}`);
    const { name, paused, status } = shaped<QueueState>(answer, 'paused', 'the queue');
    return { name, paused, status };
  };
  const onGroup = async (method: string, path: string, body?: string): Promise<QueueGroupDetail> =>
    ask(method, path, 'limits', 'the group', body);
  const configure = (name: string, change: QueueConfigChange) =>
    safely('PUT', pathTo`/queues/${name}/config`, jsonOf(change, 'The settings'));
  const config = async (name: string) => settingsOf(await safely('GET', pathTo`/queues/${name}/config`));
  return {
    list: (options = {}) => byCursor(safely, { path: '/queues', member: 'queues' }, options),
    get: async (name) => read(pathTo`/queues/${name}`, 'config', 'the queue'),
    create: async (name, config = {}) =>
      configOf(await once('POST', '/queues', jsonOf({ name, config }, 'The settings'))),
    config,
    configure: async (name, change) => configOf(await configure(name, change)),
    defaults: () => config(DEFAULTS),
    setDefaults: async (change) => {
      const answer = await configure(DEFAULTS, change);
      const pending = member(answer, 'pendingQueues');
      return { ...settingsOf(answer), pendingQueues: typeof pending === 'number' ? pending : 0 };
    },
    pause: set('pause'),
    drain: set('drain'),
    resume: set('resume'),
    stats: async (name) =>
      (await read<{ stats: QueueCounts }>(pathTo`/queues/${name}/stats`, 'stats', 'the counts')).stats,
    priorities: async (name) =>
      listOf(await safely('GET', pathTo`/queues/${name}/priority-stats`), 'distribution', 'the counts'),
    groups: async (name, { limit = 100, offset = 0 } = {}) => {
      type Answer = QueueGroupsSeen & { items: unknown; pagination: unknown };
      const path = `${pathTo`/queues/${name}/groups`}?limit=${limit}&offset=${offset}`;
      const { items: _, pagination: __, ...seen } = await read<Answer>(path, 'groups', 'the groups');
      return seen;
    },
    group: async (name, group) => onGroup('GET', pathTo`/queues/${name}/groups/${group}`),
    changeGroup: async (name, group, change) =>
      onGroup('PUT', pathTo`/queues/${name}/groups/${group}`, jsonOf(change, 'The change')),
    restoreGroup: async (name, group) => onGroup('DELETE', pathTo`/queues/${name}/groups/${group}`),
    pauseGroup: async (name, group) => onGroup('POST', pathTo`/queues/${name}/groups/${group}/pause`),
    resumeGroup: async (name, group) => onGroup('POST', pathTo`/queues/${name}/groups/${group}/resume`),
    purge: async (name, states, options = {}) => {
      const { olderThan, group } = checked(options, { olderThan: true, group: true });
      const older = olderThan === undefined ? undefined : ageText(olderThan);
      const body = jsonOf({ states, olderThan: older, group, confirm: true });
      return purgedOf(await once('POST', `${pathTo`/queues/${name}/purge`}?${waitParameter(requests)}`, body));
    },
    delete: async (name, removal = {}) => {
      const { strategy = 'reject', targetQueue } = checked(removal, { strategy: true, targetQueue: true });
      const path = `${pathTo`/queues/${name}`}?${waitParameter(requests)}`;
      const body = jsonOf({ strategy, targetQueue });
      return await requests.settle<QueueDeletion>(
        async (send) => shaped<QueueDeletion>(await send('DELETE', path, body), 'state', 'the queue'),
        {
          isDone: (error) => error instanceof NotFoundError,
          // The number of jobs is lost with the first answer.
          read: async () => ({ queue: name, strategy, jobsAffected: 0, state: 'deleted' }),
        },
      );
    },
    export: (name, options = {}) => exportQueue(open, name, options),
    import: (name, file, options = {}) => importQueue(safely, name, file, options),
    overview: (options = {}) => byCursor(safely, { path: '/admin/queues', member: 'items' }, options),
    inspect: async (name) => read(pathTo`/admin/queues/${name}`, 'configuration', 'the queue'),
  };
}

const configOf = (answer: unknown): QueueConfig =>
  shaped<{ config: QueueConfig }>(answer, 'config', 'the settings').config;

function settingsOf(answer: unknown): QueueSettings {
  const { config, declared, effective } = shaped<QueueSettings>(answer, 'effective', 'the settings');
  return { config, ...(declared && { declared }), effective };
}
