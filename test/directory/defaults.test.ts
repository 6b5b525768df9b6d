/** Settings of all queues (`_default`): below those of each queue, known to every queue, whatever was out of reach when they changed. */

import { evictDurableObject, runInDurableObject } from 'cloudflare:test';
import { describe, expect, it } from 'vitest';
import { DefaultsStore } from '../../src/directory/defaults';
import { DIRECTORY, Schema } from '../../src/durable/schema';
import { clock, until } from '../support/clock';
import { directory, untoldQueues } from '../support/directory';
import { failAlways } from '../support/faults';
import { freshName, TestQueue } from '../support/queue';
import { type Json, server } from '../support/server';

server.emptyBeforeEach();

const PATH = '/ojs/v1/queues/_default/config';
const setDefaults = (change: Json) => server.ok(200, 'PUT', PATH, change);
const configOf = (queue: string) => server.ok(200, 'GET', `/ojs/v1/queues/${queue}/config`);
const effective = async (queue: string) => (await configOf(queue)).effective as Json;

/** What the object itself goes by. */
const inForce = (queue: string) => new TestQueue(queue).inside(({ q }) => q.config.settings);

const BUILT_IN = {
  concurrency: 10,
  visibility_timeout: 1800,
  retention: { completed: 'P7D', discarded: 'P30D', cancelled: 'P7D' },
  dead_letter: { retention: { max_age: 'P180D', max_count: 10_000 } },
};

/** A queue that exists. */
async function existing(): Promise<string> {
  const name = freshName('def');
  await server.ok(201, 'POST', '/ojs/v1/queues', { name });
  return name;
}

