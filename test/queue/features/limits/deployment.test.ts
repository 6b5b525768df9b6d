/** A key that counts in all queues, used over HTTP as producers, workers and operators use it. */
import { evictDurableObject } from 'cloudflare:test';
import { env } from 'cloudflare:workers';
import { describe, expect, it, vi } from 'vitest';
import { unwrap } from '../../../../src/job/errors';
import { UniqueLockObject } from '../../../../src/locks/object';
import { clock, DAY, MINUTE, SECOND } from '../../../support/clock';
import { freshName, TestQueue } from '../../../support/queue';
import { type Json, server } from '../../../support/server';
import { ack, addManyTo, addTo, fetchFrom } from './limited';

clock.startAtT0();

const shared = (key: string, limits: Json = {}): Json => ({ key, scope: 'deployment', ...limits });

const three = () => [new TestQueue(), new TestQueue(), new TestQueue()] as const;
const desk = (key: string) => env.UNIQUE_LOCKS.getByName(`allowance ${key}`);
const status = (key: string) => server.ok(200, 'GET', `/ojs/v1/rate-limits/${key}`);
const override = (key: string, limits: Json) => server.ok(200, 'PUT', `/ojs/v1/rate-limits/${key}`, limits);
const restore = (key: string) => server.ok(204, 'DELETE', `/ojs/v1/rate-limits/${key}/override`);

/** Waits until queues and desks have nothing to say to each other. */
async function settle(queues: readonly TestQueue[]): Promise<void> {
  for (let round = 0; round < 3; round++) {
    for (const queue of queues) await queue.inside(({ engine }) => engine.relay.idle());
    await scheduler.wait(1);
  }
}

/** Lets time pass; alarms ring. */
async function pass(queues: readonly TestQueue[], ms: number): Promise<void> {
  clock.advance(ms);
  for (const queue of queues) await clock.jumpTo(queue.stub, Date.now());
  await settle(queues);
}

/** What the queues hand out now; the ids. */
async function take(...queues: TestQueue[]): Promise<string[]> {
  const ids: string[] = [];
  for (let taken = -1, empty = 0; empty < 2; empty = ids.length > taken ? 0 : empty + 1) {
    taken = ids.length;
    await settle(queues);
    for (const queue of queues) ids.push(...(await fetchFrom(queue)));
  }
  return ids;
}

/** Hands out all jobs, of which none ends, and lets this time pass between; when each started, ms after the first. */
async function startsOf(queues: readonly TestQueue[], count: number, stepMs: number): Promise<number[]> {
  const starts: number[] = [];
  const begin = Date.now();
  for (let step = 0; starts.length < count && step < 400; step++) {
    for (const _ of await take(...queues)) starts.push(Date.now() - begin);
    await pass(queues, stepMs);
  }
  return starts;
}

/** At most `limit` in any period. */
function expectWithin(starts: readonly number[], limit: number, period: number): void {
  for (const [at, start] of starts.entries()) {
    if (at >= limit) expect(start - (starts[at - limit] as number)).toBeGreaterThanOrEqual(period);
  }
}

