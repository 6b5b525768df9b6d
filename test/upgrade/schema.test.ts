/** The version of a stored database: steps from earlier ones, and none that lead back from later ones. */
import { evictDurableObject, runInDurableObject } from 'cloudflare:test';
import { env } from 'cloudflare:workers';
import { beforeEach, describe, expect, it } from 'vitest';
import { Schema, type SchemaVersion } from '../../src/durable/schema';
import { readFact, writeMeta } from '../../src/durable/sql';
import { ApiError } from '../../src/job/errors';
import { clock } from '../support/clock';
import { failOnce } from '../support/faults';
import { TestQueue } from '../support/queue';
import { type Json, server, V1 } from '../support/server';
import { contents, load, type Namespace, object, QUEUE_8, tablesOf } from './stored';

const { at: T0, ids } = QUEUE_8;
const META = 'CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID;';

/** Something that stores letters, in three versions of its code. */
const FIRST: SchemaVersion = {
  object: 'letter box',
  version: 1,
  first: ['letters'],
  tables: 'CREATE TABLE letters (id INTEGER PRIMARY KEY, text TEXT NOT NULL) STRICT',
  steps: {},
};
const SECOND: SchemaVersion = {
  object: 'letter box',
  version: 2,
  first: ['letters'],
  tables: `${META} CREATE TABLE letters (id INTEGER PRIMARY KEY, text TEXT NOT NULL, size INTEGER NOT NULL) STRICT`,
  steps: {
    2: `${META}
        ALTER TABLE letters ADD COLUMN size INTEGER NOT NULL DEFAULT 0;
        UPDATE letters SET size = length(text);`,
  },
};
const THIRD: SchemaVersion = {
  object: 'letter box',
  version: 3,
  first: ['letters'],
  tables: `${META} CREATE TABLE parcels (id INTEGER PRIMARY KEY, text TEXT NOT NULL, size INTEGER NOT NULL) STRICT`,
  steps: { ...SECOND.steps, 3: 'ALTER TABLE letters RENAME TO parcels' },
};

let made = 0;

/** Runs in the storage of an object that is empty. */
function inEmpty<T>(run: (storage: DurableObjectStorage) => T): Promise<T> {
  return runInDurableObject(env.QUEUES.getByName(`empty-${++made}`), (_, { storage }) => run(storage));
}

const write = ({ sql }: DurableObjectStorage) => sql.exec("INSERT INTO letters (text) VALUES ('dear')").toArray();

/** What it throws. */
function refusalOf(run: () => unknown): ApiError {
  try {
    run();
  } catch (error) {
    if (error instanceof ApiError) return error;
    throw error;
  }
  throw new Error('expected a refusal');
}

describe('a schema', () => {
  it('makes no tables by being asked for', async () => {
    await inEmpty((storage) => {
      expect(new Schema(storage, THIRD).exist()).toBe(false);
      expect(tablesOf(storage.sql)).toEqual([]);
    });
  });

  it('is not there because the platform keeps a table of its own', async () => {
    await inEmpty((storage) => {
      storage.sql.exec('CREATE TABLE __platform (name TEXT)').toArray();
      expect(new Schema(storage, FIRST).exist()).toBe(false);
      new Schema(storage, FIRST).create();
      write(storage);
    });
  });

  it('makes the tables of its version, once', async () => {
    await inEmpty((storage) => {
      const schema = new Schema(storage, THIRD);
      schema.create();
      schema.create();
      expect(schema.exist()).toBe(true);
      expect(tablesOf(storage.sql)).toEqual(['meta', 'parcels']);
      new Schema(storage, THIRD).create();
    });
  });

  it('makes them again after a transaction that made them was rolled back', async () => {
    await inEmpty((storage) => {
      const schema = new Schema(storage, FIRST);
      const died = new Error('died');
      expect(() =>
        storage.transactionSync(() => {
          schema.create();
          throw died;
        }),
      ).toThrow(died);
      expect(schema.exist()).toBe(false);
      schema.create();
      write(storage);
    });
  });

  it.each([
    ['one step', SECOND, 'letters'],
    ['several steps', THIRD, 'parcels'],
  ])('brings an earlier database to its version by %s, once, with what it has', async (_, later, table) => {
    await inEmpty((storage) => {
      new Schema(storage, FIRST).create();
      write(storage);
      for (const schema of [new Schema(storage, later), new Schema(storage, later)]) {
        expect(schema.exist()).toBe(true);
        expect(storage.sql.exec(`SELECT * FROM ${table}`).toArray()).toEqual([{ id: 1, text: 'dear', size: 4 }]);
      }
    });
  });

  it('leaves a database as it was when a step fails, and tries again', async () => {
    await inEmpty((storage) => {
      new Schema(storage, FIRST).create();
      write(storage);
      failOnce(storage.sql, /RENAME/);
      expect(() => new Schema(storage, THIRD).exist()).toThrow('storage failed');
      expect(new Schema(storage, FIRST).exist()).toBe(true);
      expect(tablesOf(storage.sql)).toEqual(['letters']);
      expect(new Schema(storage, THIRD).exist()).toBe(true);
    });
  });

  it('refuses a database of a later version, and of one from which no step leads here', async () => {
    await inEmpty((storage) => {
      new Schema(storage, SECOND).create();
      expect(refusalOf(() => new Schema(storage, FIRST, 'home').exist()).data).toMatchObject({
        status: 503,
        code: 'unavailable',
        type: 'newer_state',
        retryable: true,
        headers: { 'Retry-After': '60' },
        message: 'The letter box home is stored in version 2 of its schema; this code supports version 1.',
        details: { stored_version: 2, known_version: 1 },
        hint: 'Deploy the newer version again.',
      });
      const without = { ...THIRD, steps: {} };
      const tooOld = refusalOf(() => new Schema(storage, without).create()).data;
      expect(tooOld).toMatchObject({ status: 500, code: 'invalid_configuration' });
      expect(tooOld.hint).toContain('between');
      expect(new Schema(storage, SECOND).refusal).toBeUndefined();
    });
  });
});