describe('settings of all queues', () => {
  it('are none at first, and are changed member by member, under both paths', async () => {
    expect(await server.ok(200, 'GET', PATH)).toEqual({ name: '_default', config: {}, effective: BUILT_IN });
    const change = { concurrency: 3, retention: { completed: '1d' }, default_timeout: 60 };
    expect(await setDefaults(change)).toEqual({
      name: '_default',
      config: { concurrency: 3, retention: { completed: 'P1D' }, default_timeout: 60 },
      effective: {
        ...BUILT_IN,
        concurrency: 3,
        default_timeout: 60,
        retention: { ...BUILT_IN.retention, completed: 'P1D' },
      },
    });
    const admin = '/ojs/v1/admin/queues/_default/config';
    await server.ok(200, 'PUT', admin, { concurrency: null, retention: { cancelled: '2d' } });
    for (const path of [PATH, admin]) {
      expect((await server.ok(200, 'GET', path)).config).toEqual({
        retention: { completed: 'P1D', cancelled: 'P2D' },
        default_timeout: 60,
      });
    }
    await evictDurableObject(directory());
    expect((await server.ok(200, 'GET', PATH)).config).toMatchObject({ default_timeout: 60 });
    expect(await server.ok(200, 'GET', '/ojs/v1/queues')).toMatchObject({ queues: [] });
  });

  it.each<[Json, number, string]>([
    [{ concurrency: 0 }, 400, 'concurrency'],
    [{ max_weight: 1 }, 422, 'max_weight'],
    [{ overflow_policy: 'block' }, 422, 'overflow_policy'],
    [{ default_retry: { max_attempts: -1 } }, 422, 'default_retry.max_attempts'],
  ])('are not changed by %j', async (change, status, field) => {
    await setDefaults({ concurrency: 4 });
    const answer = await server.call('PUT', PATH, change);
    expect([answer.status, answer.body.error?.details?.field]).toEqual([status, field]);
    expect((await server.ok(200, 'GET', PATH)).config).toEqual({ concurrency: 4 });
  });

  it.each(['stats', 'pause', 'resume', 'drain', 'purge'])('are not a queue: %s is refused', async (what) => {
    const method = what === 'stats' ? 'GET' : 'POST';
    expect((await server.call(method, `/ojs/v1/queues/_default/${what}`)).status).toBe(400);
    expect((await server.call('GET', '/ojs/v1/queues/_default')).status).toBe(400);
    expect(
      (await server.call('POST', '/ojs/v1/jobs', { type: 'a', args: [], options: { queue: '_default' } })).status,
    ).toBe(400);
  });

  it('hold in queues that exist, are created later, or do not exist, under what a queue says itself', async () => {
    const [plain, own] = [await existing(), await existing()];
    await server.configure(own, { concurrency: 8, retention: { discarded: '1d' } });
    await setDefaults({ concurrency: 3, retention: { discarded: '2d', cancelled: '3d' }, max_size: 5 });
    const later = await existing();
    const never = freshName('never');
    for (const name of [plain, later, never]) {
      const config = await configOf(name);
      expect(config.config).toEqual({});
      expect(config.effective).toMatchObject({ concurrency: 3, max_size: 5, retention: { discarded: 'P2D' } });
    }
    expect(await configOf(own)).toMatchObject({
      config: { concurrency: 8, retention: { discarded: 'P1D' } },
      effective: {
        concurrency: 8,
        max_size: 5,
        retention: { completed: 'P7D', discarded: 'P1D', cancelled: 'P3D' },
      },
    });
    for (const name of [plain, later]) {
      await new TestQueue(name).evict();
      expect(await inForce(name)).toMatchObject({ concurrency: 3, max_depth: 5 });
    }
    await server.configure(own, { concurrency: null });
    expect(await inForce(own)).toMatchObject({ concurrency: 3 });
    await setDefaults({ concurrency: null, max_size: null, retention: null });
    expect(await effective(plain)).toEqual(BUILT_IN);
    expect(await inForce(own)).toEqual({ retention: { discarded: 86_400_000 } });
  });

  it('are acted on: types, bounds, retries and limits', async () => {
    const queue = await existing();
    await setDefaults({
      allowed_job_types: ['test.*'],
      max_size: 2,
      default_retry: { max_attempts: 1, on_exhaustion: 'dead_letter' },
      rate_limit: { concurrency: 1 },
    });
    const post = (type: string) => server.call('POST', '/ojs/v1/jobs', { type, args: [], options: { queue } });
    expect((await post('other')).status).toBe(400);
    const id = await server.enqueue(queue);
    await server.enqueue(queue);
    expect((await post('test.echo')).body.error?.code).toBe('QUEUE_FULL');
    const fetched = await server.ok(200, 'POST', '/ojs/v1/workers/fetch', { queues: [queue], count: 5 });
    expect((fetched.jobs as Json[]).map((job) => job.id)).toEqual([id]);
    await server.nack(id, { error: { message: 'x' } });
    expect((await server.call('GET', `/ojs/v1/dead-letter/${id}`)).status).toBe(200);
    await server.configure(queue, { allowed_job_types: ['*'], max_size: 100, default_retry: { max_attempts: 9 } });
    expect((await post('other')).status).toBe(201);
    // A queue's own policy stands in the place of the other, not beside it.
    expect(await inForce(queue)).toMatchObject({ default_retry: { max_attempts: 9 } });
    expect((await inForce(queue)).default_retry).not.toHaveProperty('on_exhaustion');
  });

  it('keep a queue from being created by jobs that it would refuse', async () => {
    await setDefaults({ allowed_job_types: ['test.*'], default_retry: { backoff_strategy: 'polynomial' } });
    const post = (name: string, type: string, retry: Json = {}) =>
      server.call('POST', '/ojs/v1/jobs', { type, args: [], options: { queue: name, retry } });
    const first = freshName('new');
    expect((await post(first, 'other')).body.error?.details).toMatchObject({ field: 'type', allowed: ['test.*'] });
    expect((await server.ok(200, 'GET', '/ojs/v1/queues')).queues).toEqual([]);
    // What is sensible only over the policy of all queues is so in a new queue too.
    expect((await post(first, 'test.echo', { backoff_coefficient: 0.5 })).status).toBe(201);
  });

  it('change the next wake of a queue that sleeps', async () => {
    const queue = await existing();
    const inside = new TestQueue(queue);
    const id = await inside.add();
    await inside.cancel(id);
    await inside.alarm();
    expect(await inside.armedAt()).toBeGreaterThan(Date.now() + 86_400_000);
    await setDefaults({ retention: { cancelled: 'PT0S' } });
    await until(async () => {
      await inside.alarm();
      return (await inside.state(id)) === '404';
    }, 'the cancelled job to be removed');
  });

  it('cost a queue one row, and jobs none', async () => {
    const queue = await existing();
    const inside = new TestQueue(queue);
    await inside.add();
    await inside.startCounting();
    await setDefaults({ concurrency: 7 });
    const count = () => inside.counted();
    const told = await count();
    expect(told.written - told.alarms).toBe(1);
    await inside.add();
    const enqueued = await count();
    expect(enqueued.written - enqueued.alarms).toBe(1);
  });
});

