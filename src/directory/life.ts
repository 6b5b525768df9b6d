/** The life of the directory, or of one of its shards: its memory, its alarm, its end. */

import { noteIds } from '../across/ids';
import { type Env, usableConfig } from '../config';
import { AlarmClock, earliest } from '../durable/alarm-clock';
import type { FollowRequest } from '../durable/feed-messages';
import { Followers } from '../durable/followers';
import { type MessageKind, OutboxRelay } from '../durable/outbox-relay';
import { inParallel } from '../durable/parallel';
import { dailyLimitUsedUp } from '../durable/platform-errors';
import { DIRECTORY, Schema } from '../durable/schema';
import { put, rows } from '../durable/sql';
import { Timers } from '../durable/timers';
import { waitAtMost } from '../durable/wait';
import { type ApiError, conflict, type Outcome, outcomeOf, payloadTooLarge, unwrap } from '../job/errors';
import { type DirectoryHealth, type KeyedOperation, MAX_QUEUES_AT_ONCE } from '../rpc/directory';
import { QUEUE_CREATED } from '../rpc/follow';
import type { IdPlace } from '../rpc/ids';
import type { QueueReading } from '../rpc/metrics';
import { misplacement, wrongPlace } from '../rpc/place';
import type { QueueApi } from '../rpc/queue';
import type { IdempotencyKey } from '../rpc/receipts';
import { directoryObject, queueObject, queueStub } from '../rpc/stubs';
import type { RegisteredSchema } from '../schemas/registry';
import { AlertList } from './alerts';
import { AuditLog } from './audit';
import { CronPlaces } from './crons';
import { DefaultsStore } from './defaults';
import { DueQueues } from './due-queues';
import { IdListing, IdRegister } from './ids';
import { KeyStore } from './keys';
import { Lookout } from './lookout';
import { OperationKeys } from './operations';
import { PoolDesk, PoolList } from './pools';
import { NewQueues, QueueList } from './queues';
import { PausedQueues, QueueReadings } from './readings';
import { Webhooks } from './webhooks/list';
import { WorkerRegistry } from './workers';
import { WorkflowList } from './workflows';

/** Schemas that are kept, and their bytes: a Worker that validates holds them all in memory. */
const MAX_SCHEMAS = 1_000;
const MAX_BYTES = 1_048_576;

type Row = { type: string; version: string; uri: string; created_at: number; data: string };

class SchemaStore {
  constructor(private readonly tables: Schema) {}

  all(): RegisteredSchema[] {
    const every = 'SELECT type, version, uri, created_at, data FROM schemas ORDER BY type, created_at';
    return this.tables.rows<Row>(every).map(({ data, ...row }) => ({ ...row, schema: JSON.parse(data) }));
  }

  /** Adds one. @throws {ApiError} 409, 413 */
  add({ schema, ...row }: RegisteredSchema): void {
    const { type, version, uri } = row;
    const taken = 'SELECT type, version FROM schemas WHERE uri = ? OR (type = ? AND version = ?)';
    const [other] = this.tables.rows<{ type: string; version: string }>(taken, uri, type, version);
    if (other) {
      const which = `version ${other.version} of ${other.type}`;
      throw conflict(
        `A schema is registered already as ${which}.`,
        { type: other.type, version: other.version },
        'Jobs may rely on it: register the change as another version, or delete that one first.',
      );
    }
    const data = JSON.stringify(schema);
    const sum = 'SELECT count(*) AS count, coalesce(sum(length(data)), 0) AS bytes FROM schemas';
    const [{ count, bytes } = { count: 0, bytes: 0 }] = this.tables.rows<{ count: number; bytes: number }>(sum);
    if (count >= MAX_SCHEMAS) throw payloadTooLarge('schemas', count + 1, MAX_SCHEMAS, 'schemas');
    if (bytes + data.length > MAX_BYTES) throw payloadTooLarge('schemas', bytes + data.length, MAX_BYTES);
    this.tables.put('schemas', { ...row, data });
  }

