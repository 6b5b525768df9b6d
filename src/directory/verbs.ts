/** The answers of the directory, verb by verb ({@link DirectoryApi} explains each). */
import type { Verbs } from '../durable/answering';
import { rows } from '../durable/sql';
import { defined } from '../job/envelope/fields';
import { eventualOutcomeOf, outcomeOf } from '../job/errors';
import { holdingMaintenance } from '../job/maintenance';
import type { DirectoryApi } from '../rpc/directory';
import { changing } from './changing';
import type { DirectoryLife } from './life';
import { ALERT_VERBS, WEBHOOK_VERBS } from './webhooks/verbs';

export const VERBS: Verbs<DirectoryLife, DirectoryApi> = {
  ...WEBHOOK_VERBS,
  ...ALERT_VERBS,

  register: (life, name) => {
    const defaults = life.defaults.for(name);
    return { ...life.queues.numbered(name), ...(defaults && { defaults }) };
  },
  admitQueues: ({ newQueues }, by, names, most) => outcomeOf(() => newQueues.admit(by, names, most, Date.now())),
  list: ({ queues }, request) => queues.page(request),
  busiest: ({ queues, readings }) => queues.busiest(readings.restless()),
  resolve: ({ queues }, routes) => queues.resolve(routes),
  unregister: (life, name, until) => life.unregister(name, until),
  health: (life, mustWrite) => life.health(Date.now(), mustWrite),

  readings: (life, queues, fresh) => eventualOutcomeOf(() => life.readQueues(queues, fresh)),
  queueChanged: (life, queue, dueAt) => life.queueChanged(queue, dueAt),
  revive: (life) => life.revive(),

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
  changeQueueDefaults: (life, change, mayPurge) =>
    changing(
      (now) => ({ config: life.defaults.change(change, now, mayPurge).config }),
      () => life.spread(),
    ),
  maintenance: ({ defaults }) => holdingMaintenance(defaults.maintenance(), Date.now()) ?? null,
  declareMaintenance: async (life, notice) => {
    life.defaults.declareMaintenance(notice, Date.now());
    return { maintenance: life.defaults.maintenance() ?? null, untold: await life.spread() };
  },
  schemas: ({ defaults, schemas }, unless) => {
    const stamp = defaults.schemaStamp();
    return stamp !== undefined && stamp === unless ? null : { ...(stamp && { stamp }), schemas: schemas.all() };
  },
  putSchema: (life, given) =>
    changing(
      (now) => {
        const schema = { ...given, created_at: now };
        life.defaults.changeSchemas(() => life.schemas.add(schema), now);
        return { schema };
      },
      () => life.spread(),
    ),
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
  overrideLimit: (life, key, override) =>
    changing(
      (now) => ({ existed: life.defaults.override(key, override, now) }),
      () => life.spread(),
    ),

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
