/**
 * Records what a release stores, for the tests that later releases can open it: fills the objects of a deployment through
 * their public surface, cuts them off from each other while something is on its way, and writes all rows to
 * `fixtures/<name>.json`.
 *
 * To record a release: copy this file to `test/upgrade/record.test.ts` in a checkout of it, set NAME, and run
 * `npx vitest run test/upgrade/record.test.ts`. A fixture is never recorded again by later code.
 */
import { runInDurableObject } from 'cloudflare:test';
import { env, exports } from 'cloudflare:workers';
import { expect, it, vi } from 'vitest';
import { createApp } from '../../src/http/app';

const NAME = 'queue-9';

/** So far ahead that no alarm fires while this records. */
const T0 = Date.UTC(2040, 8, 1, 12);
const V1 = '/ojs/v1';

type Json = Record<string, unknown>;
type Send = (request: Request) => Response | Promise<Response>;
type Namespace = 'QUEUES' | 'DIRECTORY' | 'WORKFLOWS' | 'UNIQUE_LOCKS';
type Calls = Record<string, (...args: unknown[]) => Promise<unknown>>;

const worker = (exports as unknown as { default: { fetch: Send } }).default;

async function call(send: Send, method: string, path: string, body?: unknown, headers: Record<string, string> = {}) {
  const response = await send(
    new Request(`http://localhost${V1}${path}`, {
      method,
      ...(body !== undefined && { body: JSON.stringify(body) }),
      headers: { ...(body !== undefined && { 'Content-Type': 'application/json' }), ...headers },
    }),
  );
  return { status: response.status, body: JSON.parse((await response.text()) || '{}') as Json };
}

/** A call that must succeed. */
async function ok(method: string, path: string, body?: unknown, headers?: Record<string, string>): Promise<Json> {
  const answer = await call((request) => worker.fetch(request), method, path, body, headers);
  if (answer.status >= 300) throw new Error(`${method} ${path}: ${answer.status} ${JSON.stringify(answer.body)}`);
  return answer.body;
}

/** The bindings as somebody sees them for whom every call of these methods is lost. */
function without(...methods: string[]): Json {
  const cut = (namespace: Namespace) =>
    new Proxy(env[namespace], {
      get: (target, name) =>
        name !== 'getByName'
          ? Reflect.get(target, name)
          : (object: string) =>
              new Proxy(target.getByName(object) as unknown as Calls, {
                get: (stub, member: string) =>
                  methods.includes(member)
                    ? async () => {
                        throw new Error(`${member} is lost`);
                      }
                    : (...args: unknown[]) => stub[member]?.(...args),
              }),
    });
  const names: Namespace[] = ['QUEUES', 'DIRECTORY', 'WORKFLOWS', 'UNIQUE_LOCKS'];
  return { ...env, ...Object.fromEntries(names.map((name) => [name, cut(name)])) };
}

/** A request whose driver loses these calls. */
const losing = (methods: string[], method: string, path: string, body: unknown) =>
  call((request) => createApp().fetch(request, without(...methods) as never), method, path, body);

/** From now on these calls of an object are lost. */
function cutOff(namespace: Namespace, name: string, ...methods: string[]): Promise<void> {
  return runInDurableObject(env[namespace].getByName(name) as DurableObjectStub, (object) => {
    const { life = object } = object as unknown as { life?: unknown };
    (life as { env: Json }).env = without(...methods);
  });
}

const enqueue = async (type: string, options: Json = {}, rest: Json = {}): Promise<string> => {
  const body = { type, args: [type], ...rest, options: { queue: 'old', ...options } };
  return ((await ok('POST', '/jobs', body)).job as Json).id as string;
};

/** Claims the job that was just enqueued, which is the only one to have. */
async function claimed(type: string, options: Json = {}): Promise<string> {
  const id = await enqueue(type, options);
  const { jobs } = await ok('POST', '/workers/fetch', { queues: ['old'], worker_id: 'w1' });
  expect((jobs as Json[]).map((job) => job.id)).toEqual([id]);
  return id;
}

const ack = (job_id: string, result?: unknown) => ok('POST', '/workers/ack', { job_id, result });
const nack = (job_id: string, code = 'broken') =>
  ok('POST', '/workers/nack', { job_id, error: { code, message: 'as ordered' } });

