import type { KeyChange, StoredKey } from '../access/keys';
import type { Verbs } from '../durable/answering';
import { defined } from '../job/envelope/fields';
import { eventualOutcomeOf, outcomeOf } from '../job/errors';
import type { LimitOverride } from '../job/limits/policy';
import { holdingMaintenance, type MaintenanceNotice } from '../job/maintenance';
import type { SchemaStamp } from '../job/record';
import type { Directive, WorkerBeat } from '../job/worker/heartbeat';
import type { Pool } from '../pools/pool';
import type { AuditEntry, AuditRequest } from '../rpc/audit';
import type { StoredDeclaration } from '../rpc/deployment';
import type { QueueListRequest, WorkerListRequest, WorkflowListRequest } from '../rpc/directory';
import type { IdPlace } from '../rpc/ids';
import type { PoolTaken } from '../rpc/pools';
import type { EventsRequest } from '../rpc/queue';
import type { IdempotencyKey } from '../rpc/receipts';
import type { WorkflowSummary } from '../rpc/workflow';
import type { RegisteredSchema } from '../schemas/registry';
import type { SettingsChange } from '../settings';
import type { DirectoryLife } from './life';
import { ALERT_VERBS, spreading, WEBHOOK_VERBS } from './webhooks/verbs';

export const VERBS = {
  ...WEBHOOK_VERBS,
  ...ALERT_VERBS,

  /** Outside of any place: where the deployment was created, which is here if it has not begun; null: in none. */
  claimPlace: (life, location: string) => life.claimPlace(location),
  /** Registers a queue once; answers its route, and the settings of all queues. */
  register: (life, name: string) => {
    const defaults = life.defaults.for(name);
    return { ...life.queues.numbered(name), ...(defaults && { defaults }) };
  },
  /** May this key bring these queues into being, as one of at most `most` a day? Refuses with 429. */
  admitQueues: ({ newQueues }, by: string, names: string[], most: number) =>
    outcomeOf(() => newQueues.admit(by, names, most, Date.now())),
  list: ({ queues }, request: QueueListRequest) => queues.page(request),
  /** The queues within a key's bounds, as of now; above what may be asked at once not all of them. */
  namesWithin: ({ queues }, patterns: string[]) => queues.within(patterns),
  /** As many queues as may be asked at once: those that change most, then the oldest. */
  busiest: ({ queues, readings }) => queues.busiest(readings.restless()),
  /** The queues with these routes, those that exist. */
  resolve: ({ queues }, routes: number[]) => queues.resolve(routes),
  /** Forgets a queue that was registered at or before `until` (epoch ms). */
  unregister: (life, name: string, until: number) => life.unregister(name, until),
  /** How many there are, paused queues as of a minute ago. @param mustWrite fails where storage cannot be written */
  health: (life, mustWrite?: boolean) => life.health(Date.now(), mustWrite),

  /** The numbers of these queues, asked only of those that changed since. @param fresh queues to ask anyway */
  readings: (life, queues: string[], fresh: string[]) => eventualOutcomeOf(() => life.readQueues(queues, fresh)),
  /**
   * The numbers of this queue are no longer what they were.
   * @param dueAt when it next has work of its own, epoch ms; absent: never
   * @returns when the directory looks after the queue, epoch ms. Version 0.2.0 and earlier return nothing
   */
  queueChanged: (life, queue: string, dueAt?: number): number | null | undefined => life.queueChanged(queue, dueAt),
  /** Arms its alarm for what is due, if that was lost. @returns whether queues are looked after here */
  revive: (life) => life.revive(),

  /** The settings of all queues; null when there are none. @param queue with its declarations */
  queueDefaults: ({ defaults }, queue?: string) => {
    const known = queue === undefined ? defaults.read() : defaults.for(queue);
    if (!known) return null;
    const { version, config, declared } = known;
    return defined({ version, config, declared, schemas: defaults.schemaStamp() });
  },
  /** What the code of the deployment declares; null: nothing ever. */
  declaration: ({ defaults }) => defaults.declared() ?? null,
  /** Stores the code's declarations and notifies the queues, for a moment. @returns how many have not confirmed */
  declare: async (life, declared: StoredDeclaration) => {
    life.defaults.declare(declared, Date.now());
    return await life.spread();
  },
  /** Merges a change into the settings of all queues. @returns them, and how many queues have not confirmed yet */
  changeQueueDefaults: (life, change: SettingsChange, mayPurge: boolean) =>
    spreading(life, (now) => ({ config: life.defaults.change(change, now, mayPurge).config })),
  maintenance: ({ defaults }) => holdingMaintenance(defaults.maintenance(), Date.now()) ?? null,
  /** Begins, changes or ends (null) maintenance. @returns what holds, and how many queues have not confirmed yet */
  declareMaintenance: async (life, notice: MaintenanceNotice | null) => {
    life.defaults.declareMaintenance(notice, Date.now());
    return { maintenance: life.defaults.maintenance() ?? null, untold: await life.spread() };
  },
  /** All schemas; null when they are still those of this stamp. */
  schemas: ({ defaults, schemas }, unless?: SchemaStamp) => {
    const stamp = defaults.schemaStamp();
    return stamp !== undefined && stamp === unless ? null : { ...(stamp && { stamp }), schemas: schemas.all() };
  },
  /**
   * Registers a schema, and notifies the queues of the change; waits a moment for that.
   * @returns how many queues have not confirmed yet; 409 when this version or URI exists, 413 when there is no room
   */
  putSchema: (life, given: Omit<RegisteredSchema, 'created_at'>) =>
    spreading(life, (now) => {
      const schema = { ...given, created_at: now };
      life.defaults.changeSchemas(() => life.schemas.add(schema), now);
      return { schema };
    }),
  /** Removes schemas of a type: of one version, or (without) all. @returns how many there were */
  removeSchemas: async (life, type: string, version?: string) => {
    const isThere = life.schemas
      .all()
      .some((known) => known.type === type && [undefined, known.version].includes(version));
    if (!isThere) return { removed: 0, untold: 0 };
    const removed = life.defaults.changeSchemas(() => life.schemas.remove(type, version), Date.now());
    return { removed, untold: await life.spread() };
  },
  pools: ({ pools }) => pools.all(),
  /** @returns whether there was none of this name; 413 when there are too many */
  putPool: ({ pools }, pool: Pool) => outcomeOf(() => pools.put(pool)),
  removePool: ({ pools }, name: string) => pools.remove(name),
  /** The pool is as this says from now on; null: it is no more. */
  definePool: ({ pool }, defined: Pool | null) => pool.define(defined),
  /** A worker wants jobs. 404 when there is no such pool. */
  planFetch: ({ pool }, count: number, worker?: string) =>
    eventualOutcomeOf(() => pool.plan(count, worker, () => Date.now())),
  endFetch: ({ pool }, ticket: string, taken: PoolTaken) => pool.end(ticket, taken, Date.now()),
  poolCounts: ({ pool }) => pool.counts(Date.now()),

  /** What operators put in the place of the limits of keys, as it holds now. */
  limitOverrides: ({ defaults }) => defaults.overrides(Date.now()),
  /**
   * Overrides a key's own limits in all queues, or removes the override (null), and notifies the queues; waits a moment
   * for that.
   * @returns whether there was an override, and how many queues have not confirmed yet; 409 when there are too many
   */
  overrideLimit: (life, key: string, override: LimitOverride | null) =>
    spreading(life, (now) => ({ existed: life.defaults.override(key, override, now) })),

  /** The operation of this key, begun if need be under this id. @returns 409 for a key of another request */
  beginOperation: (life, idempotency: IdempotencyKey, id: string) => life.beginOperation(idempotency, id),
  /** Which queue decides: `queue`, unless another was chosen before; null when the operation is not known. */
  coordinateOperation: ({ operations }, key: string, id: string, queue: string) =>
    operations.coordinate(key, id, queue, Date.now()),
  /** The operation changed nothing: its key may be used again. */
  forgetOperation: ({ operations }, key: string, id: string) => operations.forget(key, id),

  /** The keys made at run time, unless the caller has this version. @param used hashes of keys that were used since */
  keys: ({ keys }, version: string, used: string[]) => keys.current(version, used, Date.now()),
  keyRecords: ({ keys }) => keys.all(),
  keyRecord: ({ keys }, id: string) => keys.find(id) ?? null,
  /** 409 when there are too many. */
  createKey: ({ keys }, key: StoredKey) => outcomeOf(() => keys.create(key, Date.now())),
  /** 404; 400 for more than it had. */
  changeKey: ({ keys }, id: string, change: KeyChange) => outcomeOf(() => keys.change(id, change)),
  /** 404, 409. @param overlap how long the present secret still works, ms */
  rotateKey: ({ keys }, id: string, hash: string, overlap: number) =>
    outcomeOf(() => keys.rotate(id, hash, overlap, Date.now())),
  /** @returns whether there was one */
  revokeKey: ({ keys }, id: string) => keys.revoke(id),

  recordAudit: ({ audit }, entry: AuditEntry) => audit.record(entry),
  auditLog: ({ audit }, request: AuditRequest) => audit.page(request, Date.now()),

  /** Puts a workflow on the list, or notes its new state. */
  noteWorkflow: ({ workflows }, summary: WorkflowSummary) => workflows.note(summary),
  forgetWorkflow: ({ workflows }, id: string) => workflows.forget(id),
  /** Workflows, the latest first, a page of them. */
  workflows: ({ workflows }, request: WorkflowListRequest) => workflows.page(request),

  /** A worker is alive. @returns its directive, and whether queues must learn that it may (or may not) get jobs */
  beat: ({ workers }, beat: WorkerBeat) => workers.beat(beat, Date.now()),
  workers: ({ workers }, request: WorkerListRequest) => workers.list(request, Date.now()),
  worker: ({ workers }, id: string) => workers.get(id, Date.now()),
  /** Tells these workers, or all, what to do. @returns the ids of those that are known */
  direct: ({ workers }, directive: Directive, ids?: string[]) => workers.direct(directive, ids, Date.now()),
  /** Forgets a worker that is stale; `alive` when it is not. */
  removeWorker: ({ workers }, id: string) => workers.remove(id, Date.now()),
  /** Ids of the workers that are to get no jobs. */
  silencedWorkers: ({ workers }) => workers.silenced(),
  /** Recent events of workers, from memory. */
  workerEvents: ({ workers }, request: EventsRequest) => workers.events.read(request),

  /** A change begins: `queue` will have the entry. Gives the change its number. */
  placeCron: ({ crons }, name: string, queue: string) => crons.place(name, queue, Date.now()),
  cronPlace: ({ crons }, name: string) => crons.find(name),
  /** The change with this number is complete: no other queue has the entry. */
  confirmCron: ({ crons }, name: string, version: number) => crons.confirm(name, version),
  /** No queue has the entry, unless it was changed after the change with this number. */
  dropCron: ({ crons }, name: string, version: number) => crons.drop(name, version),
  cronQueues: ({ crons }, limit: number) => crons.queues(limit),

  /**
   * A shard notes ids under which queues are about to take jobs. One row written for each. Ids noted for other queues
   * are skipped, unless that was looked into.
   * @param lookedInto none of the other queues has such a job
   * @returns the other queues
   */
  noteIds: (life, places: IdPlace[], lookedInto?: boolean) => life.noteIds(places, lookedInto),
  placesOf: ({ ids }, wanted: string[]) => ids.find(wanted),
  /** The directory itself: records a shard in use. */
  registerShard: ({ tables }, name: string) => {
    tables.create();
    tables.rows('INSERT OR IGNORE INTO id_shards (name) VALUES (?)', name);
  },
  /** The directory itself: its shards in use. */
  shards: ({ tables }) => tables.rows<{ name: string }>('SELECT name FROM id_shards').map(({ name }) => name),
  /** Continues to note the ids of queues of an earlier release, for a moment. @returns how many queues are left */
  listIds: (life) => life.listIds(),

  reset: (life) => life.reset(),
} satisfies Verbs<DirectoryLife>;

declare module '../rpc/tables' {
  interface VerbTables {
    directory: typeof VERBS;
  }
}
