import { describe, expect, it } from 'vitest';
import { clock } from '../../support/clock';
import { TestQueue } from '../../support/queue';
import { type Json, server, V1 } from '../../support/server';

clock.startAtT0();

/** A queue whose groups are served so. */
async function queueOf(groups: Json): Promise<TestQueue> {
  const queue = new TestQueue();
  await server.configure(queue.name, { groups });
  return queue;
}

/** Enqueues jobs of these groups in one request; their ids. */
const addAll = (queue: TestQueue, groups: readonly (string | undefined)[], options: Json = {}) =>
  server.addAll(
    groups.map((group) => ({ type: 'test.grouped', args: [], options: { queue: queue.name, group, ...options } })),
  );

const list = (queue: TestQueue, query = '') => server.ok(200, 'GET', `${V1}/queues/${queue.name}/groups${query}`);

const repeat = (count: number, group: string): string[] => Array(count).fill(group);

describe('the list of the groups of a queue', () => {
  it('has those with most waiting jobs first, with what waits and runs of each', async () => {
    const queue = await queueOf({ order: 'fair', weights: { 'vip-*': 5 } });
    const since = new Date().toISOString();
    await addAll(queue, [...repeat(40, 'noisy'), 'vip-1', undefined, 'vip-1', undefined]);
    clock.advance(1000);
    await addAll(queue, ['later', 'later'], { delay_until: '+PT1H' });
    await addAll(queue, ['urgent'], { priority: 5 });
    await server.take(queue.name, { count: 1 });
    const limits = { rate_limit: { key: 'slow', concurrency: 1 } };
    await addAll(queue, [undefined, undefined], limits);
    const known = {
      limited: 0,
      running: 0,
      weight: 1,
      noisy: false,
      blocked_by: null,
      oldest_waiting_at: since,
      waiting_for: null,
    };
    const slow = { ...known, group: 'slow', waiting: 2, limited: 1, oldest_waiting_at: new Date().toISOString() };
    const expected = {
      ...{ queue: queue.name, order: 'fair', waiting: 44, running: 1, ungrouped: 2, total: 4 },
      items: [
        { ...known, group: 'noisy', waiting: 40, noisy: true },
        slow,
        { ...known, group: 'vip-1', waiting: 2, weight: 5 },
        { ...known, group: 'urgent', waiting: 0, running: 1, oldest_waiting_at: null },
      ],
    };
    const seen = await list(queue);
    expect(seen).toMatchObject(expected);
    expect(seen).not.toHaveProperty('counts_are_exact');
    expect(seen.groups).toEqual(seen.items);
    await queue.evict();
    expect(await list(queue)).toMatchObject(expected);
    clock.advance(3_600_000);
    expect(((await list(queue)).items as Json[]).map(({ group }) => group)).toContain('later');
  });

  it('names the job that blocks a group in strict order, while it runs and while it waits for its retry', async () => {
    const queue = await queueOf({ order: 'strict' });
    const retry = { max_attempts: 2, initial_interval: 1000, jitter: false };
    const [a1] = (await addAll(queue, ['a', 'a', 'b'], { retry })) as [string];
    await server.take(queue.name, { count: 1 });
    expect((await list(queue)).items).toMatchObject([
      { group: 'a', waiting: 1, running: 1, blocked_by: a1, waiting_for: { reason: 'group', job_id: a1 } },
      { group: 'b', waiting: 1, running: 0, blocked_by: null },
    ]);
    await server.nack(a1);
    const expected = [{ group: 'a', waiting: 1, running: 0, blocked_by: a1 }, { group: 'b' }];
    expect((await list(queue)).items).toMatchObject(expected);
    await queue.evict();
    expect((await list(queue)).items).toMatchObject(expected);
    clock.advance(1000);
    expect((await list(queue)).items).toMatchObject([{ group: 'a', waiting: 2, blocked_by: a1 }, { group: 'b' }]);
  });

  it('counts jobs that failed together once they may run again', async () => {
    const queue = await queueOf({ order: 'fair' });
    const retry = { max_attempts: 2, initial_interval: 1000, jitter: false };
    const ids = await addAll(queue, [...repeat(4, 'a'), ...repeat(3, 'b')], { retry });
    await server.take(queue.name, { count: 7, worker_id: 'w' });
    const error = { code: 'E', message: 'm' };
    const reports = ids.map((job_id) => ({ action: 'nack', job_id, error }));
    await server.ok(200, 'POST', `${V1}/workers/report`, { worker_id: 'w', reports });
    expect(await queue.inside(({ q }) => q.store.blocks.retries.count)).toBe(6);
    expect(await list(queue)).toMatchObject({ waiting: 0, items: [] });
    clock.advance(1000);
    expect((await list(queue)).items).toMatchObject([
      { group: 'a', waiting: 4 },
      { group: 'b', waiting: 3 },
    ]);
  });

  it('is read page by page, at most 100 at a time, and is empty where there is no queue', async () => {
    const queue = await queueOf({ order: 'fair' });
    await addAll(
      queue,
      Array.from({ length: 120 }, (_, n) => `g${String(n).padStart(3, '0')}`),
    );
    const first = await list(queue, '?limit=200');
    expect(first.items).toHaveLength(100);
    expect(first.pagination).toMatchObject({ total: 120, limit: 100, has_more: true });
    const second = await list(queue, '?limit=100&offset=100');
    expect((second.items as Json[]).map(({ group }) => group)[0]).toBe('g100');
    expect(second.pagination?.has_more).toBe(false);
    expect(await list(new TestQueue())).toMatchObject({ items: [], total: 0, order: null });
  });

  it('reads a bounded number of rows and writes none, however many jobs wait', async () => {
    const queue = await queueOf({ order: 'fair' });
    for (let n = 0; n < 30; n++) await addAll(queue, repeat(1000, `g${n}`));
    expect(await queue.rowsRead(() => list(queue))).toBeLessThan(500);
    expect(await queue.rowsWritten(() => list(queue))).toBe(0);
    const seen = await list(queue);
    expect(seen).toMatchObject({ waiting: 25_000, counts_are_exact: false });
    expect(seen.items).toHaveLength(25);
  });
});