  /** @returns how many were removed */
  remove(type: string, version: string | undefined): number {
    const removed = 'DELETE FROM schemas WHERE type = ? AND (?2 IS NULL OR version = ?2) RETURNING version';
    return this.tables.rows(removed, type, version ?? null).length;
  }
}

type Storage = Pick<DurableObjectStorage, 'sql' | 'transactionSync'>;

/** Where the deployment was created; undefined: without a place, or it has not begun. */
function placeIn(sql: SqlStorage): string | undefined {
  if (!hasTable(sql, 'place')) return undefined;
  return rows<{ name: string }>(sql, 'SELECT name FROM place')[0]?.name;
}

/** Where the deployment was created: here and now if it has not begun. @returns null: without a place */
function claimPlace(storage: Storage, name: string): string | null {
  const { sql } = storage;
  return storage.transactionSync(() => {
    const known = placeIn(sql);
    if (known !== undefined) return known;
    if (hasTable(sql, 'queues') && rows(sql, 'SELECT 1 FROM queues LIMIT 1').length > 0) return null;
    sql.exec('CREATE TABLE place (name TEXT NOT NULL)').toArray();
    put(sql, 'place', { name });
    return name;
  });
}

const hasTable = (sql: SqlStorage, name: string): boolean =>
  rows(sql, "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?", name).length > 0;

/** A caller that changes the settings of all queues waits this long for them to be notified; and for the answer, ms. */
const DONE_WITHIN_MS = 3_000;

/** Messages sent in one event: its calls are bounded, and a message takes up to a hundred. */
const MESSAGES_PER_EVENT = 4;

const WATCH_AGAIN_MS = 60_000;

export class DirectoryLife {
  readonly tables: Schema;
  readonly queues: QueueList;
  readonly newQueues: NewQueues;
  readonly crons: CronPlaces;
  readonly workflows: WorkflowList;
  readonly operations: OperationKeys;
  readonly audit: AuditLog;
  readonly schemas: SchemaStore;
  readonly pools: PoolList;
  /** This object's pool, if it is that of one. */
  pool!: PoolDesk;
  /** Followers of the workers, and of the list of queues. */
  readonly followers: Followers;
  workers!: WorkerRegistry;
  defaults!: DefaultsStore;
  ids!: IdRegister;
  webhooks!: Webhooks;
  alerts!: AlertList;
  keys!: KeyStore;
  /** The numbers of the queues. */
  readings!: QueueReadings;
  private dueQueues!: DueQueues;
  private readonly lookout: Lookout;
  private listing!: IdListing;
  private relay!: OutboxRelay;
  private readonly after = new Timers(() => Date.now()).after;
  private readonly clock: AlarmClock;
  private paused!: PausedQueues;
  private registering: Promise<void> | undefined;

  constructor(
    private readonly ctx: DurableObjectState,
    private readonly env: Env,
  ) {
    const { storage, id } = ctx;
    this.followers = new Followers(ctx, () => Date.now());
    this.tables = new Schema(storage, DIRECTORY, id.name, misplacement(id, env) ?? this.leftBehind());
    this.queues = new QueueList(this.tables, (name) => {
      this.readings.changed(name);
      this.followers.announce(QUEUE_CREATED, name);
    });
    this.newQueues = new NewQueues(this.tables);
    this.crons = new CronPlaces(this.tables);
    this.workflows = new WorkflowList(this.tables);
    this.operations = new OperationKeys(this.tables);
    this.audit = new AuditLog(this.tables);
    this.schemas = new SchemaStore(this.tables);
    this.pools = new PoolList(this.tables);
    // The stored alarm need not be known: the first one armed here is the earliest necessary one.
    this.clock = new AlarmClock(storage, null);
    this.lookout = new Lookout(env, id.name ?? '');
    this.open();
    if (!this.tables.refusal) this.watch();
  }

  /** Where this deployment was created, as the directory outside of any place knows. Asked with a place only. */
  claimPlace(location: string): string | null {
    return claimPlace(this.ctx.storage, location);
  }

  /** Why this is not the directory, if the deployment was created in a place and its variable is empty now. */
  private leftBehind(): ApiError | undefined {
    const place = placeIn(this.ctx.storage.sql);
    return place === undefined ? undefined : wrongPlace(place, undefined);
  }

