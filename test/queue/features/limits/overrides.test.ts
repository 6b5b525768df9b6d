/** What operators put in the place of the limits of a key: in all queues, whichever comes first, the key or the override. */

import { evictDurableObject, runInDurableObject } from 'cloudflare:test';
import { beforeEach, describe, expect, it } from 'vitest';
import { DefaultsStore } from '../../../../src/directory/defaults';
import type { DirectoryObject } from '../../../../src/directory/object';
import { DIRECTORY, Schema } from '../../../../src/durable/schema';
import { clock, T0, until } from '../../../support/clock';
import { untoldQueues } from '../../../support/directory';
import { failAlways } from '../../../support/faults';
import { TestQueue } from '../../../support/queue';
import { type Json, server } from '../../../support/server';
import { addManyTo, addTo, armedAt, countsOf, fetchFrom } from './limited';
import { directory, existing, KEY, path, put, remove } from './overriding';

clock.startAtT0();
beforeEach(async () => {
  await server.ok(200, 'POST', '/ojs/v1/admin/reset');
});

const iso = (ms: number) => new Date(T0 + ms).toISOString();

describe('an override of a key that no job has named', () => {
  it('is shown, alone and in the list, with no queue beside it', async () => {
    const override = { concurrency: 3, limit: 10, period: 'PT1M', expires_at: iso(60_000) };
    const shown = {
      key: KEY,
      concurrency: 3,
      available: 3,
      limit: 10,
      period: 'PT1M',
      active: 0,
      current_count: 0,
      window_resets_at: null,
      waiting: 0,
      waiting_count: 0,
      override,
      queues: [],
    };
    expect(await put(override)).toEqual(shown);
    expect(await server.ok(200, 'GET', path())).toEqual(shown);
    await put({ limit: 0 }, 'another');
    const list = await server.ok(200, 'GET', '/ojs/v1/rate-limits');
    expect(list.items).toEqual([expect.objectContaining({ key: 'another', limit: 0, queues: [] }), shown]);
    expect(list.total).toBe(2);
    expect((await server.ok(200, 'GET', '/ojs/v1/queues')).queues).toEqual([]);
  });

  it('is listed once together with the keys of queues, page by page', async () => {
    const queue = new TestQueue();
    for (const key of ['a', 'c']) await addTo(queue, { key, concurrency: 1 });
    for (const key of ['b', 'c', 'd']) await put({ concurrency: 0 }, key);
    const names: unknown[] = [];
    for (let offset = 0; offset < 4; offset += 2) {
      const page = await server.ok(200, 'GET', `/ojs/v1/rate-limits?limit=2&offset=${offset}`);
      names.push(...(page.items as Json[]).map(({ key }) => key));
    }
    expect(names).toEqual(['a', 'b', 'c', 'd']);
  });

  it.each([
    ['a queue that exists', existing],
    ['a queue that is created later', async () => new TestQueue()],
    [
      'a queue that was evicted',
      async () => {
        const queue = await existing();
        await queue.evict();
        return queue;
      },
    ],
  ])('holds from the first job on in %s, and lets it go when it is taken back', async (_, make) => {
    const first = await make();
    await put({ concurrency: 0 });
    const second = await make();
    for (const queue of [first, second]) {
      const ids = [
        await addTo(queue, { key: KEY, concurrency: 5 }),
        await addTo(queue, { key: KEY, on_limit: 'drop' }),
      ];
      const free = await addTo(queue);
      expect(await fetchFrom(queue)).toEqual([free]);
      await queue.evict();
      expect(await fetchFrom(queue)).toEqual([]);
      expect(await countsOf(queue)).toMatchObject({ available: ids.length });
    }
    expect(await server.ok(200, 'GET', path())).toMatchObject({
      concurrency: 0,
      waiting: 4,
      override: { concurrency: 0 },
    });
    expect(await remove()).toBe(204);
    for (const queue of [first, second]) expect(await fetchFrom(queue)).toHaveLength(2);
    expect(await server.ok(200, 'GET', path())).not.toHaveProperty('override');
  });

  it('stands over the limits that jobs bring, member by member', async () => {
    await put({ limit: 1, period: 'PT10S' });
    const queue = new TestQueue();
    await addManyTo(queue, 4, { key: KEY, concurrency: 2, rate: 100, period: 'minute' });
    expect(await fetchFrom(queue)).toHaveLength(1);
    expect(await server.ok(200, 'GET', path())).toMatchObject({
      concurrency: 2,
      limit: 1,
      period: 'PT10S',
      waiting: 3,
    });
    clock.at(10_000);
    expect(await fetchFrom(queue)).toHaveLength(1);
    clock.at(20_000);
    expect(await fetchFrom(queue)).toEqual([]);
  });

  it('works for a key named like an Object member', async () => {
    expect(await server.refusal('GET', path('constructor'))).toMatchObject({ status: 404 });
    expect(await remove('toString')).toBe(404);
    await put({ concurrency: 0 }, 'constructor');
    const queue = new TestQueue();
    const id = await addTo(queue, { key: 'valueOf', concurrency: 1 });
    await addTo(queue, { key: 'constructor', concurrency: 1 });
    expect(await fetchFrom(queue)).toEqual([id]);
    expect(await remove('constructor')).toBe(204);
    expect(await fetchFrom(queue)).toHaveLength(1);
  });

  it('tells a producer what is left', async () => {
    await put({ concurrency: 2 });
    const body = {
      type: 'test.limited',
      args: [],
      options: { queue: 'told', rate_limit: { key: KEY, concurrency: 9 } },
    };
    const { headers } = await server.call('POST', '/ojs/v1/jobs', body);
    expect([headers.get('X-RateLimit-Limit'), headers.get('X-RateLimit-Remaining')]).toEqual(['2', '2']);
  });
});

