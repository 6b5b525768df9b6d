/** A directory with 100,000 queues: nothing that is asked of it, or done by it, grows with their number. */
import { evictDurableObject, runInDurableObject } from 'cloudflare:test';
import { afterEach, describe, expect, it } from 'vitest';
import { DefaultsStore } from '../../src/directory/defaults';
import { DIRECTORY, Schema } from '../../src/durable/schema';
import { MAX_QUEUES_AT_ONCE } from '../../src/rpc/directory';
import { counting } from '../support/calls';
import { directory, forgetMany, listMany } from '../support/directory';
import { isLong } from '../support/long';
import { freshName } from '../support/queue';
import { type Json, server, V1 } from '../support/server';
import { StreamReader } from '../support/streams';

server.emptyBeforeEach();
afterEach(forgetMany);

const MANY = 100_000;
const T0 = 1_700_000_000_000;

describe('settings of all queues', () => {
  /** Runs in the storage of the directory, with a outbox relay's part played by the test. */
  function spreading<T>(
    tell: (queue: string) => Promise<void>,
    run: (store: DefaultsStore, sql: SqlStorage) => Promise<T>,
  ): Promise<T> {
    return runInDurableObject(directory(), async (_, { storage }) => {
      const host = { storage, wakeAt: () => undefined };
      return run(new DefaultsStore(host, new Schema(storage, DIRECTORY), tell), storage.sql);
    });
  }
  const isOpen = (store: DefaultsStore) => store.messages.due(T0, [], 1).length > 0;

  it.runIf(isLong)(
    'reach each of them with rows of bounded size and a bounded number of outbox messages at a time',
    async () => {
      await listMany(MANY);
      const told = new Set<string>();
      let letters = 0;
      await spreading(
        (queue) => {
          told.add(queue);
          return Promise.resolve();
        },
        async (store, sql) => {
          store.change({ concurrency: 3 }, T0);
          expect(store.untold).toBe(MANY);
          while (isOpen(store)) {
            const before = told.size;
            await store.messages.deliver('all queues');
            expect(told.size - before).toBeLessThanOrEqual(100);
            letters++;
          }
          const [row] = sql.exec('SELECT * FROM queue_defaults').toArray();
          expect(JSON.stringify(row).length).toBeLessThan(300);
        },
      );
      expect(told.size).toBe(MANY);
      expect(letters).toBeLessThanOrEqual(MANY / 100 + 1);
    },
  );

  it('reach queues later that could not be reached at once, and these delay no other', async () => {
    await listMany(450);
    let down = (queue: string) => Number(queue.slice(-6)) < 250;
    const told: string[] = [];
    const tell = (queue: string) => {
      if (down(queue)) return Promise.reject(new Error('it is down'));
      told.push(queue);
      return Promise.resolve();
    };
    await spreading(tell, async (store) => {
      store.change({ concurrency: 3 }, T0);
      let pauses = 0;
      const deliver = () => store.messages.deliver('all queues').catch(() => pauses++);
      for (let letter = 0; letter < 5; letter++) await deliver();
      expect(told).toHaveLength(200);
      expect(store.untold).toBe(250);
      expect(pauses).toBe(2);
      down = (queue) => queue === 'many-000007';
      for (let letter = 0; letter < 4; letter++) await deliver();
      expect(store.untold).toBe(1);
      expect(pauses).toBe(3);
      // A change that comes meanwhile begins anew.
      down = () => false;
      store.change({ concurrency: 4 }, T0);
      expect(store.untold).toBe(450);
      while (isOpen(store)) await deliver();
      expect(new Set(told).size).toBe(450);
      expect(store.untold).toBe(0);
    });
  });
});

describe('a list of queues', () => {
  it('is a page of the directory, with the number of all', async () => {
    await listMany(MANY);
    const calls = counting();
    for (const path of ['/queues', '/admin/queues']) {
      const page = await calls.server.ok(200, 'GET', `${V1}${path}?limit=5&offset=20`);
      expect(page.pagination).toMatchObject({ total: MANY, has_more: true });
      expect((page.items as Json[]).map(({ name }) => name).slice(0, 2)).toEqual(['many-000020', 'many-000021']);
      expect(calls.take().filter((call) => call.startsWith('directory.'))).toEqual(['directory.list']);
      const next = await calls.server.ok(200, 'GET', `${V1}${path}?limit=5&cursor=${page.pagination?.next_cursor}`);
      expect((next.items as Json[])[0]?.name).toBe('many-000025');
      calls.take();
    }
  });
});