describe('a key that counts in all queues', () => {
  it('bounds what runs at once over three queues, and the end of a job lets one of another queue start', async () => {
    const queues = three();
    const key = freshName('key');
    for (const queue of queues) await addManyTo(queue, 5, shared(key, { concurrency: 4 }));
    const running = await take(...queues);
    expect(running).toHaveLength(4);
    const all = new Set(running);
    for (let step = 0; step < 100 && running.length > 0; step++) {
      await ack(running.shift() as string);
      await pass(queues, SECOND);
      const next = await take(...queues);
      for (const id of next) all.add(id);
      running.push(...next);
      expect(running.length).toBeLessThanOrEqual(4);
    }
    expect(all.size).toBe(15);
  });

  it('bounds the starts in a time over three queues, and lets the queues use it up', async () => {
    const queues = three();
    const key = freshName('key');
    for (const queue of queues) await addManyTo(queue, 10, shared(key, { rate: 10, period: 'minute' }));
    const starts = await startsOf(queues, 30, 5 * SECOND);
    expect(starts).toHaveLength(30);
    expectWithin(starts, 10, MINUTE);
    // A lease of 7.5 s counts a minute longer than it lasts: three periods may take so much more.
    expect(starts.at(-1)).toBeLessThanOrEqual(3 * 1.25 * MINUTE);
  });

  it('spreads the starts of a throttle evenly over three queues', async () => {
    const queues = three();
    const key = freshName('key');
    for (const queue of queues) await addManyTo(queue, 3, shared(key, { throttle: { limit: 6, period: 'minute' } }));
    const starts = await startsOf(queues, 9, 5 * SECOND);
    expect(starts).toHaveLength(9);
    expectWithin(starts, 1, MINUTE / 6);
  });

  it('is another key than the one of the same name within a queue', async () => {
    const queue = new TestQueue();
    const key = freshName('key');
    const [own] = await addManyTo(queue, 2, { key, concurrency: 1 });
    const [wide] = await addManyTo(queue, 2, shared(key, { concurrency: 1 }));
    expect((await take(queue)).sort()).toEqual([own, wide].sort());
    expect(await status(key)).toMatchObject({
      active: 2,
      waiting: 2,
      deployment: { concurrency: 1, leased: [{ queue: queue.name, slots: 1, starts: 0 }] },
      queues: [
        { queue: queue.name, active: 1, waiting: 1 },
        { queue: queue.name, scope: 'deployment', active: 1, waiting: 1 },
      ],
    });
  });

  it('keeps the slots of running jobs counted when the object of their queue loses its memory', async () => {
    const [one, two] = three();
    const key = freshName('key');
    const ids = await addManyTo(one, 3, shared(key, { concurrency: 2 }));
    expect(await take(one)).toEqual(ids.slice(0, 2));
    await addTo(two, shared(key, { concurrency: 2 }));
    await one.evict();
    await pass([one, two], MINUTE);
    expect(await take(one, two)).toEqual([]);
    await ack(ids[0] as string);
    await pass([one, two], MINUTE);
    expect(await take(one, two)).toHaveLength(1);
  });

  it('is counted on when its desk loses its memory', async () => {
    const [one, two] = three();
    const key = freshName('key');
    await addManyTo(one, 2, shared(key, { concurrency: 1 }));
    const [first] = await take(one);
    await evictDurableObject(desk(key));
    await addTo(two, shared(key, { concurrency: 1 }));
    expect(await take(one, two)).toEqual([]);
    await ack(first as string);
    await pass([one, two], MINUTE);
    expect(await take(one, two)).toHaveLength(1);
  });

  it('gives back the slots of a queue that is deleted', async () => {
    const [one, two] = three();
    const key = freshName('key');
    await addTo(one, shared(key, { concurrency: 1 }));
    expect(await take(one)).toHaveLength(1);
    await addTo(two, shared(key, { concurrency: 1 }));
    expect(await take(two)).toEqual([]);
    await one.api.reset();
    await pass([two], MINUTE);
    expect(await take(two)).toEqual([]);
    await pass([two], MINUTE);
    expect(await take(two)).toHaveLength(1);
  });

  it('lets jobs wait while its desk cannot be reached, and start none too many', async () => {
    const [one, two] = three();
    const key = freshName('key');
    const lost = vi.spyOn(UniqueLockObject.prototype, 'lease').mockRejectedValue(new Error('unreachable'));
    const ids = await addManyTo(one, 2, shared(key, { concurrency: 1 }));
    expect(await take(one)).toEqual([]);
    expect(await server.job(ids[0] as string)).toMatchObject({
      waiting_for: { reason: 'key_limit', key, detail: expect.stringContaining('has asked for a part') },
    });
    lost.mockRestore();
    await addTo(two, shared(key, { concurrency: 1 }));
    await pass([one, two], 2 * MINUTE);
    expect(await take(one, two)).toHaveLength(1);
  });

  it('says what a job waits for: a part of the limit that others have', async () => {
    const [one, two] = three();
    const key = freshName('key');
    await addTo(one, shared(key, { concurrency: 1 }));
    await take(one);
    const id = await addTo(two, shared(key, { concurrency: 1 }));
    await settle([one, two]);
    expect(await server.job(id)).toMatchObject({
      waiting_for: {
        reason: 'key_limit',
        key,
        detail: `It counts under the key ${key} in all queues. Its queue waits for a part of the limit: other queues have, or have used, all of it.`,
      },
    });
  });

  it('drops a job that does not wait when the desk has nothing left, and not before', async () => {
    const [one, two] = three();
    const key = freshName('key');
    const drop = shared(key, { concurrency: 1, on_limit: 'drop' });
    const first = await addTo(one, drop);
    expect(await take(one)).toEqual([first]);
    const second = await addTo(two, drop);
    expect(await take(two)).toEqual([]);
    expect(await server.job(second)).toMatchObject({ state: 'discarded' });
  });

  it('drops all such jobs once the desk has nothing left, however many they are', async () => {
    const [one, two] = three();
    const key = freshName('key');
    const drop = shared(key, { concurrency: 1, on_limit: 'drop' });
    await addTo(one, drop);
    expect(await take(one)).toHaveLength(1);
    await addManyTo(two, 1_200, drop);
    await settle([two]);
    await two.evict();
    expect(await fetchFrom(two)).toEqual([]);
    await settle([two]);
    expect(await two.counts()).toEqual({ discarded: 1_200 });
  });

  it('gives a job to a worker that asks less often than answers of the desk hold, and does not wait', async () => {
    const queue = new TestQueue();
    const ids = await addManyTo(queue, 3, shared(freshName('key'), { rate: 100, period: 'minute' }));
    const given: string[] = [];
    for (let n = 0; n < 3; n++) {
      given.push(...(await fetchFrom(queue, 1)));
      await settle([queue]);
      await pass([queue], 5 * MINUTE);
    }
    expect(given).toEqual(ids);
  });

  it('is stopped everywhere by an override, and continues when it is removed', async () => {
    const queues = three();
    const key = freshName('key');
    for (const queue of queues) await addManyTo(queue, 3, shared(key, { concurrency: 6 }));
    const [first] = await take(...queues);
    await override(key, { concurrency: 0 });
    await ack(first as string);
    await pass(queues, MINUTE);
    expect(await take(...queues)).toEqual([]);
    await restore(key);
    await pass(queues, MINUTE);
    expect(await take(...queues)).toHaveLength(1);
  });

  it('follows an override that raises it, and the limits of the newest job', async () => {
    const queues = three();
    const key = freshName('key');
    for (const queue of queues) await addManyTo(queue, 4, shared(key, { concurrency: 2 }));
    expect(await take(...queues)).toHaveLength(2);
    await override(key, { concurrency: 5 });
    await pass(queues, MINUTE);
    expect(await take(...queues)).toHaveLength(3);
    expect(await status(key)).toMatchObject({ concurrency: 5, active: 5, available: 0, waiting: 7 });
    await restore(key);
    clock.advance(1);
    await addTo(queues[0], shared(key, { concurrency: 7 }));
    await pass(queues, MINUTE);
    expect(await take(...queues)).toHaveLength(2);
    expect(await status(key)).toMatchObject({ deployment: { concurrency: 7 } });
  });

  it.each<[string, Json, Json]>([
    ['a concurrency, where nothing was limited', {}, { concurrency: 1 }],
    ['a rate, where nothing was limited', {}, { rate: 1, period: 'day' }],
    ['a rate, where a concurrency was', { concurrency: 50 }, { concurrency: 50, rate: 1, period: 'day' }],
  ])('keeps limits that a job of another queue sets: %s', async (_, before, after) => {
    const [one, two] = three();
    const key = freshName('key');
    await addManyTo(one, 3, shared(key, before));
    await take(one);
    await pass([one], SECOND);
    const id = await addTo(two, shared(key, after));
    await pass([one, two], 31 * SECOND);
    expect(await take(two, one)).toEqual([id]);
    await addManyTo(one, 3, shared(key));
    await pass([one, two], 31 * SECOND);
    expect(await take(one, two)).toEqual([]);
  });

  it('lets a job that continues wait for a slot, as its queue does not know whether there is one', async () => {
    const [one, two] = three();
    const key = freshName('key');
    const sleeps = await addTo(one, shared(key));
    expect(await take(one)).toEqual([sleeps]);
    unwrap(await one.api.settle({ kind: 'snoozed', job_id: sleeps, snooze: { signal: 'go' } }));
    const runs = await addTo(two, shared(key, { concurrency: 1 }));
    expect(await take(two)).toEqual([runs]);
    await one.evict();
    unwrap(await one.api.signal({ job_id: sleeps, name: 'go', payload: '{}' }));
    expect(await take(one)).toEqual([]);
    await ack(runs);
    await pass([one, two], MINUTE);
    expect(await take(one)).toEqual([sleeps]);
  });

  it('drops a job that does not wait when its own queue has all slots in use', async () => {
    const [one] = three();
    const drop = shared(freshName('key'), { concurrency: 1, on_limit: 'drop' });
    const [first, second] = [await addTo(one, drop), await addTo(one, drop)];
    expect(await take(one)).toEqual([first]);
    expect(await server.job(second)).toMatchObject({ state: 'discarded' });
  });

  it('asks nothing of a desk for jobs whose key counts in their queue', async () => {
    const lease = vi.spyOn(UniqueLockObject.prototype, 'lease');
    const queue = new TestQueue();
    await addManyTo(queue, 5, { key: 'own', concurrency: 2, rate: 3, period: 'minute' });
    await addManyTo(queue, 5);
    await take(queue);
    expect(lease.mock.calls.filter(([request]) => request.queue === queue.name)).toEqual([]);
    lease.mockRestore();
  });

  it('is asked for once for each lease, however many jobs start in it', async () => {
    const lease = vi.spyOn(UniqueLockObject.prototype, 'lease');
    const queue = new TestQueue();
    await addManyTo(queue, 200, shared(freshName('key'), { concurrency: 1_000, rate: 1_000, period: 'minute' }));
    let ended = 0;
    while (ended < 200) {
      await settle([queue]);
      const ids = await fetchFrom(queue, 10);
      await ack(...ids);
      ended += ids.length;
    }
    expect(lease.mock.calls.filter(([request]) => request.queue === queue.name).length).toBeLessThanOrEqual(2);
    lease.mockRestore();
  });

  it('is asked for only while a worker comes, and again at the first fetch of the next one', async () => {
    const [one, two] = three();
    const key = freshName('key');
    const first = await addTo(one, shared(key, { concurrency: 1 }), { timeout_ms: 2 * DAY });
    await settle([one]);
    const [held] = await fetchFrom(one, 1, { visibility_timeout_ms: 2 * DAY });
    expect(held).toBe(first);
    const lease = vi.spyOn(UniqueLockObject.prototype, 'lease');
    const requests = () => lease.mock.calls.filter(([request]) => request.queue === two.name).length;
    const ids = await addManyTo(two, 2, shared(key));
    expect(await take(two)).toEqual([]);
    const asked = requests();
    expect(asked).toBeGreaterThan(0);
    // Every 30 s, while a worker fetches.
    for (let seconds = 0; seconds < 120; seconds += 20) {
      await pass([two], 20 * SECOND);
      expect(await fetchFrom(two)).toEqual([]);
    }
    expect(requests() - asked).toBeGreaterThanOrEqual(3);
    const before = requests();
    const until = Date.now() + DAY - 10 * MINUTE;
    while (Date.now() < until) await pass([one, two], 10 * MINUTE);
    expect(requests() - before).toBeLessThanOrEqual(2);
    await addTo(two, shared(key));
    await pass([two], MINUTE);
    expect(requests() - before).toBeLessThanOrEqual(4);
    await ack(first);
    await pass([one, two], MINUTE);
    expect(await take(two)).toEqual(ids.slice(0, 1));
    lease.mockRestore();
  });

  it('goes to a worker that waits, however long it has waited', async () => {
    const [one, two] = three();
    const key = freshName('key');
    await addTo(one, shared(key, { concurrency: 1 }));
    await settle([one]);
    const [held] = await fetchFrom(one, 1, { visibility_timeout_ms: 2 * DAY });
    const id = await addTo(two, shared(key));
    await settle([two]);
    const waits = two.claim({ wait_ms: DAY });
    for (let step = 0; step < 10; step++) await pass([two], MINUTE);
    await ack(held as string);
    await pass([one, two], MINUTE);
    expect((await waits).map((job) => job.id)).toEqual([id]);
  });

  it.each([
    [{ key: 'k', scope: 'planet', concurrency: 1 }, 'rate_limit.scope'],
    [{ scope: 'deployment', concurrency: 1 }, 'rate_limit.key'],
  ])('refuses %j', async (rate_limit, field) => {
    const { status: code, body } = await server.call('POST', '/ojs/v1/jobs', {
      type: 't',
      args: [],
      options: { queue: freshName(), rate_limit },
    });
    expect(code).toBe(400);
    expect(JSON.stringify(body)).toContain(field);
  });
});