describe('the period of a limit', () => {
  it('is a minute where no queue knows the key, or none has a rate for it', async () => {
    await put({ limit: 5 });
    expect(await server.ok(200, 'GET', path())).toMatchObject({ override: { limit: 5, period: 'PT1M' } });
    await addTo(new TestQueue(), { key: KEY, concurrency: 1 });
    expect(await put({ limit: 6 })).toMatchObject({ override: { limit: 6, period: 'PT1M' } });
    expect(await put({ limit: 0 })).toMatchObject({ limit: 0 });
  });

  it('comes from each queue, or from another one if a queue has none', async () => {
    const [minute, hour, none] = [new TestQueue(), new TestQueue(), new TestQueue()];
    await addManyTo(minute, 4, { key: KEY, rate: 1, period: 'minute' });
    const answer = await put({ limit: 2 });
    expect(answer).toMatchObject({ limit: 2, period: 'PT1M' });
    expect(answer.override).toEqual({ limit: 2 });
    await addManyTo(hour, 4, { key: KEY, rate: 1, period: 'hour' });
    await addManyTo(none, 4, { key: KEY, concurrency: 9 });
    for (const queue of [minute, hour, none]) expect(await fetchFrom(queue)).toHaveLength(2);
    clock.at(60_000);
    for (const queue of [minute, none]) expect(await fetchFrom(queue)).toHaveLength(2);
    expect(await fetchFrom(hour)).toEqual([]);
  });
});

describe('the end of an override', () => {
  it('lets jobs start that wait, in a queue that was created after it and has lost its memory', async () => {
    await put({ concurrency: 0, expires_at: '+PT1M' });
    const queue = new TestQueue();
    await addManyTo(queue, 3, { key: KEY, concurrency: 3 });
    await queue.evict();
    expect(await fetchFrom(queue)).toEqual([]);
    expect(await armedAt(queue)).toBe(60_000);
    clock.at(59_999);
    expect(await fetchFrom(queue)).toEqual([]);
    clock.at(60_000);
    await queue.evict();
    await queue.alarm();
    expect(await fetchFrom(queue)).toHaveLength(3);
  });

  it('does not wake a queue in which no job waits for it', async () => {
    const [idle, other] = [await existing(), await existing()];
    await addTo(other, { key: 'other', concurrency: 1 });
    const before = [await armedAt(idle), await armedAt(other)];
    await put({ concurrency: 0, expires_at: '+PT1M' });
    await addTo(other, { key: 'other', concurrency: 1 });
    expect([await armedAt(idle), await armedAt(other)]).toEqual(before);
  });

  it('is forgotten: it is shown no more, and leaves its key unknown', async () => {
    const queue = await existing();
    await put({ concurrency: 0, expires_at: '+PT1M' });
    await put({ concurrency: 0, expires_at: '+PT2M' }, 'longer');
    clock.at(60_000);
    expect(await server.refusal('GET', path())).toMatchObject({ status: 404 });
    expect(await remove()).toBe(404);
    expect(((await server.ok(200, 'GET', '/ojs/v1/rate-limits')).items as Json[]).map(({ key }) => key)).toEqual([
      'longer',
    ]);
    await put({ concurrency: 0 }, 'next');
    const kept = async (object: unknown, query: string) =>
      runInDurableObject(
        object as DurableObjectStub<DirectoryObject>,
        (_, { storage }) => storage.sql.exec(query).one().data as string,
      );
    const inDirectory = await kept(directory(), 'SELECT limit_overrides AS data FROM queue_defaults');
    const inQueue = await kept(queue.stub, "SELECT value AS data FROM meta WHERE key = 'defaults'");
    expect(Object.keys(JSON.parse(inDirectory))).toEqual(['longer', 'next']);
    expect(Object.keys(JSON.parse(inQueue).overrides)).toEqual(['longer', 'next']);
  });

  it('that jobs waited for is not looked at again at each start of the object', async () => {
    await put({ concurrency: 0, expires_at: '+PT1M' });
    const queue = new TestQueue();
    await addManyTo(queue, 3, { key: KEY, concurrency: 1 });
    clock.at(60_000);
    expect(await fetchFrom(queue)).toHaveLength(1);
    await queue.evict();
    const next = await queue.inside(({ q }) => q.store.limiters.nextCheck);
    expect(next).toBeGreaterThan(T0 + 60_000);
  });

  it('is moved by a later override, and comes to nothing when that has none', async () => {
    const queue = new TestQueue();
    await addManyTo(queue, 2, { key: KEY, concurrency: 2 });
    await put({ concurrency: 0, expires_at: '+PT1M' });
    await fetchFrom(queue);
    await put({ concurrency: 0, expires_at: '+PT2M' });
    clock.at(60_000);
    expect(await fetchFrom(queue)).toEqual([]);
    await put({ concurrency: 0 });
    clock.at(120_000);
    expect(await fetchFrom(queue)).toEqual([]);
    await queue.evict();
    expect(await fetchFrom(queue)).toEqual([]);
  });
});