describe('jobs of all queues', () => {
  const jobs = (page: Json) => (page.jobs as Json[]).map(({ id }) => id);

  it('are listed in groups of queues, each once, with calls and cursors that do not grow', async () => {
    await listMany(MAX_QUEUES_AT_ONCE + 50);
    const early = await server.enqueue('many-000003');
    const late = await server.enqueue(`many-${String(MAX_QUEUES_AT_ONCE + 4).padStart(6, '0')}`);
    const calls = counting();
    const first = await calls.server.ok(200, 'GET', `${V1}/jobs?limit=1`);
    expect(jobs(first)).toEqual([early]);
    expect(first).toMatchObject({ total: 1, total_is_exact: false, pagination: { has_more: true } });
    expect(calls.take().length).toBeLessThanOrEqual(MAX_QUEUES_AT_ONCE + 2);
    const cursor = first.pagination?.next_cursor as string;
    expect(cursor.length).toBeLessThan(8000);
    const second = await calls.server.ok(200, 'GET', `${V1}/jobs?limit=2&cursor=${cursor}`);
    expect(jobs(second)).toEqual([late]);
    expect(second).toMatchObject({ total: 1, total_is_exact: false, pagination: { has_more: false } });
    expect(calls.take().length).toBeLessThanOrEqual(MAX_QUEUES_AT_ONCE + 60);
  });

  it.each([
    ['GET', '/jobs/count'],
    ['GET', '/rate-limits'],
    ['GET', '/dead-letter/stats'],
    ['GET', '/admin/jobs?sort=priority'],
    ['POST', '/jobs/bulk/cancel'],
  ])('must be named where all are needed at once: %s %s', async (method, path) => {
    await listMany(MANY);
    const calls = counting();
    const body = method === 'POST' ? { filter: { state: 'available' } } : undefined;
    const refused = await calls.server.call(method, V1 + path, body);
    expect(refused).toMatchObject({
      status: 422,
      body: { error: { code: 'unsupported', details: { field: 'queue' } } },
    });
    expect(calls.take().length).toBeLessThanOrEqual(2);
  });

  it('are operated on where the queues are named, and the operation is found again', async () => {
    await listMany(MANY);
    const queue = freshName('named');
    await server.enqueue(queue);
    const calls = counting();
    const begun = await calls.server.call('POST', `${V1}/jobs/bulk/cancel`, { filter: { queue } });
    expect(begun).toMatchObject({ status: 200, body: { cancelled: 1 } });
    calls.take();
    const view = await calls.server.ok(200, 'GET', `${V1}/jobs/bulk/${begun.body.operation_id}`);
    expect(view).toMatchObject({ succeeded: 1 });
    expect(calls.take()).toHaveLength(2);
  });
});

describe('what shows all queues at once', () => {
  /** Names that somebody has made up after all others. */
  const junk = async (count: number) => {
    await listMany(count);
    await runInDurableObject(directory(), (_, { storage }) => {
      storage.sql.exec("UPDATE queues SET created_at = 9000000000000 WHERE name GLOB 'many-*'").toArray();
    });
  };

  it('has the busiest and the oldest where there are too many', async () => {
    const queue = freshName('old');
    const id = await server.enqueue(queue, { options: { retry: { max_attempts: 1 } } });
    await server.nack((await server.takeOne(queue)).id);
    await junk(1_000);
    const left = 1_001 - MAX_QUEUES_AT_ONCE;
    const failures = await server.ok(200, 'GET', `${V1}/admin/failures`);
    expect(failures).toMatchObject({ queues_left_out: left, items: [{ queues: [queue], count: 1 }] });
    const events = (await server.ok(200, 'GET', `${V1}/events?types=job.discarded`)).events as Json[];
    expect(events.map(({ subject }) => subject)).toEqual([id]);
    const stream = await StreamReader.open('/events/stream');
    await stream.get('system.gap');
    const next = await server.enqueue(queue);
    await stream.get('job.enqueued');
    expect(stream.of('job.enqueued').at(-1)?.data).toMatchObject({ job_id: next });
    await stream.close();
  });

  it('has one that is young and changes often', async () => {
    await junk(1_000);
    const young = freshName('young');
    await server.enqueue(young);
    expect((await directory().busiest()).names.length).toBe(MAX_QUEUES_AT_ONCE);
    await runInDurableObject(directory(), (_, { storage }) => {
      storage.sql.exec('UPDATE queues SET created_at = 9000000000001 WHERE name = ?', young).toArray();
    });
    await evictDurableObject(directory());
    expect((await directory().busiest()).names).not.toContain(young);
    for (let i = 0; i < 2; i++) await directory().queueChanged(young);
    const { names, leftOut } = await directory().busiest();
    expect([names[0], names.length, leftOut]).toEqual([young, MAX_QUEUES_AT_ONCE, 1_001 - MAX_QUEUES_AT_ONCE]);
  });
});

describe('ten thousand workers', () => {
  it('are listed by the page, and summed up for a probe', async () => {
    await directory().beat({ worker_id: 'first', state: 'running', facts: {} });
    await runInDurableObject(directory(), (_, { storage }) => {
      const data = JSON.stringify({
        started_at: 1,
        reported: 'running',
        directive: 'running',
        active_jobs: 0,
        facts: {},
      });
      const many = `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 9999)
        INSERT INTO workers (id, seen_at, data) SELECT printf('w-%05d', i), ?, ? FROM n`;
      storage.sql.exec(many, Date.now(), data).toArray();
    });
    await evictDurableObject(directory());
    const page = await server.ok(200, 'GET', `${V1}/admin/workers?limit=2&offset=5000`);
    expect((page.items as Json[]).map(({ id }) => id)).toEqual(['w-05000', 'w-05001']);
    expect(page.summary).toMatchObject({ total: 10_000, running: 10_000 });
    expect((await directory().health()).workers).toMatchObject({ total: 10_000, stale: 0 });
  });
});