  private open(): void {
    const { ctx, env, tables } = this;
    const now = () => Date.now();
    const wakeAt = (at: number) => this.clock.arm(at, now());
    const keepAlive = (promise: Promise<unknown>) => ctx.waitUntil(promise);
    const host = { storage: ctx.storage, now, wakeAt, keepAlive, after: this.after };
    const settingsChanged = (at: number) => this.defaults.spreadAnew(at);
    this.workers = new WorkerRegistry(tables);
    this.keys = new KeyStore(tables);
    const name = (ctx.id.name ?? '').replace(/^pool /, '');
    this.pool = new PoolDesk(tables, (queue) => queueObject(env, queue).activeCount(), name);
    this.followers.attach(this.workers.events);
    const { events } = this.workers;
    this.webhooks = new Webhooks(
      {
        ...host,
        env,
        events,
        routesChanged: settingsChanged,
        send: () => this.relay.start(),
        reset: () => this.reset(),
      },
      tables,
    );
    this.alerts = new AlertList(tables, (id) => this.webhooks.list.find(id) !== undefined, settingsChanged);
    const alsoFor = (queue: string) => {
      const [webhooks, alerts] = [this.webhooks.list.routes(queue), this.alerts.rules(queue)];
      return { ...(webhooks.length > 0 && { webhooks }), ...(alerts.length > 0 && { alerts }) };
    };
    const { maxStorageBytes } = usableConfig(env);
    const spreading = { ...host, alsoFor, maxStorageBytes };
    this.defaults = new DefaultsStore(spreading, tables, async (queue, defaults) =>
      unwrap(await queueObject(env, queue).takeDefaults(defaults)),
    );
    this.ids = new IdRegister({ ...host, knownIds: (queue, ids) => queueObject(env, queue).knownIds(ids) }, tables);
    const listed = {
      chosenIds: (queue: string, after: string) => queueObject(env, queue).chosenIds(after),
      noteIds: (places: IdPlace[]) => noteIds(env, places, true),
    };
    this.listing = new IdListing(listed, tables);
    const kinds = [this.defaults.messages, this.listing.messages, ...this.webhooks.messages];
    this.relay = new OutboxRelay(kinds, host, { sends: MESSAGES_PER_EVENT });
    this.paused = new PausedQueues(
      (limit) => this.queues.page({ limit }).queues.map(({ name }) => name),
      async (queue) => (await this.readings.of(queue)).paused,
    );
    // Not through the usual stub: this question is not a sign of a change.
    const asked = (queue: string) => queueStub<QueueApi>(env, queue);
    this.readings = new QueueReadings((queue) => asked(queue).watch(), host);
    this.dueQueues = new DueQueues(tables, (queue) => asked(queue).nextDue());
    this.queues.forget();
    this.newQueues.forget();
  }

  /** The alarm has fired. Never rejects. */
  async alarm(): Promise<void> {
    await this.clock.ring(() => this.work());
  }

  private async work(): Promise<void> {
    const { refusal } = this.tables;
    if (refusal) throw refusal;
    const now = Date.now();
    this.clock.fired(now);
    this.relay.startAnew();
    const isDue = (this.dueQueues.due(now) ?? Number.POSITIVE_INFINITY) <= now;
    if (isDue && this.dueQueues.isLate(now)) this.lookout.alarmsWereLost();
    await Promise.all([
      this.relay.idle(),
      this.webhooks.sender.alarm(),
      this.ids
        .goRound()
        .catch((error) => console.error('tocsin: a scan of ids was interrupted and continues later:', error)),
      isDue ? this.dueQueues.look(now) : undefined,
      this.lookout.alarm(this, isDue, now),
    ]);
    this.watch();
  }

  private watch(): void {
    const now = Date.now();
    try {
      const { relay, ids, webhooks, dueQueues, lookout } = this;
      const moments = [relay.due(now), ids.due(), webhooks.sender.due(now), dueQueues.due(now), lookout.due(now)];
      const next = earliest(moments);
      if (next !== null) this.clock.arm(next, now);
      this.audit.prune(now);
    } catch (error) {
      console.error('tocsin: not all due work of the directory could be done', error);
      this.clock.arm(now + WATCH_AGAIN_MS, now);
    }
  }

