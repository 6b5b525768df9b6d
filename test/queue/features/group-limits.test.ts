/** What limits groups besides their order: rates, bounds, and who says so. */
import { describe, expect, it } from 'vitest';
import { clock, T0 } from '../../support/clock';
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
      group: 'a',
    });
    clock.advance(29_999);
    expect(await take(queue, 10)).toEqual([]);
    clock.advance(1);
    expect(await take(queue, 10)).toEqual([a3]);
    clock.advance(30_000);
    expect(await take(queue, 10)).toEqual([a4]);
  });

  it.each([
    ['rate', 3, { rate: { limit: 1, period: 'day' } }],
    ['concurrency', 3, { concurrency: 1 }],
    ['rate', 900, { rate: { limit: 1, period: 'day' } }],
    ['concurrency', 900, { concurrency: 1 }],
  ])('keep no places of a limit that they share, while their %s lets %i jobs not start', async (_, count, a) => {
    const queue = await queueOf({ limits: { a } });
    const rate_limit = { key: 'shared', concurrency: 3 };
    const running = (await addAll(queue, ['b', 'c', 'd'], { rate_limit })) as string[];
    expect(await take(queue, 10)).toEqual(running);
    const waiting = await addAll(queue, [...Array<string>(count).fill('a'), 'e', 'f', 'g'], { rate_limit });
    expect(await take(queue, 10)).toEqual([]);
    const [unlimited] = await addAll(queue, ['a']);
    expect(await take(queue, 10)).toEqual([unlimited]);
    for (const id of running) await server.ack(id);
    const taken: string[] = [];
    for (let claims = 0; claims < 2; claims++) taken.push(...(await take(queue, 10)));
    expect(taken).toEqual(waiting.slice(count));
  });

  it.each([
    ['strict', { order: 'strict' }],
    ['fair', { order: 'fair', concurrency: 1 }],
  ])('start once their limit has room in a %s order, before others that were read ahead', async (_, groups) => {
    const queue = await queueOf(groups);
    const rate_limit = { key: 'shared', concurrency: 1 };
    const [running, waiting] = await addAll(queue, ['a', 'b'], { rate_limit });
    const others = Array.from({ length: 297 }, (_, at) => `c${at % 99}`);
    await addAll(queue, others);
    const first = await take(queue, 100);
    expect(first).toHaveLength(100);
    // Now all others are read ahead, and wait for those that run.
    expect(await take(queue, 100)).toEqual([]);
    for (const id of first.slice(1)) await server.ack(id);
    await server.ack(running);
    expect(await take(queue, 1)).toEqual([waiting]);
  });

  it('have the room that one of them leaves which was cancelled while it waited', async () => {
    const queue = await queueOf({ order: 'fair' });
    const [running, cancelled, next] = await addAll(queue, ['a', 'a', 'b'], {
      rate_limit: { key: 'shared', concurrency: 1 },
    });
    expect(await take(queue, 10)).toEqual([running]);
    await server.ok(200, 'DELETE', `${V1}/jobs/${cancelled}`);
    await server.ack(running);
    expect(await take(queue, 1)).toEqual([next]);
  });

  it('start in the end when the object is evicted while some of those that their limit lets in wait', async () => {
    const queue = await queueOf({ order: 'fair' });
    const rate_limit = { key: 'shared', rate: 2, period: 'PT5S' };
    const ids = await addAll(queue, ['a', 'a', 'b', 'b'], { rate_limit });
    expect(await take(queue, 20)).toEqual(ids.slice(0, 2));
    clock.advance(5_000);
    expect(await take(queue, 1)).toEqual(ids.slice(2, 3));
    await queue.evict();
    expect(await take(queue, 20)).toEqual(ids.slice(3));
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

describe('groups that drop their oldest jobs', () => {
  const drop = (max_waiting: number) => ({ max_waiting, overflow_policy: 'drop_oldest' });
  const states = (ids: readonly string[]) => Promise.all(ids.map((id) => server.state(id)));
  const job = (queue: TestQueue, group: string) => ({ type: 't', args: [], options: { queue: queue.name, group } });

  it('discard those that waited longest, with a reason and an event, and no other job', async () => {
    const queue = await queueOf(drop(2));
    const [a1, b1, a2, b2, a3] = (await addAll(queue, ['a', 'b', 'a', 'b', undefined])) as string[];
    expect(await take(queue, 1)).toEqual([a1]);
    const [a4, a5, b3] = (await addAll(queue, ['a', 'a', 'b'])) as string[];
    expect(await states([a1, b1, a2, b2, a3, a4, a5, b3] as string[])).toEqual([
      ...['active', 'discarded', 'discarded', 'available', 'available', 'available', 'available', 'available'],
    ]);
    expect(await server.job(a2)).toMatchObject({ state: 'discarded', discard_reason: 'group_full' });
    const told = await server.events({ queue: queue.name, types: 'job.discarded' });
    expect(told.map(({ subject }) => subject).sort()).toEqual([b1, a2].sort());
    expect(told[0]).toMatchObject({ data: { reason: 'group_full' } });
    await queue.evict();
    await addAll(queue, ['a']);
    expect(await states([a4, a5] as string[])).toEqual(['discarded', 'available']);
  });

  it('go by when a job became available, wherever it waits', async () => {
    const queue = await queueOf(drop(7));
    const add = async (options: Json = {}) => (await addAll(queue, ['a'], options))[0] as string;
    const PATIENT = { retry: { max_attempts: 2, initial_interval: 60_000, jitter: false } };
    const retried = await add(PATIENT);
    expect(await take(queue, 1)).toEqual([retried]);
    await server.nack(retried);
    const later = await add({ delay_until: '+PT2H' });
    const pending = await add({ pending: true });
    const order: string[] = [];
    for (const options of [{ priority: 9 }, {}, { rate_limit: { key: 'a', concurrency: 1 } }, {}]) {
      clock.advance(10);
      order.push(await add(options));
    }
    for (const id of [...order, retried, later]) {
      clock.advance(10);
      await addAll(queue, ['a'], { delay_until: '+PT3H' });
      expect([id, await server.state(id)]).toEqual([id, 'discarded']);
    }
    expect(await server.state(pending)).toBe('pending');
  });

  it('refuse a request that alone is too large, and one for which nothing can go', async () => {
    const queue = await queueOf(drop(2));
    const [a1] = (await addAll(queue, ['a', 'a'])) as [string];
    const many = { jobs: Array(3).fill(job(queue, 'a')) };
    expect(await server.refusal('POST', `${V1}/jobs/batch`, many)).toMatchObject({ status: 429, code: 'GROUP_FULL' });
    expect(await server.state(a1)).toBe('available');
  });

  it('come down to a bound that was lowered as jobs arrive, a thousand at a time', async () => {
    const queue = await queueOf({ order: 'fair' });
    const ids = [...(await addAll(queue, Array(1_000).fill('a'))), ...(await addAll(queue, Array(200).fill('a')))];
    const [other] = (await addAll(queue, ['b'])) as [string];
    await server.configure(queue.name, { groups: drop(10) });
    const [first] = await addAll(queue, ['a']);
    expect((await queue.counts()).available).toBe(201);
    const [second] = await addAll(queue, ['a']);
    expect(await queue.counts()).toMatchObject({ available: 11, discarded: 1_192 });
    expect(await take(queue, 20)).toEqual([...ids.slice(-8), other, first, second]);
  });

  it('find them behind many jobs of others, at a price that does not depend on these', async () => {
    const queue = await queueOf(drop(5));
    for (let at = 0; at < 4; at++) await addAll(queue, Array(1_000).fill(undefined));
    await addAll(queue, Array(5).fill('a'));
    for (let at = 0; at < 4; at++) await addAll(queue, Array(1_000).fill(undefined));
    await addAll(queue, ['a']);
    await queue.startCounting();
    await queue.counted();
    for (let n = 0; n < 10; n++) await addAll(queue, ['a']);
    const { read, written } = await queue.counted();
    expect(read / 10).toBeLessThanOrEqual(40);
    expect(written / 10).toBeLessThanOrEqual(4);
    expect((await queue.counts()).available).toBe(8_005);
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

it('a claim of very many groups with a rate writes rows that the platform takes', async () => {
  const queue = new TestQueue();
  await server.configure(queue.name, { groups: { rate: { limit: 10, period: 'minute' } } });
  await queue.add();
  const name = '顧'.repeat(250);
  const counts = new Map(Array.from({ length: 3_000 }, (_, at) => [`${name}${at}`, 1]));
  const sizes = 'SELECT max(length(CAST(data AS BLOB))) AS bytes, count(*) AS rows FROM group_starts';
  await queue.inside(({ q }) => q.store.gates.starts.note(counts, T0));
  const [{ bytes, rows }] = (await queue.rows<{ bytes: number; rows: number }>(sizes)) as [
    { bytes: number; rows: number },
  ];
  expect(bytes).toBeLessThan(1024 * 1024);
  expect(rows).toBe(3);
  await queue.evict();
  const room = await queue.inside(({ q }) =>
    q.store.gates.starts.room(`${name}2999`, { limit: 10, period_ms: 60_000 }, 0, T0),
  );
  expect(room).toBe(9);
});
