import { describe, expect, it } from 'vitest';
import { clock, T0 } from '../../../support/clock';
import { TestQueue } from '../../../support/queue';
import { type Answer, type Json, server } from '../../../support/server';
import { ack, addManyTo, addTo, armedAt, countsOf, fetchFrom } from './limited';

clock.startAtT0();

const one: Json = { key: 'one', concurrency: 1 };

describe('concurrency', () => {
  it('bounds what runs at once, in order, and an end lets the next one start', async () => {
    const queue = new TestQueue();
    const ids = await addManyTo(queue, 5, { key: 'k', concurrency: 2 });
    expect(await fetchFrom(queue)).toEqual(ids.slice(0, 2));
    expect(await fetchFrom(queue)).toEqual([]);
    expect(await countsOf(queue)).toMatchObject({ active: 2, available: 3 });
    await ack(ids[0] as string);
    expect(await fetchFrom(queue)).toEqual([ids[2]]);
    expect(await fetchFrom(queue)).toEqual([]);
    await ack(ids[1] as string, ids[2] as string);
    expect(await fetchFrom(queue)).toEqual(ids.slice(3));
  });

  it('gives a place to the next job also after the clock went back', async () => {
    const queue = new TestQueue();
    const ids = await addManyTo(queue, 3, one);
    expect(await fetchFrom(queue)).toEqual(ids.slice(0, 1));
    clock.at(-5_000);
    for (const [index, id] of ids.entries()) {
      await ack(id);
      expect(await fetchFrom(queue)).toEqual(ids.slice(index + 1, index + 2));
    }
  });

  it('of one key does not affect another, nor of jobs without one', async () => {
    const queue = new TestQueue();
    const [first] = await addManyTo(queue, 2, one);
    const other = await addTo(queue, { key: 'other', concurrency: 1 });
    const free = await addTo(queue);
    expect(new Set(await fetchFrom(queue))).toEqual(new Set([first, other, free]));
  });

  it('is limited by the queue when there is no key', async () => {
    const queue = new TestQueue();
    const [first, second] = await addManyTo(queue, 2, { concurrency: 1 });
    const named = await addTo(queue, { key: queue.name, concurrency: 1 });
    expect(await fetchFrom(queue)).toEqual([first]);
    await ack(first as string);
    expect(await fetchFrom(queue)).toEqual([second]);
    await ack(second as string);
    expect(await fetchFrom(queue)).toEqual([named]);
  });

  it.each<[string, (queue: TestQueue, running: string) => Promise<unknown>]>([
    ['completed', (_, id) => ack(id)],
    ['failed for good', (_, id) => server.nack(id, { error: { code: 'x', message: '', retryable: false } })],
    ['failed and is retried later', (_, id) => server.nack(id)],
    ['was cancelled', (queue, id) => queue.stub.cancel(id)],
    [
      'lost its lease',
      async (queue) => {
        clock.at(60_000);
        await queue.alarm();
      },
    ],
  ])('gives the place of an attempt that %s to the next job', async (_, end) => {
    const queue = new TestQueue();
    const [first, second] = await addManyTo(queue, 2, one);
    expect(await fetchFrom(queue, 1, { visibility_timeout_ms: 30_000 })).toEqual([first]);
    await end(queue, first as string);
    expect(await fetchFrom(queue, 1)).toHaveLength(1);
    expect(await fetchFrom(queue, 1)).toEqual([]);
    expect(await server.state(second as string)).toBe('active');
  });

  it('a job that is given back goes behind those that waited longer', async () => {
    const queue = new TestQueue();
    const [first, second] = await addManyTo(queue, 2, one);
    await fetchFrom(queue);
    clock.at(10);
    await server.nack(first as string, { requeue: true });
    expect(await fetchFrom(queue)).toEqual([second]);
    await ack(second as string);
    expect(await fetchFrom(queue)).toEqual([first]);
  });

  it('a retry waits for its turn like any other job', async () => {
    const queue = new TestQueue();
    const retry = { initial_interval: 1000, jitter: false };
    const [first, second] = await addManyTo(queue, 2, one, { retry });
    await fetchFrom(queue);
    await server.nack(first as string);
    expect(await fetchFrom(queue)).toEqual([second]);
    clock.at(1000);
    expect(await fetchFrom(queue)).toEqual([]);
    expect(await server.job(first as string)).toMatchObject({ state: 'available', attempt: 1 });
    await ack(second as string);
    expect(await fetchFrom(queue)).toEqual([first]);
  });

  it('keeps priorities: the highest that waits for the key starts first', async () => {
    const queue = new TestQueue();
    const low = await addTo(queue, one);
    const high = await addTo(queue, one, { priority: 5 });
    const middle = await addTo(queue, one, { priority: 3 });
    for (const expected of [high, middle, low]) {
      expect(await fetchFrom(queue)).toEqual([expected]);
      await ack(expected);
    }
  });

  it('a job that is given the priority of those that wait goes where it belongs among them', async () => {
    const queue = new TestQueue();
    const changed = async (id: string) => (await server.call('PATCH', `/ojs/v1/jobs/${id}`, { priority: 0 })).status;
    const [first] = await addManyTo(queue, 1, one);
    expect(await fetchFrom(queue)).toEqual([first]);
    const early = await addTo(queue, one, { priority: -1 });
    clock.at(1000);
    const waits = await addTo(queue, one);
    clock.at(2000);
    const late = await addTo(queue, one, { priority: -1 });
    expect(await changed(late)).toBe(200);
    await ack(first as string);
    expect(await fetchFrom(queue)).toEqual([waits]);
    expect(await changed(early)).toBe(200);
    for (const expected of [early, late]) {
      await ack(expected === early ? waits : early);
      expect(await fetchFrom(queue)).toEqual([expected]);
    }
  });

  it('a job that is cancelled while it stands ready leaves its place to the next one', async () => {
    const queue = new TestQueue();
    const [first, second, third] = await addManyTo(queue, 3, one);
    await queue.stub.cancel(first as string);
    expect(await fetchFrom(queue)).toEqual([second]);
    await queue.stub.cancel(third as string);
    expect(await countsOf(queue)).toEqual({ active: 1, cancelled: 2, depth: 1 });
  });

  it('jobs that wait for a key expire, are listed and counted as available', async () => {
    const queue = new TestQueue();
    const [first] = await addManyTo(queue, 1, one);
    await fetchFrom(queue);
    const waiting = await addTo(queue, one, { expires_at: '+PT10S' });
    expect(await server.job(waiting)).toMatchObject({ state: 'available', rate_limit: one });
    expect(await countsOf(queue)).toMatchObject({ active: 1, available: 1, depth: 2 });
    clock.at(10_000);
    expect(await server.job(waiting)).toMatchObject({ state: 'discarded', discard_reason: 'expired' });
    expect(await server.state(first as string)).toBe('active');
  });

  it('pending, scheduled and redriven jobs count as well when their time has come', async () => {
    const queue = new TestQueue();
    const pending = await addTo(queue, one, { pending: true });
    const scheduled = await addTo(queue, one, { delay_until: '+PT5S' });
    const running = await addTo(queue, one);
    expect(await fetchFrom(queue)).toEqual([running]);
    clock.at(1000);
    await queue.stub.activate(pending);
    clock.at(5000);
    expect(await fetchFrom(queue)).toEqual([]);
    await ack(running);
    expect(await fetchFrom(queue)).toEqual([pending]);
    await server.nack(pending, { error: { code: 'x', message: '', retryable: false } });
    clock.at(5001);
    await queue.stub.redrive(pending, { deadLetterOnly: false });
    expect(await fetchFrom(queue)).toEqual([scheduled]);
    await ack(scheduled);
    expect(await fetchFrom(queue)).toEqual([pending]);
  });
});