  /** Arms the alarm for what is due, if that was lost. @returns whether queues are looked after here */
  revive(): boolean {
    this.lookout.called(Date.now());
    this.watch();
    return this.dueQueues.due(Date.now()) !== undefined;
  }

  /** A queue's numbers are outdated. @param dueAt its next due moment @returns when the directory looks; epoch ms */
  queueChanged(queue: string, dueAt?: number): number | null {
    this.readings.changed(queue);
    const now = Date.now();
    const lookAt = dueAt === undefined ? null : this.dueQueues.report(queue, dueAt, now);
    const next = this.dueQueues.due(now);
    // Also when this queue is not the one: its alarm may have been lost.
    if (next !== undefined) this.clock.arm(next, now);
    return lookAt;
  }

  /** Answers the upgrade of a follower. */
  follow(wanted: FollowRequest): Outcome<Response> {
    return outcomeOf(() => this.followers.accept(wanted));
  }

  /** The answer to a probe. @param mustWrite fails where storage cannot be written */
  async health(now: number, mustWrite = false): Promise<DirectoryHealth> {
    if (mustWrite && this.tables.exist()) {
      this.tables.writeFact('probed_at', now);
      await this.ctx.storage.sync();
    }
    const total = this.queues.count();
    const { code, message, headers } = dailyLimitUsedUp(now) ?? {};
    const paused = Math.min(total, await this.paused.count(now));
    return {
      queues: { total, paused },
      workers: this.workers.summary(now),
      ...(code && message && { trouble: { code, message, ...(headers && { headers }) } }),
    };
  }

  /** The numbers of these queues, if they exist. @param fresh these are asked anyway */
  async readQueues(names: readonly string[], fresh: readonly string[]): Promise<QueueReading[]> {
    const readings = await inParallel(names, (name) => this.readings.of(name, fresh.includes(name)));
    this.readings.linger();
    return readings.filter(({ exists }) => exists);
  }

  beginOperation(idempotency: IdempotencyKey, id: string): Outcome<KeyedOperation> {
    const { queues, more } = this.queues.page({ limit: MAX_QUEUES_AT_ONCE });
    const names = more ? {} : { queues: queues.map(({ name }) => name) };
    return this.operations.begin(idempotency, { id, started_at: Date.now(), ...names });
  }

  /** Forgets a queue that is being deleted; not one of the same name that was created afterwards. */
  unregister(name: string, until: number): void {
    if (!this.tables.exist()) return;
    this.queues.remove(name, until);
    this.alerts.forgetQueue(name);
    this.readings.changed(name);
    this.dueQueues.forget(name);
  }

  /** Notifies the queues of the settings, and waits a moment for that. @returns how many have not confirmed yet */
  async spread(): Promise<number> {
    await this.goOn(this.defaults.messages);
    return this.defaults.untold;
  }

  /** Continues to list ids, and waits a moment for that. @returns how many queues are left */
  async listIds(): Promise<number> {
    if (this.listing.left > 0) await this.goOn(this.listing.messages);
    return this.listing.left;
  }

  private async goOn(kind: MessageKind): Promise<void> {
    this.relay.startAnew();
    await waitAtMost(this.after, DONE_WITHIN_MS, this.relay.idle(kind));
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

  /** Notifies webhooks' objects and queues of changes, with a short wait. @returns how many have not confirmed */
  async spreadWebhooks(): Promise<number> {
    const { list } = this.webhooks;
    await Promise.all([this.goOn(list.messages), this.spread()]);
    return list.untold().length + this.defaults.untold;
  }

  async reset(): Promise<void> {
    this.relay.close();
    this.webhooks.sender.close();
    this.readings.leave();
    await this.clock.clear();
    if (this.tables.exist()) {
      await this.ctx.storage.deleteAll();
      this.tables.forget();
      this.audit.forget();
    }
    this.open();
  }
}
