/**
 * The directory: the small object that knows which queues exist. A queue registers itself once, and gets the number that
 * its job ids carry. Never on the way of a job.
 */

import { noteIds } from '../across/ids';
import type { Env } from '../config';
import { AlarmClock, earliest } from '../durable/alarm-clock';
import type { Verbs } from '../durable/answering';
import { Courier, type Kind } from '../durable/courier';
import type { FollowRequest } from '../durable/feed-messages';
import { followed } from '../durable/followed';
import { Followers } from '../durable/followers';
import { inParallel } from '../durable/parallel';
import { DIRECTORY, Schema } from '../durable/schema';
import { put, rows } from '../durable/sql';
import { waitAtMost } from '../durable/wait';
import { defined } from '../job/envelope/fields';
import { eventualOutcomeOf, type Outcome, outcomeOf, unwrap } from '../job/errors';
import { routeCandidate } from '../job/ids';
import { holdingMaintenance } from '../job/maintenance';
import {
  type DirectoryApi,
  type DirectoryHealth,
  type KeyedOperation,
  type KnownQueue,
  MAX_QUEUES_AT_ONCE,
  type QueueListRequest,
  type QueuePage,
} from '../rpc/directory';
import { QUEUE_CREATED } from '../rpc/follow';
import type { IdPlace } from '../rpc/ids';
import type { QueueReading } from '../rpc/metrics';
import type { QueueApi } from '../rpc/queue';
import type { IdempotencyKey } from '../rpc/receipts';
import { directoryObject, queueObject, queueStub } from '../rpc/stubs';
import { AlertList } from './alerts';
import { AuditLog } from './audit';
import { CronPlaces } from './crons';
import { DefaultsStore } from './defaults';
import { IdRegister } from './ids';
import { IdListing } from './listing';
import { OperationKeys } from './operations';
import { PausedQueues } from './paused';
import { PoolDesk, PoolList } from './pools';
import { QueueReadings } from './readings';
import { SchemaStore } from './schemas';
import { Webhooks } from './webhooks/part';
import { ALERT_VERBS, WEBHOOK_VERBS } from './webhooks/verbs';
import { WorkerRegistry } from './workers';
import { WorkflowList } from './workflows';

/** Whoever changes the settings of all queues waits so long for the queues to hear of it; an answer to that effect, ms. */
const DONE_WITHIN_MS = 3_000;

/** Letters sent in one event: a Durable Object may make only so many calls in one, and a letter takes up to a hundred. */
const LETTERS_PER_EVENT = 4;

/** Where a page of queues begins, when nothing is said: before all names. */
const FIRST = '';

/** What the directory knows, or one of its shards, and its alarm. */
class DirectoryLife {
  readonly tables: Schema;
  readonly crons: CronPlaces;
  readonly workflows: WorkflowList;
  readonly operations: OperationKeys;
  readonly audit: AuditLog;
  readonly schemas: SchemaStore;
  readonly pools: PoolList;
  /** This object's pool, if it is that of one. */
  pool!: PoolDesk;
  /** Whoever follows the workers, and which queues there are. */
  readonly followers: Followers;
  workers!: WorkerRegistry;
  /** The settings of all queues. */
  defaults!: DefaultsStore;
  /** A shard's part of the ids that name no queue. */
  ids!: IdRegister;
  /** Subscriptions to events; in the object of a subscription: what sends. */
  webhooks!: Webhooks;
  alerts!: AlertList;
  /** The numbers of the queues. */
  readings!: QueueReadings;
  private listing!: IdListing;
  private courier!: Courier;
  private readonly clock: AlarmClock;
  readonly sql: SqlStorage;
  private paused!: PausedQueues;
  private counted: number | undefined;
  private registering: Promise<void> | undefined;

  constructor(
    private readonly ctx: DurableObjectState,
    private readonly env: Env,
  ) {
    const { storage, id } = ctx;
    this.sql = storage.sql;
    this.followers = new Followers(ctx, () => Date.now());
    this.tables = new Schema(storage, DIRECTORY, id.name);
    this.crons = new CronPlaces(storage, this.tables);
    this.workflows = new WorkflowList(storage, this.tables);
    this.operations = new OperationKeys(storage, this.tables);
    this.audit = new AuditLog(storage, this.tables);
    this.schemas = new SchemaStore(this.sql, this.tables);
    this.pools = new PoolList(this.sql, this.tables);
    // Which alarm is stored need not be known: the first that is armed here is the earliest there has to be.
    this.clock = new AlarmClock(storage, null);
    this.open();
    if (!this.tables.refusal) this.watch();
  }