describe('limits that change', () => {
  it('are taken from the job enqueued last', async () => {
    const queue = new TestQueue();
    await addManyTo(queue, 6, one);
    expect(await fetchFrom(queue)).toHaveLength(1);
    await addTo(queue, { key: 'one', concurrency: 4 });
    expect(await fetchFrom(queue)).toHaveLength(3);
    await addTo(queue, { key: 'one', concurrency: 2 });
    expect(await fetchFrom(queue)).toEqual([]);
  });

  it('stay as they are when a job names only the key', async () => {
    const queue = new TestQueue();
    const free = await addManyTo(queue, 2, { key: 'later' });
    expect(await fetchFrom(queue)).toEqual(free);
    await addManyTo(queue, 2, { key: 'later', concurrency: 3 });
    await addTo(queue, { key: 'later' });
    expect(await fetchFrom(queue)).toHaveLength(1);
  });
});

describe('rates', () => {
  it.each<[string, Json]>([
    ['max_per_second', { key: 'r', max_per_second: 3 }],
    ['rate and period', { key: 'r', rate: 3, period: 'second' }],
    ['rate as an object', { key: 'r', rate: { limit: 3, period: 'PT1S' } }],
  ])('as %s bound the starts in any second', async (_, limit) => {
    const queue = new TestQueue();
    const ids = await addManyTo(queue, 8, limit);
    expect(await fetchFrom(queue, 2)).toEqual(ids.slice(0, 2));
    clock.at(600);
    expect(await fetchFrom(queue)).toEqual([ids[2]]);
    expect(await fetchFrom(queue)).toEqual([]);
    clock.at(999);
    expect(await fetchFrom(queue)).toEqual([]);
    clock.at(1000);
    // The window slides: only the first two have left it.
    expect(await fetchFrom(queue)).toEqual(ids.slice(3, 5));
    clock.at(1600);
    expect(await fetchFrom(queue)).toEqual([ids[5]]);
  });

  it('count starts, retries included, not ends', async () => {
    const queue = new TestQueue();
    const retry = { initial_interval: 100, jitter: false };
    const [first, second] = await addManyTo(queue, 2, { key: 'r', rate: 2, period: 'minute' }, { retry });
    await fetchFrom(queue, 1);
    await server.nack(first as string);
    clock.at(100);
    // The retry became available later than the second job.
    expect(await fetchFrom(queue)).toEqual([second]);
    expect(await fetchFrom(queue)).toEqual([]);
    clock.at(60_000);
    expect(await fetchFrom(queue)).toEqual([first]);
  });

  it.each([
    ['', async () => undefined],
    [', whatever the object still knows', (queue: TestQueue) => queue.evict()],
  ])(
    'let in one of higher priority when a start is forgotten, although there was room before%s',
    async (_, between) => {
      const queue = new TestQueue();
      const rated: Json = { key: 'rated', rate: { limit: 2, period: 'PT5S' } };
      const [, low] = await addManyTo(queue, 2, rated);
      await between(queue);
      await fetchFrom(queue, 1);
      clock.at(1);
      const high = await addManyTo(queue, 2, rated, { priority: 5 });
      clock.at(5000);
      expect(await fetchFrom(queue)).toEqual(high);
      clock.at(10_000);
      expect(await fetchFrom(queue)).toEqual([low]);
    },
  );

  describe.each([
    ['', async () => undefined],
    [', whatever the object still knows', (queue: TestQueue) => queue.evict()],
  ])('let the job start first that became available first when a start is forgotten%s', (_, between) => {
    const rated: Json = { key: 'rated', rate: { limit: 2, period: 'PT5S' } };

    it('when another one was delayed', async () => {
      const queue = new TestQueue();
      const [, ready] = await addManyTo(queue, 2, rated);
      await fetchFrom(queue, 1);
      clock.at(1000);
      const waits = await addTo(queue, rated);
      const delayed = await addTo(queue, rated, { delay_until: '+PT1S' });
      await between(queue);
      clock.at(5000);
      expect(await fetchFrom(queue)).toEqual([ready, waits]);
      clock.at(10_000);
      expect(await fetchFrom(queue)).toEqual([delayed]);
    });

    it('when another one is retried', async () => {
      const queue = new TestQueue();
      const retry = { initial_interval: 2000, jitter: false };
      const [first, ready] = await addManyTo(queue, 2, rated, { retry });
      await fetchFrom(queue, 1);
      await server.nack(first as string);
      clock.at(1000);
      const waits = await addTo(queue, rated);
      await between(queue);
      clock.at(5000);
      expect(await fetchFrom(queue)).toEqual([ready, waits]);
      clock.at(10_000);
      expect(await fetchFrom(queue)).toEqual([first]);
    });

    it('before jobs of lower priority', async () => {
      const queue = new TestQueue();
      const [, ready] = await addManyTo(queue, 2, rated);
      await fetchFrom(queue, 1);
      clock.at(1000);
      const waits = await addTo(queue, rated);
      await addTo(queue, rated, { priority: -1, delay_until: '+PT1S' });
      const low = await addTo(queue, undefined, { priority: -2 });
      clock.at(4000);
      const free = await addTo(queue);
      await between(queue);
      clock.at(5000);
      expect(await fetchFrom(queue)).toEqual([ready, waits, free, low]);
    });

    it('when available ones have a type that no worker fetches', async () => {
      const queue = new TestQueue();
      const wide: Json = { key: 'wide', concurrency: 1 };
      const [running] = await addManyTo(queue, 1, wide);
      await fetchFrom(queue);
      await ack(running as string);
      await server.add('test.other', [], { queue: queue.name, rate_limit: wide });
      const waits = await addTo(queue, wide);
      const delayed = await addTo(queue, wide, { delay_until: '+PT1S' });
      await between(queue);
      clock.at(1000);
      expect(await fetchFrom(queue, 2, { types: ['test.limited'] })).toEqual([waits]);
      await ack(waits);
      expect(await fetchFrom(queue, 2, { types: ['test.limited'] })).toEqual([delayed]);
    });
  });

  it('start jobs in their order however few are remembered, delayed ones before those that came later', async () => {
    const queue = new TestQueue();
    const rate = { key: 'rated', rate: 6, period: 'second' };
    await addManyTo(queue, 6, rate);
    await queue.inside(({ q }) => Object.assign(q.store.sizes, { memory: 12, memoryEach: 12 }));
    expect(await fetchFrom(queue)).toHaveLength(6);
    const delayed: string[] = [];
    for (let n = 0; n < 8; n++) {
      delayed.push(await addTo(queue, rate, { delay_until: new Date(T0 + 100).toISOString() }));
      await addTo(queue, undefined, { delay_until: new Date(T0 + 100).toISOString() });
    }
    clock.at(150);
    const later = await addManyTo(queue, 4, rate);
    expect(await fetchFrom(queue)).toHaveLength(8);
    clock.at(1_000);
    expect(await fetchFrom(queue)).toEqual(delayed.slice(0, 6));
    clock.at(2_000);
    expect(await fetchFrom(queue)).toEqual([...delayed.slice(6), ...later]);
  });

  it('a throttle spreads its starts evenly', async () => {
    const queue = new TestQueue();
    const ids = await addManyTo(queue, 4, { key: 't', throttle: { limit: 3, period: 'second' } });
    const starts: [number, string][] = [];
    for (let ms = 0; ms < 1100; ms += 1) {
      if (![0, 1, 332, 333, 334, 667, 668, 669, 1001, 1002].includes(ms)) continue;
      clock.at(ms);
      for (const id of await fetchFrom(queue)) starts.push([ms, id]);
    }
    expect(starts.map(([, id]) => id)).toEqual(ids);
    expect(starts[0]?.[0]).toBe(0);
    for (const [index, [ms]] of starts.entries()) expect(ms).toBeGreaterThanOrEqual((index * 1000) / 3);
    expect(starts.at(-1)?.[0]).toBeLessThanOrEqual(1002);
  });

  it('survive the loss of the object memory', async () => {
    const queue = new TestQueue();
    const limit = { key: 'r', concurrency: 2, rate: 3, period: 'minute' };
    const ids = await addManyTo(queue, 6, limit);
    expect(await fetchFrom(queue)).toHaveLength(2);
    await queue.evict();
    expect(await fetchFrom(queue)).toEqual([]);
    await ack(ids[0] as string);
    await queue.evict();
    expect(await fetchFrom(queue)).toEqual([ids[2]]);
    await queue.evict();
    await ack(ids[1] as string, ids[2] as string);
    expect(await fetchFrom(queue)).toEqual([]);
    clock.at(60_000);
    expect(await fetchFrom(queue)).toHaveLength(2);
  });

  it('wake the object when the window opens for jobs that wait, and not before', async () => {
    const queue = new TestQueue();
    await addManyTo(queue, 4, { key: 'r', rate: 2, period: 'minute' });
    clock.at(100);
    expect(await fetchFrom(queue)).toHaveLength(2);
    expect(await armedAt(queue)).toBe(60_100);
    clock.at(60_100);
    await queue.alarm();
    expect(await fetchFrom(queue)).toHaveLength(2);
  });
});

