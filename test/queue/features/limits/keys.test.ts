import { describe, expect, it } from 'vitest';
import { type ApiAnswer, api, type Json } from '../../../support/http';
import { at, LimitedQueue, T0, virtualClock } from './limited-queue';

virtualClock();

const one: Json = { key: 'one', concurrency: 1 };

describe('concurrency', () => {
  it('bounds what runs at once, in order, and an end lets the next one start', async () => {
    const queue = new LimitedQueue();
    const ids = await queue.addMany(5, { key: 'k', concurrency: 2 });
    expect(await queue.fetch()).toEqual(ids.slice(0, 2));
    expect(await queue.fetch()).toEqual([]);
    expect(await queue.counts()).toMatchObject({ active: 2, available: 3 });
    await queue.ack(ids[0] as string);
    expect(await queue.fetch()).toEqual([ids[2]]);
    expect(await queue.fetch()).toEqual([]);
    await queue.ack(ids[1] as string, ids[2] as string);
    expect(await queue.fetch()).toEqual(ids.slice(3));
  });

  it('of one key is no matter of another, nor of jobs without one', async () => {
    const queue = new LimitedQueue();
    const [first] = await queue.addMany(2, one);
    const other = await queue.add({ key: 'other', concurrency: 1 });
    const free = await queue.add();
    expect(new Set(await queue.fetch())).toEqual(new Set([first, other, free]));
  });

  it('is that of the queue when there is no key', async () => {
    const queue = new LimitedQueue();
    const [first, second] = await queue.addMany(2, { concurrency: 1 });
    const named = await queue.add({ key: queue.name, concurrency: 1 });
    expect(await queue.fetch()).toEqual([first]);
    await queue.ack(first as string);
    expect(await queue.fetch()).toEqual([second]);
    await queue.ack(second as string);
    expect(await queue.fetch()).toEqual([named]);
  });

  it.each<[string, (queue: LimitedQueue, running: string) => Promise<unknown>]>([
    ['completed', (queue, id) => queue.ack(id)],
    ['failed for good', (queue, id) => queue.nack(id, { error: { code: 'x', message: '', retryable: false } })],
    ['failed and is retried later', (queue, id) => queue.nack(id)],
    ['was cancelled', (queue, id) => queue.stub.cancel(id)],
    [
      'lost its lease',
      async (queue) => {
        at(60_000);
        await queue.alarm();
      },
    ],
  ])('gives the place of an attempt that %s to the next job', async (_, end) => {
    const queue = new LimitedQueue();
    const [first, second] = await queue.addMany(2, one);
    expect(await queue.fetch(1, { visibility_timeout_ms: 30_000 })).toEqual([first]);
    await end(queue, first as string);
    expect(await queue.fetch(1)).toHaveLength(1);
    expect(await queue.fetch(1)).toEqual([]);
    expect(await queue.state(second as string)).toBe('active');
  });

  it('a job that is given back goes behind those that waited longer', async () => {
    const queue = new LimitedQueue();
    const [first, second] = await queue.addMany(2, one);
    await queue.fetch();
    at(10);
    await queue.nack(first as string, { requeue: true });
    expect(await queue.fetch()).toEqual([second]);
    await queue.ack(second as string);
    expect(await queue.fetch()).toEqual([first]);
  });

  it('a retry waits for its turn like any other job', async () => {
    const queue = new LimitedQueue();
    const retry = { initial_interval: 1000, jitter: false };
    const [first, second] = await queue.addMany(2, one, { retry });
    await queue.fetch();
    await queue.nack(first as string);
    expect(await queue.fetch()).toEqual([second]);
    at(1000);
    expect(await queue.fetch()).toEqual([]);
    expect(await queue.job(first as string)).toMatchObject({ state: 'available', attempt: 1 });
    await queue.ack(second as string);
    expect(await queue.fetch()).toEqual([first]);
  });

  it('keeps priorities: the highest that waits for the key starts first', async () => {
    const queue = new LimitedQueue();
    const low = await queue.add(one);
    const high = await queue.add(one, { priority: 5 });
    const middle = await queue.add(one, { priority: 3 });
    for (const expected of [high, middle, low]) {
      expect(await queue.fetch()).toEqual([expected]);
      await queue.ack(expected);
    }
  });

  it('a job that is cancelled while it stands ready leaves its place to the next one', async () => {
    const queue = new LimitedQueue();
    const [first, second, third] = await queue.addMany(3, one);
    await queue.stub.cancel(first as string);
    expect(await queue.fetch()).toEqual([second]);
    await queue.stub.cancel(third as string);
    expect(await queue.counts()).toEqual({ active: 1, cancelled: 2, depth: 1 });
  });

  it('jobs that wait for a key expire, are listed and counted as available', async () => {
    const queue = new LimitedQueue();
    const [first] = await queue.addMany(1, one);
    await queue.fetch();
    const waiting = await queue.add(one, { expires_at: '+PT10S' });
    expect(await queue.job(waiting)).toMatchObject({ state: 'available', rate_limit: one });
    expect(await queue.counts()).toMatchObject({ active: 1, available: 1, depth: 2 });
    at(10_000);
    expect(await queue.job(waiting)).toMatchObject({ state: 'discarded', discard_reason: 'expired' });
    expect(await queue.state(first as string)).toBe('active');
  });

  it('pending, scheduled and redriven jobs count as well when their time has come', async () => {
    const queue = new LimitedQueue();
    const pending = await queue.add(one, { pending: true });
    const scheduled = await queue.add(one, { delay_until: '+PT5S' });
    const running = await queue.add(one);
    expect(await queue.fetch()).toEqual([running]);
    at(1000);
    await queue.stub.activate(pending);
    at(5000);
    expect(await queue.fetch()).toEqual([]);
    await queue.ack(running);
    expect(await queue.fetch()).toEqual([pending]);
    await queue.nack(pending, { error: { code: 'x', message: '', retryable: false } });
    await queue.stub.redrive(pending, { deadLetterOnly: false });
    expect(await queue.fetch()).toEqual([scheduled]);
    await queue.ack(scheduled);
    expect(await queue.fetch()).toEqual([pending]);
  });
});

