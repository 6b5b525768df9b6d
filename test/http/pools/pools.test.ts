/** Pools over HTTP: defining them, fetching by them, their concurrency, and what they tell. */
import { evictDurableObject } from 'cloudflare:test';
import { env } from 'cloudflare:workers';
import { describe, expect, it } from 'vitest';
import { clock, MINUTE, T0 } from '../../support/clock';
import { TestQueue } from '../../support/queue';
import { type Json, server } from '../../support/server';

server.emptyBeforeEach();
clock.startAtT0();

const POOLS = '/ojs/v1/admin/pools';
const put = (name: string, body: Json, status = 201) => server.ok(status, 'PUT', `${POOLS}/${name}`, body);
const fill = async (queue: string, count: number) => {
  await server.addAll(Array.from({ length: count }, () => ({ type: 'pool.job', args: [], options: { queue } })));
};
const take = async (pool: string, count: number, change: Json = {}) =>
  (await server.ok(200, 'POST', '/ojs/v1/workers/fetch', { queues: [`pool:${pool}`], count, ...change }))
    .jobs as Json[];
const tally = (jobs: Json[]) => {
  const counts: Record<string, number> = {};
  for (const { queue } of jobs) counts[queue as string] = (counts[queue as string] ?? 0) + 1;
  return counts;
};

describe('a pool', () => {
  it('is made, changed, listed and deleted', async () => {
    const made = { queues: ['a', 'b'], weights: { a: 3 }, concurrency: 7 };
    const shown = {
      ...{ id: 'mixed', name: 'mixed', strategy: 'weighted', queues: ['a', 'b'], weights: { a: 3, b: 1 } },
      ...{ workers: 0, active_jobs: 0, concurrency: 7 },
    };
    expect((await put('mixed', made)).pool).toEqual(shown);
    expect(await server.ok(200, 'GET', POOLS)).toMatchObject({ pools: [shown], items: [shown], total: 1 });
    expect((await put('mixed', { queues: ['c'], strategy: 'fair' }, 200)).pool).toMatchObject({
      ...{ strategy: 'round-robin', queues: ['c'], concurrency: null },
    });
    expect((await server.ok(200, 'GET', `${POOLS}/mixed`)).pool).toMatchObject({ queues: ['c'] });
    expect((await put('mixed', { queues: { a: 3, b: { weight: 2 }, c: {} } }, 200)).pool).toMatchObject({
      ...{ strategy: 'weighted', queues: ['a', 'b', 'c'], weights: { a: 3, b: 2, c: 1 } },
    });
    expect((await put('mixed', { queues: { a: null } }, 200)).pool).toMatchObject({ strategy: 'round-robin' });
    expect((await put('mixed', { queues: ['c'] }, 200)).pool).toMatchObject({ queues: ['c'] });
    await server.ok(200, 'DELETE', `${POOLS}/mixed`);
    expect((await server.call('GET', `${POOLS}/mixed`)).status).toBe(404);
    expect((await server.call('DELETE', `${POOLS}/mixed`)).status).toBe(404);
    expect((await server.call('POST', '/ojs/v1/workers/fetch', { queues: ['pool:mixed'] })).status).toBe(404);
  });

  it.each([
    [{}, 'queues'],
    [{ queues: [] }, 'queues'],
    [{ queues: ['UP'] }, 'queues[0]'],
    [{ queues: {} }, 'queues'],
    [{ queues: { a: 0 } }, 'queues.a'],
    [{ queues: { a: 1 }, weights: { a: 1 } }, 'weights'],
    [{ queues: ['a'], strategy: 'lottery' }, 'strategy'],
    [{ queues: ['a'], weights: { b: 1 } }, 'weights.b'],
    [{ queues: ['a'], weights: { a: 0 } }, 'weights.a'],
    [{ queues: ['a'], strategy: 'strict', weights: { a: 1 } }, 'weights'],
    [{ queues: ['a'], concurrency: 0 }, 'concurrency'],
  ])('is not made of %j', async (body, field) => {
    const { status, body: answer } = await server.call('PUT', `${POOLS}/p`, body);
    expect([status, answer.error?.details?.field]).toEqual([400, field]);
    expect((await server.ok(200, 'GET', POOLS)).total).toBe(0);
  });

  it('stands alone in a fetch', async () => {
    await put('p', { queues: ['a'] });
    for (const body of [{ queues: ['pool:p', 'a'] }, { queues: ['a'], pool: 'p' }, { queues: ['pool:'] }]) {
      expect((await server.call('POST', '/ojs/v1/workers/fetch', body)).status).toBe(400);
    }
    expect(await server.ok(200, 'POST', '/ojs/v1/workers/fetch', { pool: 'p' })).toEqual({ jobs: [] });
  });
});