describe('an object whose database is of a later version', () => {
  beforeEach(async () => {
    clock.set(T0);
    await load(QUEUE_8);
  });
  clock.restoreAfterEach();

  const workflow = ids.workflow as string;

  /** @param version undefined: as version 1 does, it tells none @returns the one before */
  async function setVersion(namespace: Namespace, name: string, version?: number): Promise<number | undefined> {
    const stub = object(namespace, name);
    const before = await runInDurableObject(stub, (_, { storage: { sql } }) => {
      const stored = tablesOf(sql).includes('meta') ? readFact<number>(sql, 'schema') : undefined;
      if (version === undefined) sql.exec('DROP TABLE meta').toArray();
      else if (stored === undefined) sql.exec(META).toArray();
      if (version !== undefined) writeMeta(sql, 'schema', version);
      return stored;
    });
    await evictDurableObject(stub);
    return before;
  }

  const refused = { status: 503, body: { error: { code: 'unavailable', type: 'newer_state', retryable: true } } };
  const add = (queue: string) => ({ type: 'test.job', args: [], options: { queue } });

  it.each<[string, string, unknown]>([
    ['POST', '/jobs', add('old')],
    ['GET', `/jobs/${ids.available}`, undefined],
    ['DELETE', `/jobs/${ids.available}`, undefined],
    ['POST', '/workers/fetch', { queues: ['old'] }],
    ['POST', '/workers/ack', { job_id: ids.active }],
    ['GET', '/queues/old/stats', undefined],
    ['PUT', '/queues/old/config', { concurrency: 1 }],
    ['POST', '/queues/old/pause', undefined],
    ['GET', `/jobs/${ids.active}/progress`, undefined],
    ['GET', '/cron/tick', undefined],
  ])('a queue answers %s %s by saying so', async (method, path, body) => {
    await setVersion('QUEUES', 'old', 99);
    const answer = await server.call(method, V1 + path, body);
    expect(answer, JSON.stringify(answer.body)).toMatchObject(refused);
    expect((answer.body.error as Json).details).toMatchObject({ name: 'old', stored_version: 99 });
  });

  it('a queue writes nothing, keeps its alarm, lets the others continue, and continues with the code that knows it', async () => {
    const stored = await setVersion('QUEUES', 'old', 99);
    const before = await contents('QUEUES', 'old');
    const old = new TestQueue('old');
    await old.startCounting();
    await server.call('POST', `${V1}/jobs`, add('old'));
    await server.call('POST', `${V1}/jobs/batch`, { jobs: [add('peer'), add('old')] });
    expect((await old.counted()).written).toBe(0);
    expect(await contents('QUEUES', 'old')).toEqual(before);
    expect(await server.job(await server.add('test.job', [], { queue: 'peer' }))).toMatchObject({ state: 'available' });

    await old.alarm();
    expect(await contents('QUEUES', 'old')).toEqual({ ...before, alarm: T0 + 60_000 });

    await setVersion('QUEUES', 'old', stored);
    expect(await server.job(ids.available as string)).toMatchObject({ state: 'available' });
    expect((await contents('QUEUES', 'old')).alarm).toBeLessThan(T0 + 60_000);
  });

  it.each<[string, Namespace, string, [string, string, unknown?][]]>([
    [
      'a directory',
      'DIRECTORY',
      'directory',
      [
        ['GET', '/queues'],
        ['POST', '/queues', { name: 'more' }],
      ],
    ],
    [
      'a workflow',
      'WORKFLOWS',
      workflow,
      [
        ['GET', `/workflows/${workflow}`],
        ['DELETE', `/workflows/${workflow}`],
      ],
    ],
    [
      'a lock object',
      'UNIQUE_LOCKS',
      'd6',
      [['POST', '/jobs', { type: 'global', args: ['global'], options: { queue: 'old', unique: { keys: ['type'] } } }]],
    ],
  ])('%s refuses what needs it, and is left as it is', async (_, namespace, name, requests) => {
    const stored = await setVersion(namespace, name, 99);
    const before = await contents(namespace, name);
    for (const [method, path, body] of requests) {
      expect(await server.call(method, V1 + path, body), `${method} ${path}`).toMatchObject(refused);
    }
    expect(await contents(namespace, name)).toEqual(before);
    await clock.ring(object(namespace, name));
    expect(await contents(namespace, name)).toEqual({ ...before, alarm: T0 + 60_000 });
    expect(await server.take('peer')).toEqual(expect.any(Array));
    // As far as the tests go, the later code is this code: the version of what is stored is put back.
    await setVersion(namespace, name, stored);
    for (const [method, path, body] of requests) {
      expect((await server.call(method, V1 + path, body)).status, `${method} ${path}`).toBeLessThan(500);
    }
  });
});