describe('the limit that a producer sees', () => {
  const post = (queue: TestQueue, rate_limit: Json) =>
    server.call('POST', '/ojs/v1/jobs', { type: 'test.limited', args: [], options: { queue: queue.name, rate_limit } });
  const told = ({ headers }: Answer) =>
    ['Limit', 'Remaining', 'Reset'].map((name) => headers.get(`X-RateLimit-${name}`));

  it('is the rate of the key, how much of it is left, and when there is more', async () => {
    const queue = new TestQueue();
    const limit = { key: 'r', concurrency: 5, rate: 2, period: 'minute' };
    expect(told(await post(queue, limit))).toEqual(['2', '2', String(T0 / 1000)]);
    await fetchFrom(queue);
    clock.at(1000);
    expect(told(await post(queue, limit))).toEqual(['2', '1', String(T0 / 1000 + 60)]);
    await fetchFrom(queue);
    clock.at(2000);
    expect(told(await post(queue, limit))).toEqual(['2', '0', String(T0 / 1000 + 60)]);
  });

  it('is the concurrency of a key without a rate, and nothing where nothing is limited', async () => {
    const queue = new TestQueue();
    await post(queue, { key: 'c', concurrency: 3 });
    await fetchFrom(queue);
    expect(told(await post(queue, { key: 'c', concurrency: 3 })).slice(0, 2)).toEqual(['3', '2']);
    expect(told(await post(queue, { key: 'unlimited' }))).toEqual([null, null, null]);
    const plain = await server.call('POST', '/ojs/v1/jobs', { type: 'test.limited', args: [] });
    expect(told(plain)).toEqual([null, null, null]);
  });
});

