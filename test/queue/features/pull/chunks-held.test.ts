/** Jobs of chunked handlers that may not start: they hold up none of another group, however many were read. */
import { expect, it } from 'vitest';
import { unwrap } from '../../../../src/job/errors';
import { Chunks } from '../../../../src/queue/jobs/chunks';
import type { Sizes } from '../../../../src/queue/store/sizes';
import { clock, MINUTE, SECOND } from '../../../support/clock';
import { newJob, TestQueue } from '../../../support/queue';
import { type Json, server, V1 } from '../../../support/server';

clock.startAtT0();

const SMALL: Partial<Sizes> = { chunkJobs: 20, chunkLanes: 6 };

async function queueWith(groups: Json): Promise<TestQueue> {
  const queue = new TestQueue();
  await server.configure(queue.name, { groups });
  await shrink(queue);
  return queue;
}

const shrink = (queue: TestQueue) =>
  queue.inside(({ q }) => {
    Object.assign(q.store.sizes, SMALL);
  });

async function fill(queue: TestQueue, group: string, count: number, type = 'rows.insert'): Promise<void> {
  const job = newJob({ type, group, body: { group } as never });
  unwrap(await queue.api.enqueue(Array.from({ length: count }, () => job)));
}

const fetch = async (queue: TestQueue, options: Json = {}, types = ['rows.insert'], count = 10): Promise<Json[]> => {
  const handlers = types.map((type) => ({ type, batch: { size: 4, wait_ms: 0, ...options } }));
  const body = { queues: [queue.name], count, handlers, types };
  return (await server.ok(200, 'POST', `${V1}/workers/fetch`, body)).jobs as Json[];
};

const fail = (id: unknown, retry_in: number) => server.nack(id, { error: { code: 'E', message: 'm', retry_in } });

const BOUNDS: [of: string, groups: Json][] = [
  ['its rate', { order: 'fair', limits: { noisy: { rate: { limit: 4, period: 'day' } } } }],
  ['its concurrency', { order: 'fair', limits: { noisy: { concurrency: 4 } } }],
  ['its order', { order: 'strict' }],
];

it.each(BOUNDS)('a long backlog that is held by %s holds up no other group', async (_, groups) => {
  for (const options of [{}, { by: 'group' }]) {
    const queue = await queueWith(groups);
    await fill(queue, 'noisy', 100);
    const first = await fetch(queue, options);
    expect(first).toHaveLength(4);
    await fetch(queue, options);
    const quiet = await server.enqueue(queue.name, { type: 'rows.insert', options: { group: 'quiet' } });
    const found: unknown[] = [];
    for (let n = 0; n < 5; n++) found.push(...(await fetch(queue, options)).map(({ id }) => id));
    expect(found).toEqual([quiet]);
  }
});

it('jobs that another worker has taken keep no place among those that are gathered', async () => {
  const queue = await queueWith({ order: 'fair' });
  await queue.inside(({ q }) => Object.assign(q.store.sizes, { chunkJobs: 4 }));
  const alone = { type: 'rows.insert', options: { retry: { max_attempts: 1 } } };
  const first = await server.enqueue(queue.name, alone);
  const others: string[] = [];
  for (let n = 0; n < 4; n++) others.push(await server.enqueue(queue.name, { type: 'rows.insert' }));
  const last = await server.enqueue(queue.name, alone);
  const waits = { size: 3, wait_ms: MINUTE };
  expect((await fetch(queue, waits, ['rows.insert'], 1)).map(({ id }) => id)).toEqual([first]);
  expect(await server.takeIds(queue.name, { count: 3 })).toEqual(others.slice(0, 3));
  expect((await fetch(queue, waits)).map(({ id }) => id)).toEqual([last]);
});