describe('limits that change', () => {
  it('are those of the job enqueued last', async () => {
    const queue = new LimitedQueue();
    await queue.addMany(6, one);
    expect(await queue.fetch()).toHaveLength(1);
    await queue.add({ key: 'one', concurrency: 4 });
    expect(await queue.fetch()).toHaveLength(3);
    await queue.add({ key: 'one', concurrency: 2 });
    expect(await queue.fetch()).toEqual([]);
  });

  it('stay as they are when a job names only the key', async () => {
    const queue = new LimitedQueue();
    const free = await queue.addMany(2, { key: 'later' });
    expect(await queue.fetch()).toEqual(free);
    await queue.addMany(2, { key: 'later', concurrency: 3 });
    await queue.add({ key: 'later' });
    expect(await queue.fetch()).toHaveLength(1);
  });
});

describe('rates', () => {
  it.each<[string, Json]>([
    ['max_per_second', { key: 'r', max_per_second: 3 }],
    ['rate and period', { key: 'r', rate: 3, period: 'second' }],
    ['rate as an object', { key: 'r', rate: { limit: 3, period: 'PT1S' } }],
  ])('as %s bound the starts in any second', async (_, limit) => {
    const queue = new LimitedQueue();
    const ids = await queue.addMany(8, limit);
    expect(await queue.fetch(2)).toEqual(ids.slice(0, 2));
    at(600);
    expect(await queue.fetch()).toEqual([ids[2]]);
    expect(await queue.fetch()).toEqual([]);
    at(999);
    expect(await queue.fetch()).toEqual([]);
    at(1000);
    // The window slides: only the first two have left it.
    expect(await queue.fetch()).toEqual(ids.slice(3, 5));
    at(1600);
    expect(await queue.fetch()).toEqual([ids[5]]);
  });

  it('count starts, retries included, not ends', async () => {
    const queue = new LimitedQueue();
    const retry = { initial_interval: 100, jitter: false };
    const [first, second] = await queue.addMany(2, { key: 'r', rate: 2, period: 'minute' }, { retry });
    await queue.fetch(1);
    await queue.nack(first as string);
    at(100);
    // The retry became available later than the second job.
    expect(await queue.fetch()).toEqual([second]);
    expect(await queue.fetch()).toEqual([]);
    at(60_000);
    expect(await queue.fetch()).toEqual([first]);
  });

  it('a throttle spreads its starts evenly', async () => {
    const queue = new LimitedQueue();
    const ids = await queue.addMany(4, { key: 't', throttle: { limit: 3, period: 'second' } });
    const starts: [number, string][] = [];
    for (let ms = 0; ms < 1100; ms += 1) {
      if (![0, 1, 332, 333, 334, 667, 668, 669, 1001, 1002].includes(ms)) continue;
      at(ms);
      for (const id of await queue.fetch()) starts.push([ms, id]);
    }
    expect(starts.map(([, id]) => id)).toEqual(ids);
    expect(starts[0]?.[0]).toBe(0);
    for (const [index, [ms]] of starts.entries()) expect(ms).toBeGreaterThanOrEqual((index * 1000) / 3);
    expect(starts.at(-1)?.[0]).toBeLessThanOrEqual(1002);
  });

  it('survive the loss of the object memory', async () => {
    const queue = new LimitedQueue();
    const limit = { key: 'r', concurrency: 2, rate: 3, period: 'minute' };
    const ids = await queue.addMany(6, limit);
    expect(await queue.fetch()).toHaveLength(2);
    await queue.evict();
    expect(await queue.fetch()).toEqual([]);
    await queue.ack(ids[0] as string);
    await queue.evict();
    expect(await queue.fetch()).toEqual([ids[2]]);
    await queue.evict();
    await queue.ack(ids[1] as string, ids[2] as string);
    expect(await queue.fetch()).toEqual([]);
    at(60_000);
    expect(await queue.fetch()).toHaveLength(2);
  });

  it('wake the object when the window opens for jobs that wait, and not before', async () => {
    const queue = new LimitedQueue();
    await queue.addMany(4, { key: 'r', rate: 2, period: 'minute' });
    at(100);
    expect(await queue.fetch()).toHaveLength(2);
    expect(await queue.armedAt()).toBe(60_100);
    at(60_100);
    await queue.alarm();
    expect(await queue.fetch()).toHaveLength(2);
  });
});