describe('a fetch by a pool', () => {
  it('takes from each queue its portion, in one fetch and over many, also when the objects are evicted', async () => {
    await put('p', { queues: ['a', 'b', 'c'], weights: { a: 5, b: 3, c: 2 } });
    for (const queue of ['a', 'b', 'c']) await fill(queue, 60);
    expect(tally(await take('p', 50))).toEqual({ a: 25, b: 15, c: 10 });
    await clock.advance(MINUTE);
    const one: Json[] = [];
    for (let n = 0; n < 20; n++) one.push(...(await take('p', 1)));
    expect(tally(one)).toEqual({ a: 10, b: 6, c: 4 });
    await evictDurableObject(env.DIRECTORY.getByName('pool p'));
    expect(tally(await take('p', 10))).toEqual({ a: 5, b: 3, c: 2 });
  });

  it('takes from the others what one does not have', async () => {
    await put('p', { queues: ['a', 'b'] });
    await fill('a', 2);
    await fill('b', 20);
    expect(tally(await take('p', 10))).toEqual({ a: 2, b: 8 });
    expect(tally(await take('p', 100))).toEqual({ b: 12 });
    expect(await take('p', 5)).toEqual([]);
  });

  it('drains a strict pool in order', async () => {
    await put('p', { queues: ['b', 'a'], strategy: 'strict' });
    await fill('a', 3);
    await fill('b', 3);
    expect(tally(await take('p', 4))).toEqual({ b: 3, a: 1 });
  });

  it('waits for work at the queue that is next', async () => {
    await server.ok(201, 'POST', '/ojs/v1/queues', { name: 'a' });
    await put('p', { queues: ['a'] });
    const fetched = take('p', 1, { wait_ms: 20_000 });
    await new TestQueue('a').waiting('work', 1);
    await fill('a', 1);
    expect(await fetched).toHaveLength(1);
  });

  it('lets no more jobs run than the concurrency of the pool, over its queues and however many fetch at once', async () => {
    await put('p', { queues: ['a', 'b'], concurrency: 5 });
    await fill('a', 20);
    await fill('b', 20);
    const all = (await Promise.all(Array.from({ length: 8 }, () => take('p', 2)))).flat();
    expect(all).toHaveLength(5);
    expect((await server.ok(200, 'GET', `${POOLS}/p`)).pool).toMatchObject({ active_jobs: 5 });
    expect(await take('p', 5)).toEqual([]);
    await server.ack(all[0]?.id);
    await server.ack(all[1]?.id);
    expect(await take('p', 5)).toHaveLength(2);
  });

  it('is a heartbeat too: the worker belongs to the pool', async () => {
    await put('p', { queues: ['a'] });
    await fill('a', 1);
    await take('p', 1, { worker_id: 'w1' });
    const beat = { worker_id: 'w1', queues: ['pool:p'], active_jobs: 1 };
    expect(await server.ok(200, 'POST', '/ojs/v1/workers/heartbeat', beat)).toMatchObject({ state: 'running' });
    expect((await server.ok(200, 'GET', `${POOLS}/p`)).pool).toMatchObject({ workers: 1 });
    clock.at(2 * MINUTE);
    expect((await server.ok(200, 'GET', `${POOLS}/p`)).pool).toMatchObject({ workers: 0 });
  });
});

describe('the statistics', () => {
  const stats = (query = '') => server.ok(200, 'GET', `/ojs/v1/admin/scheduling/stats${query}`);

  it('are empty without pools', async () => {
    expect(await stats()).toMatchObject({ strategy: 'strict', queues: [], stats: { pools: 0 } });
  });

  it('tell what each queue gave, and which has jobs and gets no turn', async () => {
    await put('p', { queues: ['a', 'b'], strategy: 'strict' });
    await fill('a', 10);
    await fill('b', 1);
    await take('p', 4);
    clock.set(T0 + MINUTE);
    await take('p', 4);
    expect(await stats('?pool=p')).toMatchObject({
      strategy: 'strict',
      queues: [
        { pool: 'p', name: 'a', weight: 1, dispatched: 8, starved: false },
        { pool: 'p', name: 'b', weight: 1, dispatched: 0, starved: true },
      ],
      stats: { dispatched: 8, starved: 1 },
    });
    await put('q', { queues: ['c'], strategy: 'weighted' });
    expect(await stats()).toMatchObject({ strategy: 'mixed', stats: { pools: 2 } });
    expect((await server.call('GET', '/ojs/v1/admin/scheduling/stats?pool=none')).status).toBe(404);
  });
});
