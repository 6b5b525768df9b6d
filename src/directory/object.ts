/**
 * The directory: the small object that knows which queues exist. A queue registers itself once, and gets the number that
 * its job ids carry. Never on the way of a job.
 */
import { DurableObject } from 'cloudflare:workers';
import type { Env } from '../config';
import type { QueueEvent } from '../durable/event-log';
import { withPatience } from '../durable/patience';
import { DIRECTORY, Schema } from '../durable/schema';
import { type Outcome, outcomeOf, unwrap } from '../job/errors';
import { routeCandidate } from '../job/ids';
import type { LimitOverrides } from '../job/limits/overrides';
import type { LimitOverride } from '../job/limits/policy';
import type { QueueConfig, QueueDefaults, SettingsChange } from '../job/settings';
import type { CronPlace } from '../rpc/cron';
import type {
  Directive,
  DirectoryApi,
  KeyedOperation,
  KnownQueue,
  RegisteredQueue,
  WorkerBeat,
  WorkerListRequest,
  WorkerPage,
  WorkerView,
  WorkflowListRequest,
  WorkflowPage,
} from '../rpc/directory';
import type { IdempotencyKey } from '../rpc/receipts';
import { queueObject } from '../rpc/stubs';
import type { WorkflowSummary } from '../rpc/workflow';
import { CronPlaces } from './crons';
import { DefaultsStore } from './defaults';
import { OperationKeys } from './operations';
import { WorkerRegistry } from './workers';
import { WorkflowList } from './workflows';

/** Whoever changes the settings of all queues waits so long for the queues to hear of it, ms. */
const PATIENCE_MS = 3_000;

type Row = { route: number; name: string; created_at: number };

export class DirectoryObject extends DurableObject<Env> implements DirectoryApi {
  private readonly tables: Schema;
  private readonly cronPlaces: CronPlaces;
  private readonly workflowIndex: WorkflowList;
  private readonly operationKeys: OperationKeys;
  private workerRegistry: WorkerRegistry;
  private defaults: DefaultsStore;

  constructor(ctx: DurableObjectState, env: Env) {
    super(ctx, env);
    const { storage, id } = ctx;
    this.tables = new Schema(storage, DIRECTORY, id.name);
    this.cronPlaces = new CronPlaces(storage, this.tables);
    this.workflowIndex = new WorkflowList(storage, this.tables);
    this.operationKeys = new OperationKeys(storage, this.tables);
    this.workerRegistry = this.openWorkers();
    this.defaults = this.openDefaults();
    if (!this.tables.refusal) this.defaults.watch();
  }

  /** Registers a queue, once; a later call answers the same number, and the settings of all queues as they are then. */
  async register(name: string): Promise<KnownQueue> {
    this.tables.create();
    const defaults = this.defaults.read();
    // Declared without the settings: the runtime's types know no way to send what may be anything.
    const registered: RegisteredQueue = { ...this.numbered(name), ...(defaults && { defaults }) };
    return registered;
  }

  private numbered(name: string): KnownQueue {
    return this.ctx.storage.transactionSync(() => {
      const known = this.select('name = ?', name)[0];
      if (known) return known;
      for (let probe = 0; ; probe++) {
        const route = routeCandidate(name, probe);
        if (this.select('route = ?', route).length > 0) continue;
        const queue = { route, name, created_at: Date.now() };
        this.ctx.storage.sql
          .exec('INSERT INTO queues (route, name, created_at) VALUES (?, ?, ?)', route, name, queue.created_at)
          .toArray();
        return queue;
      }
    });
  }

  /** All queues, by name. */
  async list(): Promise<KnownQueue[]> {
    return this.tables.exist() ? this.select('1 ORDER BY name') : [];
  }

  /** The queue whose job ids carry this route. */
  async resolve(route: number): Promise<KnownQueue | null> {
    return this.tables.exist() ? (this.select('route = ?', route)[0] ?? null) : null;
  }

  /** Forgets a queue that is being deleted; not one of the same name that was created afterwards. */
  async unregister(name: string, until: number): Promise<void> {
    if (!this.tables.exist()) return;
    this.ctx.storage.sql.exec('DELETE FROM queues WHERE name = ? AND created_at <= ?', name, until).toArray();
  }

  /** Forgets everything. */
  async reset(): Promise<void> {
    this.defaults.close();
    if (this.tables.exist()) {
      await this.ctx.storage.deleteAlarm();
      await this.ctx.storage.deleteAll();
      this.tables.forget();
    }
    this.defaults = this.openDefaults();
    this.workerRegistry = this.openWorkers();
  }

  // ---- settings of all queues --------------------------------------------------------------------------------------

  async queueDefaults(): Promise<QueueDefaults | null> {
    const held = this.defaults.read();
    return held ? { version: held.version, config: held.config } : null;
  }