  /** Makes anew what keeps anything in memory. */
  private open(): void {
    const { ctx, env, sql, tables } = this;
    const now = () => Date.now();
    const wakeAt = (at: number) => this.clock.arm(at, now());
    const host = { storage: ctx.storage, now, wakeAt };
    const around = { now, wakeAt, keepAlive: (promise: Promise<unknown>) => ctx.waitUntil(promise) };
    this.workers = new WorkerRegistry(sql, tables);
    const name = (ctx.id.name ?? '').replace(/^pool /, '');
    this.pool = new PoolDesk(sql, tables, (queue) => queueObject(env, queue).activeCount(), name);
    this.followers.attach(this.workers.events);
    const { events } = this.workers;
    this.webhooks = new Webhooks(
      {
        ...host,
        ...around,
        env,
        events,
        routesChanged: (at) => this.defaults.spreadAnew(at),
        send: () => this.courier.start(),
        reset: () => this.reset(),
      },
      tables,
    );
    this.alerts = new AlertList(
      {
        ...host,
        hasWebhook: (id) => this.webhooks.list.find(id) !== undefined,
        rulesChanged: (at) => this.defaults.spreadAnew(at),
      },
      tables,
    );
    const alsoFor = (queue: string) => {
      const [webhooks, alerts] = [this.webhooks.list.routes(queue), this.alerts.rules(queue)];
      return { ...(webhooks.length > 0 && { webhooks }), ...(alerts.length > 0 && { alerts }) };
    };
    const spreading = { ...host, alsoFor };
    this.defaults = new DefaultsStore(spreading, tables, async (queue, defaults) =>
      unwrap(await queueObject(env, queue).takeDefaults(defaults)),
    );
    this.ids = new IdRegister({ ...host, knownIds: (queue, ids) => queueObject(env, queue).knownIds(ids) }, tables);
    const listed = {
      sql,
      chosenIds: (queue: string, after: string) => queueObject(env, queue).chosenIds(after),
      noteIds: (places: IdPlace[]) => noteIds(env, places, true),
    };
    this.listing = new IdListing(listed, tables);
    const kinds = [this.defaults.letters, this.listing.letters, ...this.webhooks.letters];
    this.courier = new Courier(kinds, around, { sends: LETTERS_PER_EVENT });
    this.paused = new PausedQueues(
      (limit) => this.page({ limit }).queues.map(({ name }) => name),
      async (queue) => (await this.readings.of(queue)).paused,
    );
    // Not as others speak with a queue: that it is asked is no sign of a change.
    this.readings = new QueueReadings((queue) => (queueStub(env, queue) as unknown as QueueApi).watch(), around);
    this.counted = undefined;
  }

  /** The alarm has fired. Never rejects. */
  async alarm(): Promise<void> {
    this.clock.fired(Date.now());
    this.courier.startAnew();
    await Promise.all([
      this.courier.idle(),
      this.webhooks.sender.alarm(),
      this.ids.goRound().catch((error) => console.error('tocsin: a round over ids goes on later:', error)),
    ]);
    this.watch();
  }

