/** What limits groups besides their order: rates, bounds, and who says so. */
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

const take = (queue: TestQueue, count: number, rest: Json = {}) => server.takeIds(queue.name, { count, ...rest });

describe('groups with a rate', () => {
  it('start as many jobs in a period as it allows, and the next ones when the first count no more', async () => {
    const queue = await queueOf({ rate: { limit: 2, period: 'minute' } });
    const [a1, a2, a3, a4, b1, free] = await addAll(queue, ['a', 'a', 'a', 'a', 'b', undefined]);
    expect(await take(queue, 1)).toEqual([a1]);
    clock.advance(30_000);
    expect(await take(queue, 10)).toEqual([a2, b1, free]);
    expect((await server.job(a3)).waiting_for).toMatchObject({
      reason: 'group',
      until: new Date(Date.now() + 30_000).toISOString(),
      detail: expect.stringContaining('2 jobs of the group "a" have started within'),
    });
    clock.advance(29_999);
    expect(await take(queue, 10)).toEqual([]);
    clock.advance(1);
    expect(await take(queue, 10)).toEqual([a3]);
    clock.advance(30_000);
    expect(await take(queue, 10)).toEqual([a4]);
  });

  it.each(['fair', 'strict'])('never exceed it in a %s order, whenever the object loses its memory', async (order) => {
    const queue = await queueOf({ order, rate: { limit: 3, period: 10_000 } });
    const groups = ['a', 'b', 'c'];
    await addAll(
      queue,
      Array.from({ length: 90 }, (_, at) => groups[at % 3]),
    );
    const starts = new Map<string, number[]>(groups.map((group) => [group, []]));
    for (let round = 0; round < 60; round++) {
      if (round % 3 === 1) await queue.evict();
      for (const { id, group } of await server.take(queue.name, { count: 1 + (round % 4) })) {
        starts.get(group as string)?.push(Date.now());
        await server.ack(id);
      }
      clock.advance(700);
    }
    for (const [group, times] of starts) {
      // All that the rate allows, and no more in any ten seconds.
      expect([group, times.length]).toEqual([group, 12]);
      for (const [index, at] of times.entries()) expect(at - (times[index - 3] ?? 0)).toBeGreaterThanOrEqual(10_000);
    }
  });

  it('count a job that continues after its sleep once, and each of its attempts', async () => {
    const queue = await queueOf({ rate: { limit: 1, period: 'hour' } });
    const [a1, a2] = await addAll(queue, ['a', 'a'], {
      retry: { max_attempts: 3, initial_interval: 1, jitter: false },
    });
    expect(await take(queue, 10)).toEqual([a1]);
    await server.nack(a1, { requeue: true, attempt_used: false, snooze: { in: 0, signal: 'go', steps: {} } });
    await server.ok(200, 'POST', `${V1}/jobs/${a1}/signals/go`, {});
    expect(await take(queue, 10)).toEqual([a1]);
    await server.nack(a1);
    clock.advance(10);
    expect(await take(queue, 10)).toEqual([]);
    expect((await server.job(a2)).waiting_for).toMatchObject({ reason: 'group' });
  });
});

describe('limits of some groups', () => {
  it('hold for a name before those of a pattern, and these before those of all groups', async () => {
    const queue = await queueOf({
      concurrency: 1,
      limits: { 'vip-*': { concurrency: 3 }, 'vip-low': { concurrency: 2 }, b: { max_waiting: 1 } },
    });
    const groups = ['a', 'b', 'vip-1', 'vip-low'];
    for (const group of groups) await addAll(queue, group === 'b' ? [group] : Array(4).fill(group));
    const taken = await server.take(queue.name, { count: 50 });
    const counts = groups.map((name) => taken.filter(({ group }) => group === name).length);
    expect(counts).toEqual([1, 1, 3, 2]);
    await addAll(queue, ['b']);
    const job = { type: 't', args: [], options: { queue: queue.name, group: 'b' } };
    expect(await server.refusal('POST', `${V1}/jobs`, job)).toMatchObject({ status: 429 });
  });

  it('are shown as they were said', async () => {
    const groups = { order: 'fair', rate: { limit: 5, period: 'PT1M' }, limits: { a: { max_waiting: 5 } } };
    const queue = await queueOf(groups);
    expect(await server.ok(200, 'GET', `${V1}/queues/${queue.name}/config`)).toMatchObject({ config: { groups } });
  });

  const many = Object.fromEntries(Array.from({ length: 1_001 }, (_, at) => [`g${at}`, { concurrency: 1 }]));
  const large = Object.fromEntries(Array.from({ length: 1_000 }, (_, at) => [`${at}`.padEnd(255, '€'), {}]));
  const refused: [string, Json, number, string][] = [
    ['a rate of 0', { rate: { limit: 0, period: 'second' } }, 422, 'groups.rate.limit'],
    ['a rate without a period', { rate: { limit: 1 } }, 400, 'groups.rate.period'],
    ['a rate that is a number', { rate: 5 }, 400, 'groups.rate'],
    ['a bound of 0', { limits: { a: { max_waiting: 0 } } }, 422, 'groups.limits.a.max_waiting'],
    ['patterns that overlap', { limits: { 'a*': {}, 'a!*': {} } }, 422, 'groups.limits'],
    ['a member that nobody knows', { limits: { a: { weight: 2 } } }, 422, 'groups.limits.a.weight'],
    [
      'two at once in a strict order',
      { order: 'strict', limits: { a: { concurrency: 2 } } },
      422,
      'groups.limits.a.concurrency',
    ],
    ['too many members', { limits: many }, 422, 'groups.limits'],
    ['too many bytes', { limits: large }, 422, 'groups.limits'],
    ['a name of 256 characters', { limits: { ['x'.repeat(256)]: {} } }, 422, 'groups.limits'],
  ];
  for (const [what, groups, status, field] of refused) {
    it(`are refused with ${what}, and change nothing`, async () => {
      const queue = await queueOf({ order: 'strict' });
      const path = `${V1}/queues/${queue.name}/config`;
      expect(await server.refusal('PUT', path, { groups })).toMatchObject({ status, field });
      expect(JSON.stringify(await server.ok(200, 'GET', path))).toContain('"strict"');
    });
  }
});