describe('what a producer is told', () => {
  const post = (queue: LimitedQueue, rate_limit: Json) =>
    api('POST', '/ojs/v1/jobs', { type: 'test.limited', args: [], options: { queue: queue.name, rate_limit } });
  const told = ({ headers }: ApiAnswer) =>
    ['Limit', 'Remaining', 'Reset'].map((name) => headers.get(`X-RateLimit-${name}`));

  it('is the rate of the key, how much of it is left, and when there is more', async () => {
    const queue = new LimitedQueue();
    const limit = { key: 'r', concurrency: 5, rate: 2, period: 'minute' };
    expect(told(await post(queue, limit))).toEqual(['2', '2', String(T0 / 1000)]);
    await queue.fetch();
    at(1000);
    expect(told(await post(queue, limit))).toEqual(['2', '1', String(T0 / 1000 + 60)]);
    await queue.fetch();
    at(2000);
    expect(told(await post(queue, limit))).toEqual(['2', '0', String(T0 / 1000 + 60)]);
  });

  it('is the concurrency of a key without a rate, and nothing where nothing is limited', async () => {
    const queue = new LimitedQueue();
    await post(queue, { key: 'c', concurrency: 3 });
    await queue.fetch();
    expect(told(await post(queue, { key: 'c', concurrency: 3 })).slice(0, 2)).toEqual(['3', '2']);
    expect(told(await post(queue, { key: 'unlimited' }))).toEqual([null, null, null]);
    const plain = await api('POST', '/ojs/v1/jobs', { type: 'test.limited', args: [] });
    expect(told(plain)).toEqual([null, null, null]);
  });
});