  /** Arms the alarm for what must still be done; it may have been lost. */
  private watch(): void {
    const now = Date.now();
    this.audit.prune(now);
    const next = earliest([this.courier.due(now), this.ids.due(), this.webhooks.sender.due(now)]);
    if (next !== null) this.clock.arm(next, now);
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
        put(this.sql, 'queues', { ...queue, ids_listed: 1 });
        this.counted = undefined;
        this.readings.changed(name);
        this.followers.announce(QUEUE_CREATED, name);
        return queue;
      }
    });
  }

  /** Answers the upgrade of a follower. */
  follow(wanted: FollowRequest): Outcome<Response> {
    return outcomeOf(() => this.followers.accept(wanted));
  }

  /** Queues by a condition. */
  select(where: string, ...bindings: (string | number)[]): KnownQueue[] {
    if (!this.tables.exist()) return [];
    const query = `SELECT route, name, created_at FROM queues WHERE ${where}`;
    return rows<{ route: number; name: string; created_at: number }>(this.sql, query, ...bindings);
  }

  /** A page of the queues, by name. */
  page({ after = FIRST, offset = 0, limit, part = '' }: QueueListRequest): QueuePage {
    const meant = 'name > ? AND instr(name, ?) > 0 ORDER BY name LIMIT ? OFFSET ?';
    const found = this.select(meant, after, part, limit + 1, offset);
    const total = part === '' ? this.count() : this.countWith(part);
    return { queues: found.slice(0, limit), total, more: found.length > limit };
  }

  private countWith(part: string): number {
    if (!this.tables.exist()) return 0;
    return rows<{ n: number }>(this.sql, 'SELECT count(*) AS n FROM queues WHERE instr(name, ?) > 0', part)[0]?.n ?? 0;
  }

  /** How many queues there are. Counted once and remembered: a count reads every row. */
  private count(): number {
    if (!this.tables.exist()) return 0;
    this.counted ??= rows<{ n: number }>(this.sql, 'SELECT count(*) AS n FROM queues')[0]?.n ?? 0;
    return this.counted;
  }

  /** What a probe is told. */
  async health(now: number): Promise<DirectoryHealth> {
    const total = this.count();
    const paused = Math.min(total, await this.paused.count(now));
    return { queues: { total, paused }, workers: this.workers.summary(now) };
  }

  /** The numbers of these queues, those that exist. @param fresh these are asked anyway */
  async readQueues(names: readonly string[], fresh: readonly string[]): Promise<QueueReading[]> {
    const readings = await inParallel(names, (name) => this.readings.of(name, fresh.includes(name)));
    this.readings.linger();
    return readings.filter(({ exists }) => exists);
  }

  /** The queues with these routes. */
  resolve(routes: readonly number[]): KnownQueue[] {
    return this.select('route IN (SELECT value FROM json_each(?))', JSON.stringify(routes));
  }

  /** Begins an operation under a key, with the queues that there are now. */
  beginOperation(idempotency: IdempotencyKey, id: string): Outcome<KeyedOperation> {
    const { queues, more } = this.page({ limit: MAX_QUEUES_AT_ONCE });
    const names = more ? {} : { queues: queues.map(({ name }) => name) };
    return this.operations.begin(idempotency, { id, started_at: Date.now(), ...names });
  }

  /** Forgets a queue that is being deleted; not one of the same name that was created afterwards. */
  unregister(name: string, until: number): void {
    if (!this.tables.exist()) return;
    rows(this.sql, 'DELETE FROM queues WHERE name = ? AND created_at <= ?', name, until);
    this.alerts.forgetQueue(name);
    this.readings.changed(name);
    this.counted = undefined;
  }

  /** Tells the queues the settings, and waits a moment for that. @returns how many have not confirmed yet */
  async spread(): Promise<number> {
    await this.goOn(this.defaults.letters);
    return this.defaults.untold;
  }

  /** Goes on to list ids, and waits a moment for that. @returns how many queues are left */
  async listIds(): Promise<number> {
    if (this.listing.left > 0) await this.goOn(this.listing.letters);
    return this.listing.left;
  }

  private async goOn(kind: Kind): Promise<void> {
    this.courier.startAnew();
    await waitAtMost(DONE_WITHIN_MS, this.courier.idle(kind));
  }

  /** Notes ids, in a shard that the directory knows of: a reset must find it. */
  async noteIds(places: readonly IdPlace[], lookedInto = false): Promise<IdPlace[]> {
    if (!this.tables.exist()) {
      this.registering ??= directoryObject(this.env)
        .registerShard(this.ctx.id.name ?? '')
        .finally(() => {
          this.registering = undefined;
        });
      await this.registering;
    }
    return this.ids.note(places, lookedInto);
  }

  /** Tells subscriptions, and queues, what has changed, and waits a moment for that. @returns how many have not confirmed yet */
  async spreadWebhooks(): Promise<number> {
    const { list } = this.webhooks;
    await Promise.all([this.goOn(list.letters), this.spread()]);
    return list.untold().length + this.defaults.untold;
  }

  /** Forgets everything. */
  async reset(): Promise<void> {
    this.courier.close();
    this.webhooks.sender.close();
    this.readings.leave();
    if (this.tables.exist()) {
      await this.clock.clear();
      await this.ctx.storage.deleteAll();
      this.tables.forget();
      this.audit.forget();
    }
    this.open();
  }
}