describe('a queue that could not be notified of an override', () => {
  it('hears of it by alarm, and the answer says that it has not yet', async () => {
    const [lost, other] = [await existing(), await existing()];
    const heal = await lost.inside(({ sql }) => failAlways(sql, /INSERT OR REPLACE INTO meta/));
    expect(await put({ concurrency: 0 })).toMatchObject({ override: { concurrency: 0 }, pending_queues: 1 });
    expect(await untoldQueues()).toEqual([lost.name]);
    for (const queue of [lost, other]) await addTo(queue, { key: KEY, concurrency: 2 });
    expect(await fetchFrom(other)).toEqual([]);
    heal();
    await until(async () => {
      await clock.ring(directory());
      return (await untoldQueues()).length === 0;
    }, 'the queue to be told');
    expect(await fetchFrom(lost)).toEqual([]);
    expect(await remove()).toBe(204);
    for (const queue of [lost, other]) expect(await fetchFrom(queue)).toHaveLength(1);
  });

  it('hears that it was taken back, and lets waiting jobs start, when the directory died before it notified any queue', async () => {
    await put({ concurrency: 0 });
    const queue = new TestQueue();
    const id = await addTo(queue, { key: KEY, concurrency: 1 });
    await runInDurableObject(directory(), async (_, { storage }) => {
      const host = { storage, wakeAt: () => undefined };
      const died = () => Promise.reject(new Error('it died'));
      new DefaultsStore(host, new Schema(storage, DIRECTORY), died).override(KEY, null, Date.now());
      await storage.deleteAlarm();
    });
    expect(await fetchFrom(queue)).toEqual([]);
    await evictDurableObject(directory());
    await until(async () => {
      await clock.ring(directory());
      return (await untoldQueues()).length === 0;
    }, 'all queues to be told');
    expect(await fetchFrom(queue)).toEqual([id]);
  });

  it('goes by the latest change, in whatever order changes reach it', async () => {
    const queue = new TestQueue();
    await addTo(queue, { key: KEY, concurrency: 1 });
    const take = (version: number, concurrency: number) =>
      queue.stub.takeDefaults({ version, config: {}, overrides: { [KEY]: { concurrency } } } as never);
    await take(7, 0);
    await take(6, 5);
    expect(await fetchFrom(queue)).toEqual([]);
  });

  it('keeps its settings and the overrides apart, whichever changes', async () => {
    const queue = await existing();
    const configure = (config: Json) => server.configure('_default', config);
    await put({ concurrency: 0 });
    await configure({ max_size: 2 });
    await put({ concurrency: 0 }, 'other');
    for (const key of [KEY, 'other']) await addTo(queue, { key, concurrency: 1 });
    expect(await fetchFrom(queue)).toEqual([]);
    const body = { type: 'test.limited', args: [], options: { queue: queue.name } };
    expect(await server.refusal('POST', '/ojs/v1/jobs', body)).toMatchObject({ status: 429 });
    await configure({ max_size: null });
    await server.configure(queue.name, { concurrency: 4 });
    expect(await fetchFrom(queue)).toEqual([]);
    expect(await server.ok(200, 'GET', '/ojs/v1/queues/_default/config')).toMatchObject({ config: {} });
  });
});