it('a strict group with a longer backlog than is gathered continues with the job that failed, in order', async () => {
  for (const isEvicted of [false, true]) {
    const queue = await queueWith({ order: 'strict' });
    await fill(queue, 'g', 60);
    const [first, ...others] = (await fetch(queue)).map(({ id }) => id);
    await fetch(queue);
    await fail(first, 1_000);
    for (const id of others) await server.ack(id);
    clock.set(Date.now() + MINUTE);
    if (isEvicted) {
      await queue.evict();
      await shrink(queue);
    }
    const ids: unknown[] = [];
    for (let empty = 0; empty < 4; ) {
      const jobs = await fetch(queue);
      empty = jobs.length === 0 ? empty + 1 : 0;
      for (const { id } of jobs) await server.ack(id);
      ids.push(...jobs.map(({ id }) => id));
    }
    expect(ids[0]).toBe(first);
    expect(ids).toHaveLength(57);
    expect(ids.slice(1)).toEqual(ids.slice(1).sort());
  }
});

it('more strict groups than are gathered continue after their first jobs failed', async () => {
  const queue = await queueWith({ order: 'strict' });
  const groups = Array.from({ length: 10 }, (_, n) => `g${n}`);
  for (const group of groups) await fill(queue, group, 3);
  const first = new Set<unknown>();
  for (let n = 0; n < 6; n++) for (const { id } of await fetch(queue)) first.add(id);
  for (const id of first) await fail(id, 1_000);
  clock.set(Date.now() + MINUTE);
  const ended = new Set<unknown>();
  for (let n = 0; n < 60 && ended.size < 30; n++) {
    for (const { id } of await fetch(queue)) {
      await server.ack(id);
      ended.add(id);
    }
  }
  expect(ended.size).toBe(30);
});

it('a claim looks at few jobs, however many wait of a group that may start one', async () => {
  const queue = new TestQueue();
  await server.configure(queue.name, { groups: { order: 'fair', concurrency: 1 } });
  await fill(queue, 'noisy', 1_000);
  const original = Reflect.get(Chunks.prototype, 'rowOf') as (job: unknown) => unknown;
  let looks = 0;
  Reflect.set(Chunks.prototype, 'rowOf', function (this: Chunks, job: unknown) {
    looks++;
    return original.call(this, job);
  });
  try {
    for (let n = 0; n < 10; n++) {
      const jobs = await fetch(queue);
      expect(jobs).toHaveLength(1);
      await server.ack(jobs[0]?.id);
    }
  } finally {
    Reflect.set(Chunks.prototype, 'rowOf', original);
  }
  expect(looks).toBeLessThan(200);
});

it('no names of types and groups meet those of jobs that travel alone', async () => {
  const queue = new TestQueue();
  await server.configure(queue.name, { groups: { order: 'fair' } });
  // The first job has the number 1, and is on its last attempt.
  const retry = { max_attempts: 1 };
  const [id] = await server.addAll([{ type: 'a', args: [], options: { queue: queue.name, retry } }]);
  const others = await server.addAll(
    [2, 3].map(() => ({ type: 'alone', args: [], options: { queue: queue.name, group: '1' } })),
  );
  const options = { by: 'group', wait_ms: 10 * SECOND, size: 3 };
  const early = await fetch(queue, options, ['a', 'alone']);
  expect(early.map((job) => job.id)).toEqual([id]);
  clock.set(Date.now() + 10 * SECOND);
  expect((await fetch(queue, options, ['a', 'alone'])).map((job) => job.id)).toEqual(others);
});

it('many consumers share one memory, and each of them gets its jobs', async () => {
  const queue = new TestQueue();
  await server.configure(queue.name, {});
  const memory = { memory: 800, memoryEach: 80 };
  await queue.inside(({ q }) => Object.assign(q.store.sizes, memory));
  const types = Array.from({ length: 12 }, (_, n) => `type-${n}`);
  for (const type of types) await fill(queue, 'g', 60, type);
  let ended = 0;
  let most = 0;
  for (let round = 0; round < 20; round++) {
    for (const type of types) {
      const jobs = await fetch(queue, { size: 4 }, [type]);
      for (const { id } of jobs) await server.ack(id);
      ended += jobs.length;
      const held = await queue.inside(({ q }) => q.store.cursors.all().reduce((sum, scan) => sum + scan.held, 0));
      most = Math.max(most, held);
    }
  }
  expect(ended).toBe(720);
  // A consumer that begins while the others have everything takes its own part, and one row more.
  expect(most).toBeLessThanOrEqual(memory.memory + types.length * (memory.memoryEach + 32));
  expect(most).toBeGreaterThan(memory.memory / 2);
});