describe('jobs that waited for their key in a place of their own, as an earlier version kept them', () => {
  it('start in order with those that came later', async () => {
    const queue = new TestQueue();
    const limit = { key: 'k', concurrency: 1 };
    await server.configure(queue.name, { groups: { order: 'fair' } });
    const before: string[] = [];
    for (let count = 0; count < 3; count++) before.push(await addTo(queue, limit, { priority: 1 }));
    await queue.rows('UPDATE jobs SET waits_since = due_at, due_at = NULL');
    await queue.rows('CREATE INDEX jobs_limited ON jobs (limit_key) WHERE waits_since IS NOT NULL');
    for (const later of ['step_values', 'stream_chunks']) await queue.rows(`DROP TABLE ${later}`);
    await queue.rows("UPDATE meta SET value = '9' WHERE key = 'schema'");
    await queue.evict();
    clock.at(1000);
    const all = [...before, ...(await addManyTo(queue, 2, limit, { priority: 1 }))];
    expect(await queue.rows('SELECT key FROM jobs WHERE waits_since IS NOT NULL')).toEqual([]);
    for (const id of all) {
      expect(await fetchFrom(queue, 5)).toEqual([id]);
      expect(await fetchFrom(queue)).toEqual([]);
      await ack(id);
    }
  });
});