  async changeQueueDefaults(change: SettingsChange): Promise<{ config: QueueConfig; untold: number }> {
    const { config } = this.defaults.change(change, await this.names(), Date.now());
    return { config, untold: await this.spread() };
  }

  async limitOverrides(): Promise<LimitOverrides> {
    return this.defaults.overrides(Date.now());
  }

  async overrideLimit(
    key: string,
    override: LimitOverride | null,
  ): Promise<Outcome<{ existed: boolean; untold: number }>> {
    const names = await this.names();
    const changed = outcomeOf(() => this.defaults.override(key, override, names, Date.now()));
    return changed.ok ? { ok: true, value: { existed: changed.value, untold: await this.spread() } } : changed;
  }

  /** Tells the queues, and waits a moment for that. @returns how many have not confirmed yet */
  private async spread(): Promise<number> {
    await withPatience(PATIENCE_MS, this.defaults.spread());
    return this.defaults.untold;
  }

  private async names(): Promise<string[]> {
    return (await this.list()).map(({ name }) => name);
  }

  /** Only what holds in all queues needs it. */
  override async alarm(): Promise<void> {
    if (this.tables.refusal) await this.tables.standBy(Date.now());
    else await this.defaults.alarm();
  }

  private openDefaults(): DefaultsStore {
    const { storage } = this.ctx;
    const host = {
      storage,
      now: () => Date.now(),
      keepAlive: (promise: Promise<unknown>) => this.ctx.waitUntil(promise),
    };
    return new DefaultsStore(host, this.tables, async (queue, defaults) =>
      unwrap(await queueObject(this.env, queue).takeDefaults(defaults)),
    );
  }

  // ---- operations on many jobs -------------------------------------------------------------------------------------

  async beginOperation(idempotency: IdempotencyKey, id: string): Promise<Outcome<KeyedOperation>> {
    const queues = await this.names();
    return this.operationKeys.begin(idempotency, { id, started_at: Date.now(), queues });
  }

  async coordinateOperation(key: string, id: string, queue: string): Promise<string | null> {
    return this.operationKeys.coordinate(key, id, queue, Date.now());
  }

  async forgetOperation(key: string, id: string): Promise<void> {
    this.operationKeys.forget(key, id);
  }

  // ---- workflows ---------------------------------------------------------------------------------------------------

  async noteWorkflow(summary: WorkflowSummary): Promise<void> {
    this.workflowIndex.note(summary);
  }

  async forgetWorkflow(id: string): Promise<void> {
    this.workflowIndex.forget(id);
  }

  async workflows(request: WorkflowListRequest): Promise<WorkflowPage> {
    return this.workflowIndex.page(request);
  }

  // ---- workers that pull -------------------------------------------------------------------------------------------

  async beat(beat: WorkerBeat): Promise<{ directive: Directive; silenced: boolean; silencedChanged: boolean }> {
    return this.workerRegistry.beat(beat, Date.now());
  }

  async workers(request: WorkerListRequest): Promise<WorkerPage> {
    return this.workerRegistry.list(request, Date.now());
  }

  async worker(id: string): Promise<WorkerView | null> {
    return this.workerRegistry.get(id, Date.now());
  }

  async direct(directive: Directive, ids?: string[]): Promise<string[]> {
    return this.workerRegistry.direct(directive, ids, Date.now());
  }

  async removeWorker(id: string): Promise<'removed' | 'unknown' | 'alive'> {
    return this.workerRegistry.remove(id, Date.now());
  }

  async silencedWorkers(): Promise<string[]> {
    return this.workerRegistry.silenced();
  }

  async workerEvents(request: { types?: string[]; after?: string; limit: number }): Promise<QueueEvent[]> {
    return this.workerRegistry.events.read(request);
  }

  // ---- cron entries -----------------------------------------------------------------------------------------------

  async placeCron(name: string, queue: string): Promise<CronPlace> {
    return this.cronPlaces.place(name, queue, Date.now());
  }

  async cronPlace(name: string): Promise<CronPlace | null> {
    return this.cronPlaces.find(name);
  }

  async settleCron(name: string, version: number): Promise<void> {
    this.cronPlaces.settle(name, version);
  }

  async dropCron(name: string, version: number): Promise<void> {
    this.cronPlaces.drop(name, version);
  }

  async cronQueues(): Promise<string[]> {
    return this.cronPlaces.queues();
  }

  private openWorkers(): WorkerRegistry {
    return new WorkerRegistry(this.ctx.storage.sql, this.tables);
  }

  private select(where: string, ...bindings: (string | number)[]): KnownQueue[] {
    return this.ctx.storage.sql
      .exec<Row>(`SELECT route, name, created_at FROM queues WHERE ${where}`, ...bindings)
      .toArray();
  }
}
