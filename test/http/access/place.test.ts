/** `DATA_LOCATION`: where the data lies, for ever. The runtime of the tests has no places, so a namespace plays them. */
import { evictDurableObject, runInDurableObject } from 'cloudflare:test';
import { env } from 'cloudflare:workers';
import { afterEach, describe, expect, it } from 'vitest';
import type { Env } from '../../../src/config';
import { DirectoryObject } from '../../../src/directory/object';
import { UniqueLockObject } from '../../../src/locks/object';
import { QueueObject } from '../../../src/queue/object';
import { misplacement } from '../../../src/rpc/place';
import { WorkflowObject } from '../../../src/workflow/object';
import { TestQueue } from '../../support/queue';
import { server, TestServer, UNKNOWN_ID, V1 } from '../../support/server';

server.emptyBeforeEach();

const directory = () => env.DIRECTORY.getByName('directory');

/** Nothing is left that a place was claimed by. */
afterEach(async () => {
  await runInDurableObject(directory(), async (_, { storage }) => {
    if (storage.sql.exec("SELECT 1 FROM sqlite_master WHERE name = 'place'").toArray().length > 0)
      await storage.deleteAll();
  });
  await evictDurableObject(directory());
});

/** A namespace with places: objects of one are others than those of another. `asked` are those outside of any. */
function placed(real: DurableObjectNamespace, asked: string[] = []) {
  return {
    getByName: (name: string) => {
      asked.push(name);
      return real.getByName(name);
    },
    jurisdiction: (place: string) => ({ getByName: (name: string) => real.getByName(`${place}: ${name}`) }),
  };
}

function serverIn(DATA_LOCATION: string, change: Record<string, unknown> = {}): TestServer {
  const { QUEUES, DIRECTORY, UNIQUE_LOCKS, WORKFLOWS } = env;
  const all = Object.entries({ QUEUES, DIRECTORY, UNIQUE_LOCKS, WORKFLOWS });
  return TestServer.with({
    ...Object.fromEntries(all.map(([name, real]) => [name, placed(real as unknown as DurableObjectNamespace)])),
    DATA_LOCATION,
    ...change,
  });
}

const list = (of: TestServer) => of.call('GET', `${V1}/queues`);
const job = { type: 'test.echo', args: [], options: { queue: 'q' } };
const WRONG = { status: 500, body: { error: { code: 'invalid_configuration', retryable: false } } };
const messageOf = async (of: TestServer) => (await list(of)).body.error?.message;

describe('a variable that cannot be followed', () => {
  it.each(['mars', 'EU', 'eu us', 7])('refuses everything: %j', async (DATA_LOCATION) => {
    const other = TestServer.with({ DATA_LOCATION });
    const answer = await other.call('POST', `${V1}/jobs`, job);
    expect(answer).toMatchObject(WRONG);
    expect(answer.body.error?.message).toContain('eu, us, fedramp, fedramp-high');
    expect(await other.call('POST', `${V1}/workers/ack`, { job_id: UNKNOWN_ID })).toMatchObject(WRONG);
    expect((await list(server)).body.queues).toEqual([]);
  });

  it('refuses everything where the runtime has no places, and leaves nothing behind', async () => {
    const other = TestServer.with({ DATA_LOCATION: 'eu' });
    for (const [method, path, body] of [
      ['POST', '/jobs', job],
      ['GET', '/admin/deployment', undefined],
      ['POST', '/workers/ack', { job_id: UNKNOWN_ID }],
    ] as const) {
      const answer = await other.call(method, V1 + path, body);
      expect(answer).toMatchObject(WRONG);
      expect(answer.body.error).toMatchObject({
        message: 'DATA_LOCATION=eu: this runtime cannot keep data in a place.',
        hint: expect.stringContaining('.dev.vars'),
      });
    }
    await evictDurableObject(directory());
    await server.ok(201, 'POST', `${V1}/jobs`, job);
  });

  it('is not set when it is empty', async () => {
    const { data_location } = await TestServer.with({ DATA_LOCATION: '' }).ok(200, 'GET', `${V1}/admin/deployment`);
    expect(data_location).toBeNull();
  });
});