describe('a queue that could not be told', () => {
  it('hears of it by alarm, and the answer says that it has not yet', async () => {
    const [lost, other] = [await existing(), await existing()];
    const heal = await new TestQueue(lost).inside(({ sql }) => failAlways(sql, /INSERT OR REPLACE INTO meta/));
    expect(await setDefaults({ concurrency: 2 })).toMatchObject({ config: { concurrency: 2 }, pending_queues: 1 });
    expect(await inForce(other)).toEqual({ concurrency: 2 });
    expect(await inForce(lost)).toEqual({});
    expect(await untoldQueues()).toEqual([lost]);
    heal();
    await until(async () => {
      await clock.ring(directory());
      return (await untoldQueues()).length === 0;
    }, 'the queue to be told');
    expect(await inForce(lost)).toEqual({ concurrency: 2 });
  });

  it('hears of it when the directory died before it notified any queue, and even when its alarm was lost', async () => {
    const queue = await existing();
    await directory().register('gone');
    const armed: number[] = [];
    await runInDurableObject(directory(), async (_, { storage }) => {
      const host = { storage, wakeAt: (at: number) => void armed.push(at) };
      const died = () => Promise.reject(new Error('it died'));
      new DefaultsStore(host, new Schema(storage, DIRECTORY), died).change({ concurrency: 6 }, Date.now());
      await storage.deleteAlarm();
    });
    expect(armed).toEqual([expect.any(Number)]);
    expect(await inForce(queue)).toEqual({});
    await evictDurableObject(directory());
    await until(async () => (await untoldQueues()).length === 0, 'all queues to be told');
    expect(await inForce(queue)).toEqual({ concurrency: 6 });
    expect((await server.call('GET', '/ojs/v1/queues/gone')).status).toBe(404);
  });

  it('goes by the latest change, in whatever order changes reach it', async () => {
    const queue = await existing();
    const { api } = new TestQueue(queue);
    await api.takeDefaults({ version: 7, config: { concurrency: 7 } });
    await api.takeDefaults({ version: 6, config: { concurrency: 6 } });
    expect(await inForce(queue)).toEqual({ concurrency: 7 });
  });

  it('is notified of the latest of many changes made at once', async () => {
    const queues = [await existing(), await existing(), await existing()];
    await Promise.all(Array.from({ length: 8 }, (_, n) => setDefaults({ concurrency: n + 1 })));
    const { concurrency } = (await server.ok(200, 'GET', PATH)).config as Json;
    for (const queue of queues) expect(await inForce(queue)).toEqual({ concurrency });
  });

  it('while it is being created goes by what holds then', async () => {
    const queue = freshName('race');
    const created = server.enqueue(queue);
    await Promise.all([created, setDefaults({ concurrency: 5 })]);
    expect(await inForce(queue)).toEqual({ concurrency: 5 });
  });
});

describe('the retention told with the statistics of dead letters', () => {
  const retention = async () => (await server.ok(200, 'GET', '/ojs/v1/dead-letter/stats')).retention;

  it('is that of all queues, and of those that differ', async () => {
    const [own] = [await existing(), await existing()];
    expect(await retention()).toEqual({ max_age: 'P180D', max_count: 10_000, by_queue: {} });
    await server.configure(own as string, { dead_letter: { retention: { max_count: 5 } } });
    expect(await retention()).toEqual({
      max_age: 'P180D',
      max_count: 10_000,
      by_queue: { [own as string]: { max_age: 'P180D', max_count: 5 } },
    });
    await setDefaults({ dead_letter: { retention: { max_age: '30d', max_count: 5 } } });
    expect(await retention()).toEqual({ max_age: 'P30D', max_count: 5, by_queue: {} });
  });
});