const once = { retry: { max_attempts: 1 } };
const dead = { retry: { max_attempts: 1, on_exhaustion: 'dead_letter' } };
const share = (queue: string, type: string): Json => ({ type, args: [type], options: { queue } });

async function fill(): Promise<Json> {
  for (const name of ['old', 'peer', 'target']) await ok('POST', '/queues', { name });
  await ok('PUT', '/queues/old/config', { retention: { completed: '3d' } });
  const ids: Json = {};

  // Jobs that end, one after the other, so that each is the only one to claim.
  ids.completed = await claimed('completed');
  await ack(ids.completed as string, { sum: 42 });
  ids.large = await claimed('large', { retention: { completed: 'P20D' } });
  await ack(ids.large as string, 'x'.repeat(70_000));
  ids.discarded = await claimed('discarded', once);
  await nack(ids.discarded as string);
  ids.dead = await claimed('dead', dead);
  await nack(ids.dead as string);
  ids.moving = await claimed('moving', dead);
  await nack(ids.moving as string);
  ids.cancelled = await enqueue('cancelled');
  await ok('DELETE', `/jobs/${ids.cancelled}`);
  ids.retryable = await claimed('retryable', {
    retry: { max_attempts: 3, initial_interval: 'PT10M', backoff_strategy: 'constant', jitter: false },
  });
  await nack(ids.retryable as string);

  // A workflow whose first job has ended without the workflow knowing.
  const steps = [
    { id: 'first', type: 'step', args: ['first'], options: { queue: 'old' } },
    { id: 'second', type: 'step', args: ['second'], options: { queue: 'old' } },
  ];
  ids.workflow = (await ok('POST', '/workflows', { type: 'chain', name: 'kept', steps })).id;
  const { jobs } = await ok('POST', '/workers/fetch', { queues: ['old'], worker_id: 'w1' });
  expect(jobs).toHaveLength(1);
  await cutOff('QUEUES', 'old', 'stepsEnded', 'adoptMoved', 'putCron', 'commitBatch', 'batchDecision');
  await ack((jobs as Json[])[0]?.id as string, { of: 'first' });

  // A dead letter on its way to another queue.
  const move = { override: { queue: 'target' } };
  expect((await losing([], 'POST', `/dead-letter/${ids.moving}/retry`, move)).status).toBe(503);

  // Cron entries: one here, one on its way to another queue.
  for (const name of ['tick', 'handed']) {
    const job_template = { type: name, args: [], options: { queue: 'old' } };
    await ok('POST', '/cron', { name, expression: '0 * * * *', job_template });
  }
  const handed = { type: 'handed', args: [], options: { queue: 'target' } };
  expect(
    (await losing(['putCron'], 'POST', '/cron', { name: 'handed', expression: '0 * * * *', job_template: handed }))
      .status,
  ).toBe(500);

  // Running, with progress and a checkpoint.
  ids.active = await claimed('active');
  await ok('PUT', `/jobs/${ids.active}/progress`, { progress: 0.5, checkpoint: { page: 7 } });

  // Jobs that count under a key: one runs, the others wait for it.
  const rate_limit = { key: 'stripe', concurrency: 1 };
  ids.limited = await claimed('limited', { rate_limit });
  ids.waiting = await enqueue('waiting', { rate_limit });

  // Jobs that wait.
  ids.available = await enqueue('available');
  ids.urgent = await enqueue('urgent', { priority: 50 });
  ids.scheduled = await enqueue('scheduled', { delay_until: '+PT20M' });
  ids.expiring = await enqueue('expiring', {
    delay_until: '+PT2H',
    expires_at: new Date(T0 + 1_800_000).toISOString(),
  });
  ids.pending = (
    (await ok('POST', '/jobs', { type: 'pending', args: [], options: { queue: 'old', pending: true } })).job as Json
  ).id;
  ids.unique = await enqueue('unique', { unique: { keys: ['type', 'queue'] } });
  ids.global = await enqueue('global', { unique: { keys: ['type'] } });
  ids.chosen = await enqueue('chosen', {}, { id: '01962222-bbbb-7ccc-8ddd-eeeeeeeeeeee' });
  ids.remembered = (
    (
      await ok(
        'POST',
        '/jobs',
        { type: 'remembered', args: [], options: { queue: 'old' } },
        { 'Idempotency-Key': 'answered' },
      )
    ).job as Json
  ).id;

  // Jobs of one request: those that can be had at once, and those that wait for one moment.
  const together = Array.from({ length: 6 }, (_, n) => ({
    ...{ type: n < 3 ? 'together' : 'later', args: [n] },
    options: { queue: 'old', ...(n >= 3 && { delay_until: '+PT15M' }) },
  }));
  const batch = (await ok('POST', '/jobs/batch', { jobs: together })).jobs as Json[];
  for (const [n, { id }] of batch.entries()) ids[`${n < 3 ? 'together' : 'later'}.${n}`] = id;

  // All or nothing over two queues: decided and not told (either way round), and not decided at all.
  const both = (first: string, second: string, type: string, lost: string) =>
    losing([lost, 'abortBatch', 'giveUpBatch', 'batchDecision'], 'POST', '/jobs/batch', {
      jobs: [share(first, type), share(second, type)],
    });
  await both('peer', 'old', 'taken', 'commitBatch');
  await both('old', 'peer', 'given', 'commitBatch');
  await both('peer', 'old', 'undecided', 'decideBatch');

  // A task that has been noted and not begun.
  for (let n = 0; n < 3; n++) await enqueue('doomed', { delay_until: '+PT3H' });
  const mend = await runInDurableObject(env.QUEUES.getByName('old') as DurableObjectStub, (_, { storage: { sql } }) => {
    const { exec } = sql;
    let notes = 0;
    sql.exec = ((query: string, ...bindings: unknown[]) => {
      if (query.includes('INTO tasks') && notes++ > 0) throw new Error('storage fails');
      return exec.call(sql, query, ...bindings);
    }) as SqlStorage['exec'];
    return () => {
      sql.exec = exec;
    };
  });
  const doomed = { filter: { queue: 'old', type: 'doomed' } };
  ids.task = (await ok('POST', '/jobs/bulk/cancel?wait=0', doomed, { 'Idempotency-Key': 'bulk' })).operation_id;
  void mend;

  // Settings of all queues that nobody has heard of, and a worker.
  await ok('POST', '/workers/heartbeat', { worker_id: 'w1', hostname: 'host', pid: 7 });
  await cutOff('DIRECTORY', 'directory', 'takeDefaults');
  await ok('PUT', '/queues/_default/config', { retention: { cancelled: '2d' } });
  await ok('PUT', '/rate-limits/other', { concurrency: 3 });
  return ids;
}