const VERBS: Verbs<DirectoryLife, DirectoryApi> = {
  ...WEBHOOK_VERBS,
  ...ALERT_VERBS,

  register: (life, name) => {
    const defaults = life.defaults.for(name);
    return { ...life.numbered(name), ...(defaults && { defaults }) };
  },
  list: (life, request) => life.page(request),
  resolve: (life, routes) => life.resolve(routes),
  unregister: (life, name, until) => life.unregister(name, until),
  health: (life) => life.health(Date.now()),

  readings: (life, queues, fresh) => eventualOutcomeOf(() => life.readQueues(queues, fresh)),
  queueChanged: ({ readings }, queue) => readings.changed(queue),

  queueDefaults: ({ defaults }, queue) => {
    const known = queue === undefined ? defaults.read() : defaults.for(queue);
    if (!known) return null;
    const { version, config, declared } = known;
    return defined({ version, config, declared, schemas: defaults.schemaStamp() });
  },
  declaration: ({ defaults }) => defaults.declared() ?? null,
  declare: async (life, declared) => {
    life.defaults.declare(declared, Date.now());
    return await life.spread();
  },
  changeQueueDefaults: async (life, change, mayPurge) => {
    const changed = outcomeOf(() => life.defaults.change(change, Date.now(), mayPurge));
    return changed.ok ? { ok: true, value: { config: changed.value.config, untold: await life.spread() } } : changed;
  },
  maintenance: ({ defaults }) => holdingMaintenance(defaults.maintenance(), Date.now()) ?? null,
  declareMaintenance: async (life, notice) => {
    life.defaults.declareMaintenance(notice, Date.now());
    return { maintenance: life.defaults.maintenance() ?? null, untold: await life.spread() };
  },
  schemas: ({ defaults, schemas }, unless) => {
    const stamp = defaults.schemaStamp();
    return stamp !== undefined && stamp === unless ? null : { ...(stamp && { stamp }), schemas: schemas.all() };
  },
  putSchema: async (life, given) => {
    const now = Date.now();
    const schema = { ...given, created_at: now };
    const put = outcomeOf(() => life.defaults.changeSchemas(() => life.schemas.add(schema), now));
    return put.ok ? { ok: true, value: { schema, untold: await life.spread() } } : put;
  },
  removeSchemas: async (life, type, version) => {
    const isThere = life.schemas
      .all()
      .some((known) => known.type === type && [undefined, known.version].includes(version));
    if (!isThere) return { removed: 0, untold: 0 };
    const removed = life.defaults.changeSchemas(() => life.schemas.remove(type, version), Date.now());
    return { removed, untold: await life.spread() };
  },
  pools: ({ pools }) => pools.all(),
  putPool: ({ pools }, pool) => outcomeOf(() => pools.put(pool)),
  removePool: ({ pools }, name) => pools.remove(name),
  definePool: ({ pool }, defined) => pool.define(defined),
  planFetch: ({ pool }, count, worker) => eventualOutcomeOf(() => pool.plan(count, worker, () => Date.now())),
  endFetch: ({ pool }, ticket, taken) => pool.end(ticket, taken, Date.now()),
  poolCounts: ({ pool }) => pool.counts(Date.now()),

  limitOverrides: ({ defaults }) => defaults.overrides(Date.now()),
  overrideLimit: async (life, key, override) => {
    const changed = outcomeOf(() => life.defaults.override(key, override, Date.now()));
    return changed.ok ? { ok: true, value: { existed: changed.value, untold: await life.spread() } } : changed;
  },

  beginOperation: (life, idempotency, id) => life.beginOperation(idempotency, id),
  coordinateOperation: ({ operations }, key, id, queue) => operations.coordinate(key, id, queue, Date.now()),
  forgetOperation: ({ operations }, key, id) => operations.forget(key, id),

  recordAudit: ({ audit }, entry) => audit.record(entry),
  auditLog: ({ audit }, request) => audit.page(request, Date.now()),

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
  cronQueues: ({ crons }, limit) => crons.queues(limit),

  noteIds: (life, places, lookedInto) => life.noteIds(places, lookedInto),
  placesOf: ({ ids }, wanted) => ids.find(wanted),
  registerShard: ({ tables, sql }, name) => {
    tables.create();
    rows(sql, 'INSERT OR IGNORE INTO id_shards (name) VALUES (?)', name);
  },
  shards: ({ tables, sql }) =>
    tables.exist() ? rows<{ name: string }>(sql, 'SELECT name FROM id_shards').map(({ name }) => name) : [],
  listIds: (life) => life.listIds(),

  reset: (life) => life.reset(),
};

/** As the runtime's types can say it: they know no way to send settings, which may hold anything. */
type Sent = Omit<DirectoryApi, 'register'> & { register(name: string): Promise<KnownQueue> };

export class DirectoryObject extends followed<Env, DirectoryLife, Sent>(VERBS) {
  readonly life: DirectoryLife;

  constructor(ctx: DurableObjectState, env: Env) {
    super(ctx, env);
    this.life = new DirectoryLife(ctx, env);
  }

  override async alarm(): Promise<void> {
    const { tables } = this.life;
    if (tables.refusal) await tables.standBy(Date.now());
    else await this.life.alarm();
  }
}
