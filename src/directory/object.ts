/**
 * The directory: the small object that knows which queues exist. A queue registers itself once, and gets the number that
 * its job ids carry. Never on the way of a job.
 */
import type { Env } from '../config';
import { answering, type Verbs } from '../durable/answering';
import { DIRECTORY, Schema } from '../durable/schema';
import { rows } from '../durable/sql';
import { waitAtMost } from '../durable/wait';
import { outcomeOf, unwrap } from '../job/errors';
import { routeCandidate } from '../job/ids';
import type { DirectoryApi, KnownQueue } from '../rpc/directory';
import { queueObject } from '../rpc/stubs';
import { CronPlaces } from './crons';
import { DefaultsStore } from './defaults';
import { OperationKeys } from './operations';
import { WorkerRegistry } from './workers';
import { WorkflowList } from './workflows';

/** Whoever changes the settings of all queues waits so long for the queues to hear of it, ms. */
const TOLD_WITHIN_MS = 3_000;

/** What the directory knows, and its alarm. */
class DirectoryLife {
  readonly tables: Schema;
  readonly crons: CronPlaces;
  readonly workflows: WorkflowList;
  readonly operations: OperationKeys;
  workers!: WorkerRegistry;
  /** The settings of all queues. */
  defaults!: DefaultsStore;
  private readonly sql: SqlStorage;

  constructor(
    private readonly ctx: DurableObjectState,
    private readonly env: Env,
  ) {
    const { storage, id } = ctx;
    this.sql = storage.sql;
    this.tables = new Schema(storage, DIRECTORY, id.name);
    this.crons = new CronPlaces(storage, this.tables);
    this.workflows = new WorkflowList(storage, this.tables);
    this.operations = new OperationKeys(storage, this.tables);
    this.open();
    if (!this.tables.refusal) this.defaults.watch();
  }

  /** Makes anew what keeps anything in memory. */
  private open(): void {
    const { storage } = this.ctx;
    this.workers = new WorkerRegistry(this.sql, this.tables);
    const now = () => Date.now();
    const keepAlive = (promise: Promise<unknown>) => this.ctx.waitUntil(promise);
    this.defaults = new DefaultsStore({ storage, now, keepAlive }, this.tables, async (queue, defaults) =>
      unwrap(await queueObject(this.env, queue).takeDefaults(defaults)),
    );
  }

  /** The queue with this name and its number: given out now, if it has none. */
  numbered(name: string): KnownQueue {
    this.tables.create();
    return this.ctx.storage.transactionSync(() => {
      const known = this.select('name = ?', name)[0];
      if (known) return known;
      for (let probe = 0; ; probe++) {
        const route = routeCandidate(name, probe);
        if (this.select('route = ?', route).length > 0) continue;
        const queue = { route, name, created_at: Date.now() };
        const insert = 'INSERT INTO queues (route, name, created_at) VALUES (?, ?, ?)';
        rows(this.sql, insert, route, name, queue.created_at);
        return queue;
      }
    });
  }

  /** Queues by a condition. */
  select(where: string, ...bindings: (string | number)[]): KnownQueue[] {
    if (!this.tables.exist()) return [];
    const query = `SELECT route, name, created_at FROM queues WHERE ${where}`;
    return rows<{ route: number; name: string; created_at: number }>(this.sql, query, ...bindings);
  }

  /** The names of all queues. */
  get names(): string[] {
    return this.select('1 ORDER BY name').map(({ name }) => name);
  }

  /** Forgets a queue that is being deleted; not one of the same name that was created afterwards. */
  unregister(name: string, until: number): void {
    if (!this.tables.exist()) return;
    rows(this.sql, 'DELETE FROM queues WHERE name = ? AND created_at <= ?', name, until);
  }

  /** Tells the queues the settings, and waits a moment for that. @returns how many have not confirmed yet */
  async spread(): Promise<number> {
    await waitAtMost(TOLD_WITHIN_MS, this.defaults.spread());
    return this.defaults.untold;
  }

  /** Forgets everything. */
  async reset(): Promise<void> {
    this.defaults.close();
    if (this.tables.exist()) {
      await this.ctx.storage.deleteAlarm();
      await this.ctx.storage.deleteAll();
      this.tables.forget();
    }
    this.open();
  }
}

const VERBS: Verbs<DirectoryLife, DirectoryApi> = {
  register: (life, name) => {
    const defaults = life.defaults.read();
    return { ...life.numbered(name), ...(defaults && { defaults }) };
  },
  list: (life) => life.select('1 ORDER BY name'),
  resolve: (life, route) => life.select('route = ?', route)[0] ?? null,
  unregister: (life, name, until) => life.unregister(name, until),

  queueDefaults: ({ defaults }) => {
    const known = defaults.read();
    return known ? { version: known.version, config: known.config } : null;
  },
  changeQueueDefaults: async (life, change, mayPurge) => {
    const changed = outcomeOf(() => life.defaults.change(change, life.names, Date.now(), mayPurge));
    return changed.ok ? { ok: true, value: { config: changed.value.config, untold: await life.spread() } } : changed;
  },
  limitOverrides: ({ defaults }) => defaults.overrides(Date.now()),
  overrideLimit: async (life, key, override) => {
    const changed = outcomeOf(() => life.defaults.override(key, override, life.names, Date.now()));
    return changed.ok ? { ok: true, value: { existed: changed.value, untold: await life.spread() } } : changed;
  },

  beginOperation: ({ operations, names: queues }, idempotency, id) =>
    operations.begin(idempotency, { id, started_at: Date.now(), queues }),
  coordinateOperation: ({ operations }, key, id, queue) => operations.coordinate(key, id, queue, Date.now()),
  forgetOperation: ({ operations }, key, id) => operations.forget(key, id),

  noteWorkflow: ({ workflows }, summary) => workflows.note(summary),
  forgetWorkflow: ({ workflows }, id) => workflows.forget(id),
  workflows: ({ workflows }, request) => workflows.page(request),

  beat: ({ workers }, beat) => workers.beat(beat, Date.now()),
  workers: ({ workers }, request) => workers.list(request, Date.now()),
  worker: ({ workers }, id) => workers.get(id, Date.now()),
  direct: ({ workers }, directive, ids) => workers.direct(directive, ids, Date.now()),
  removeWorker: ({ workers }, id) => workers.remove(id, Date.now()),
  silencedWorkers: ({ workers }) => workers.silenced(),
  workerEvents: ({ workers }, request) => workers.events.read(request),

  placeCron: ({ crons }, name, queue) => crons.place(name, queue, Date.now()),
  cronPlace: ({ crons }, name) => crons.find(name),
  confirmCron: ({ crons }, name, version) => crons.confirm(name, version),
  dropCron: ({ crons }, name, version) => crons.drop(name, version),
  cronQueues: ({ crons }) => crons.queues(),

  reset: (life) => life.reset(),
};

/** As the runtime's types can say it: they know no way to send settings, which may hold anything. */
type Sent = Omit<DirectoryApi, 'register'> & { register(name: string): Promise<KnownQueue> };

export class DirectoryObject extends answering<Env, DirectoryLife, Sent>(VERBS) {
  readonly life: DirectoryLife;

  constructor(ctx: DurableObjectState, env: Env) {
    super(ctx, env);
    this.life = new DirectoryLife(ctx, env);
  }

  /** Only what holds in all queues needs it. */
  override async alarm(): Promise<void> {
    const { tables, defaults } = this.life;
    if (tables.refusal) await tables.standBy(Date.now());
    else await defaults.alarm();
  }
}