/** Everything an object stores. */
function stored(namespace: Namespace, name: string): Promise<Json> {
  return runInDurableObject(env[namespace].getByName(name) as DurableObjectStub, async (_, { storage }) => {
    const made = storage.sql
      .exec<{ type: string; name: string; sql: string }>(
        `SELECT type, name, sql FROM sqlite_master
         WHERE sql IS NOT NULL AND name NOT LIKE '\\_cf\\_%' ESCAPE '\\' AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'
         ORDER BY rowid`,
      )
      .toArray();
    const tables = made.filter(({ type }) => type === 'table');
    return {
      namespace,
      name,
      alarm: await storage.getAlarm(),
      schema: made.map(({ sql }) => sql),
      rows: Object.fromEntries(
        tables.map((table) => [table.name, storage.sql.exec(`SELECT * FROM ${table.name}`).toArray()]),
      ),
    };
  });
}

it('records what is stored', async () => {
  vi.setSystemTime(T0);
  const ids = await fill();
  const shards = (await (env.UNIQUE_LOCKS.getByName('register') as unknown as Calls).shards?.()) as string[];
  const objects = [
    ...['old', 'peer', 'target'].map((name) => stored('QUEUES', name)),
    stored('DIRECTORY', 'directory'),
    stored('WORKFLOWS', ids.workflow as string),
    ...['register', ...shards].map((name) => stored('UNIQUE_LOCKS', name)),
  ];
  const fixture = { at: T0, ids, objects: await Promise.all(objects) };
  await expect(`${JSON.stringify(fixture, null, 1)}\n`).toMatchFileSnapshot(`fixtures/${NAME}.json`);
});