describe('the place of a deployment', () => {
  it('is that of the first who asks, and neither changed nor removed afterwards', async () => {
    const deployment = await serverIn('eu').ok(200, 'GET', `${V1}/admin/deployment`);
    expect(deployment.data_location).toBe('eu');
    expect((await list(serverIn('eu'))).status).toBe(200);
    const changed = await list(serverIn('us'));
    expect(changed).toMatchObject(WRONG);
    expect(changed.body.error?.message).toBe(
      'This deployment was created in eu, and DATA_LOCATION is us: its data stays where it is.',
    );
    expect(await serverIn('us').call('POST', `${V1}/workers/ack`, { job_id: UNKNOWN_ID })).toMatchObject(WRONG);
    await evictDurableObject(directory());
    const removed = await server.call('POST', `${V1}/jobs`, job);
    expect(removed).toMatchObject(WRONG);
    expect(removed.body.error).toMatchObject({
      message: 'This deployment was created in eu, and DATA_LOCATION is not set: its data stays where it is.',
      hint: expect.stringContaining('Set DATA_LOCATION to eu'),
    });
    const rows = await runInDurableObject(directory(), (_, { storage: { sql } }) => [
      sql.exec('SELECT * FROM place').toArray(),
      sql.exec("SELECT name FROM sqlite_master WHERE type = 'table' AND name IN ('queues', 'meta')").toArray(),
    ]);
    expect(rows[0]).toEqual([{ name: 'eu' }]);
  });

  it('is none for a deployment that has begun without', async () => {
    await server.ok(201, 'POST', `${V1}/jobs`, job);
    expect(await messageOf(serverIn('eu'))).toBe(
      'This deployment was created without a place, and DATA_LOCATION is eu: its data stays where it is.',
    );
    await evictDurableObject(directory());
    await server.ok(201, 'POST', `${V1}/jobs`, job);
  });

  it('is asked once in each isolate', async () => {
    const asked: string[] = [];
    const other = serverIn('eu', { DIRECTORY: placed(env.DIRECTORY as unknown as DurableObjectNamespace, asked) });
    for (let n = 0; n < 5; n++) await list(other);
    expect(asked).toEqual(['directory']);
  });

  it('that cannot be known is 503, and asked again', async () => {
    let isReachable = false;
    const real = placed(env.DIRECTORY as unknown as DurableObjectNamespace);
    const lost = { claimPlace: () => Promise.reject(new Error('Network connection lost.')) };
    const DIRECTORY = { ...real, getByName: (name: string) => (isReachable ? real.getByName(name) : lost) };
    const other = serverIn('eu', { DIRECTORY });
    expect(await list(other)).toMatchObject({ status: 503, body: { error: { code: 'unavailable', retryable: true } } });
    isReachable = true;
    expect((await list(other)).status).toBe(200);
  });
});

describe('an object of another place', () => {
  const elsewhere = { ...env, DATA_LOCATION: 'eu' } as unknown as Env;

  it.each([
    ['eu', 'eu', undefined],
    [undefined, undefined, undefined],
    [undefined, 'eu', 'was created without a place'],
    ['eu', undefined, 'was created in eu'],
    ['us', 'eu', 'was created in us'],
    ['eu', 'mars', 'must be one of'],
  ])('is found by comparing: it lies in %j, the variable says %j', (jurisdiction, DATA_LOCATION, message) => {
    const id = jurisdiction === undefined ? {} : { jurisdiction };
    const found = misplacement(id, { ...(DATA_LOCATION !== undefined && { DATA_LOCATION }) })?.message;
    if (message === undefined) expect(found).toBeUndefined();
    else expect(found).toContain(message);
  });

  it('refuses calls and does no work, but keeps its alarm and its jobs', async () => {
    const queue = new TestQueue();
    const id = await queue.add();
    const seen = await runInDurableObject(queue.stub, async (_, state) => {
      const other = new QueueObject(state, elsewhere);
      await state.blockConcurrencyWhile(async () => undefined);
      const calls = [() => other.get(id), () => other.claim({ count: 1 }), () => other.stats()];
      const messages = await Promise.all(
        calls.map((call) => call().then(JSON.stringify, (error: unknown) => String(error))),
      );
      await other.alarm();
      return { messages, alarm: await state.storage.getAlarm() };
    });
    for (const message of seen.messages) expect(message).toContain('created without a place');
    expect(seen.alarm).toBeGreaterThan(Date.now());
    await queue.evict();
    expect(await queue.claimAll()).toEqual([id]);
  });

  it('is any of the classes, and each can be constructed for its alarm', async () => {
    const calls: [DurableObjectStub, (state: DurableObjectState) => unknown][] = [
      [directory(), (state) => new DirectoryObject(state, elsewhere).register('q')],
      [env.WORKFLOWS.getByName('w'), (state) => new WorkflowObject(state, elsewhere).get()],
      [
        env.UNIQUE_LOCKS.getByName('00'),
        (state) =>
          new UniqueLockObject(state, elsewhere).reserve({
            ...{ fingerprint: 'f', ticket: 't', queue: 'q', coordinator: 'q', wait_ms: 10 },
          } as never),
      ],
    ];
    for (const [stub, call] of calls) {
      const said = await runInDurableObject(stub as never, async (_, state: DurableObjectState) => {
        try {
          return JSON.stringify(await call(state));
        } catch (error) {
          return String(error);
        }
      });
      expect(said).toContain('created without a place');
    }
  });
});
