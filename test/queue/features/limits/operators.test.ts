/** Limits seen and changed at run time. */

import { describe, expect, it } from 'vitest';
import { clock, T0 } from '../../../support/clock';
import { TestQueue } from '../../../support/queue';
import { server } from '../../../support/server';
import { ack, addManyTo, addTo, armedAt, countsOf, fetchFrom } from './limited';

clock.startAtT0();

let made = 0;
const freshKey = () => `key-${++made}`;
const iso = (ms: number) => new Date(T0 + ms).toISOString();
const path = (key: string) => `/ojs/v1/rate-limits/${encodeURIComponent(key)}`;

describe('GET /rate-limits', () => {
  it('shows what a key allows, what runs, what started and what waits', async () => {
    const queue = new TestQueue();
    const key = freshKey();
    await addManyTo(queue, 7, { key, concurrency: 2, rate: { limit: 5, period: 'minute' } });
    await fetchFrom(queue);
    expect(await server.ok(200, 'GET', path(key))).toMatchObject({
      key,
      concurrency: 2,
      active: 2,
      available: 0,
      limit: 5,
      period: 'PT1M',
      current_count: 2,
      window_resets_at: iso(60_000),
      waiting: 5,
      waiting_count: 5,
      queues: [{ queue: queue.name, concurrency: 2, active: 2, waiting: 5 }],
    });
  });

  it('lists all keys by name, a page at a time', async () => {
    const queue = new TestQueue();
    const keys = ['list-c', 'list-a', 'list-b'];
    for (const key of keys) await addTo(queue, { key, concurrency: 1 });
    const all = await server.ok(200, 'GET', '/ojs/v1/rate-limits?limit=200');
    expect(all.items).toEqual(all.rate_limits);
    const names = (all.items as { key: string }[]).map(({ key }) => key);
    expect(names.filter((key) => key.startsWith('list-'))).toEqual(['list-a', 'list-b', 'list-c']);
    const first = await server.ok(200, 'GET', '/ojs/v1/rate-limits?limit=1');
    expect(first.items).toHaveLength(1);
    expect(first.pagination).toMatchObject({ total: names.length, limit: 1, has_more: names.length > 1 });
    const cursor = (first.pagination as { next_cursor: string }).next_cursor;
    const second = await server.ok(200, 'GET', `/ojs/v1/rate-limits?limit=1&cursor=${cursor}`);
    expect((second.items as { key: string }[])[0]?.key).toBe(names[1]);
  });

  it('counts as waiting what stands ready and may not start any more', async () => {
    const queue = new TestQueue();
    const key = freshKey();
    await addManyTo(queue, 3, { key, concurrency: 2 });
    expect(await server.ok(200, 'GET', path(key))).toMatchObject({ active: 0, waiting: 1 });
    await server.ok(200, 'PUT', path(key), { concurrency: 0 });
    expect(await server.ok(200, 'GET', path(key))).toMatchObject({ active: 0, waiting: 3, waiting_count: 3 });
  });

  it('counts the starts under a throttle too', async () => {
    const queue = new TestQueue();
    const key = freshKey();
    await addManyTo(queue, 3, { key, throttle: { limit: 2, period: 'PT10S' } });
    expect(await fetchFrom(queue)).toHaveLength(1);
    clock.at(5000);
    expect(await fetchFrom(queue)).toHaveLength(1);
    expect(await server.ok(200, 'GET', path(key))).toMatchObject({ limit: 2, period: 'PT10S', current_count: 2 });
    clock.at(11_000);
    expect(await server.ok(200, 'GET', path(key))).toMatchObject({ current_count: 1 });
  });

  it('sums up a key that several queues know, and shows each', async () => {
    const key = freshKey();
    const queues = [new TestQueue(), new TestQueue()];
    for (const queue of queues) {
      await addManyTo(queue, 3, { key, concurrency: 1 });
      // A key counts within its queue.
      expect(await fetchFrom(queue)).toHaveLength(1);
    }
    const shown = await server.ok(200, 'GET', path(key));
    expect(shown).toMatchObject({ concurrency: 1, active: 2, available: 0, waiting: 4 });
    expect(shown.queues).toHaveLength(2);
  });

  it('answers 404 for a key that do not exist used', async () => {
    expect(await server.refusal('GET', path('nobody'))).toMatchObject({ status: 404, code: 'not_found' });
    expect(await server.refusal('DELETE', `${path('nobody')}/override`)).toMatchObject({ status: 404 });
  });
});

describe('an override', () => {
  it.each(['', '/override'])('put at …%s raises a limit at once, and its end restores it', async (suffix) => {
    const queue = new TestQueue();
    const key = freshKey();
    await addManyTo(queue, 9, { key, concurrency: 1 });
    expect(await fetchFrom(queue)).toHaveLength(1);
    const answer = await server.ok(200, 'PUT', path(key) + suffix, { concurrency: 4 });
    expect(answer).toMatchObject({ key, concurrency: 4, active: 1, override: { concurrency: 4 } });
    expect(await fetchFrom(queue)).toHaveLength(3);
    const gone = await server.call('DELETE', `${path(key)}/override`);
    expect(gone.status).toBe(204);
    expect(await fetchFrom(queue)).toEqual([]);
    expect(await server.ok(200, 'GET', path(key))).toMatchObject({ concurrency: 1, active: 4, available: 0 });
  });

  it('of 0 stops the key, even for jobs that would be dropped, and lets it continue when it is taken back', async () => {
    const queue = new TestQueue();
    const key = freshKey();
    const waits = await addTo(queue, { key, concurrency: 2 });
    await server.ok(200, 'PUT', path(key), { concurrency: 0 });
    const kept = await addTo(queue, { key, concurrency: 2, on_limit: 'drop' });
    const free = await addTo(queue);
    expect(await fetchFrom(queue)).toEqual([free]);
    await queue.evict();
    expect(await fetchFrom(queue)).toEqual([]);
    expect(await countsOf(queue)).toMatchObject({ available: 2, active: 1 });
    await server.call('DELETE', `${path(key)}/override`);
    expect(await fetchFrom(queue)).toEqual([waits, kept]);
  });

  it('holds until expires_at, and the object wakes for its end', async () => {
    const queue = new TestQueue();
    const key = freshKey();
    await addManyTo(queue, 3, { key, concurrency: 3 });
    const override = { limit: 0, expires_at: '+PT1M' };
    expect(await server.ok(200, 'PUT', path(key), override)).toMatchObject({
      override: { limit: 0, expires_at: iso(60_000) },
    });
    expect(await fetchFrom(queue)).toEqual([]);
    expect(await armedAt(queue)).toBeLessThanOrEqual(60_000);
    clock.at(59_999);
    expect(await fetchFrom(queue)).toEqual([]);
    clock.at(60_000);
    expect(await fetchFrom(queue)).toHaveLength(3);
    expect((await server.ok(200, 'GET', path(key))).override).toBeUndefined();
  });

  it('of a rate replaces the rate or throttle that the key has, and keeps its period unless it names one', async () => {
    const queue = new TestQueue();
    const [rated, throttled] = [freshKey(), freshKey()];
    await addManyTo(queue, 5, { key: rated, rate: 1, period: 'minute' });
    await addManyTo(queue, 5, { key: throttled, throttle: { limit: 1, period: 'minute' } });
    expect(await fetchFrom(queue)).toHaveLength(2);
    expect(await server.ok(200, 'PUT', path(rated), { limit: 3 })).toMatchObject({ limit: 3, period: 'PT1M' });
    expect(await fetchFrom(queue)).toHaveLength(2);
    await server.ok(200, 'PUT', path(throttled), { limit: 60, period: 'PT1M' });
    clock.at(60_000);
    await server.call('DELETE', `${path(rated)}/override`);
    // The start of the minute has left both windows; two starts of the rated key have, too.
    expect(await fetchFrom(queue)).toHaveLength(2);
    clock.at(61_000);
    expect(await fetchFrom(queue)).toHaveLength(1);
  });

  it('applies in every queue that knows the key', async () => {
    const key = freshKey();
    const queues = [new TestQueue(), new TestQueue()];
    for (const queue of queues) await addManyTo(queue, 5, { key, concurrency: 1 });
    await server.ok(200, 'PUT', path(key), { concurrency: 3 });
    for (const queue of queues) expect(await fetchFrom(queue)).toHaveLength(3);
  });

  it('survives the loss of the object memory', async () => {
    const queue = new TestQueue();
    const key = freshKey();
    await addManyTo(queue, 5, { key, concurrency: 1 });
    await server.ok(200, 'PUT', path(key), { concurrency: 2 });
    await queue.evict();
    expect(await fetchFrom(queue)).toHaveLength(2);
  });

  it.each<[string, Record<string, unknown>, string]>([
    ['nothing', {}, 'concurrency'],
    ['a negative concurrency', { concurrency: -1 }, 'concurrency'],
    ['a fraction', { limit: 1.5 }, 'limit'],
    ['a period without a limit', { concurrency: 1, period: 'PT1M' }, 'period'],
    ['a period of nothing', { limit: 1, period: 0 }, 'period'],
    ['an end in the past', { concurrency: 1, expires_at: '2001-01-01T00:00:00Z' }, 'expires_at'],
    ['an end that is no time', { concurrency: 1, expires_at: 'soon' }, 'expires_at'],
    ['a stranger', { concurrency: 1, burst: 3 }, 'burst'],
  ])('that says %s is refused', async (_, body, field) => {
    const queue = new TestQueue();
    const key = freshKey();
    await addTo(queue, { key, concurrency: 1 });
    expect(await server.refusal('PUT', path(key), body)).toMatchObject({
      status: 400,
      code: 'invalid_request',
      field,
    });
  });

  it('of what cannot be a key is refused', async () => {
    expect(await server.refusal('GET', '/ojs/v1/rate-limits/-x')).toMatchObject({
      status: 400,
      field: 'key',
    });
  });
});

describe('the limits of a queue', () => {
  it('bound the starts of all its jobs, limited or not, and survive the loss of memory', async () => {
    const queue = new TestQueue();
    await server.configure(queue.name, { rate_limit: { limit: 3, period: 'PT10S' } });
    const ids = await addManyTo(queue, 5);
    expect(await fetchFrom(queue, 2)).toEqual(ids.slice(0, 2));
    await queue.evict();
    expect(await fetchFrom(queue)).toEqual([ids[2]]);
    await queue.evict();
    clock.at(9_999);
    expect(await fetchFrom(queue)).toEqual([]);
    clock.at(10_000);
    expect(await fetchFrom(queue)).toEqual(ids.slice(3));
  });

  it('bound what runs at once, fetched or pushed', async () => {
    const queue = new TestQueue();
    await server.configure(queue.name, { rate_limit: { concurrency: 2 } });
    const ids = await addManyTo(queue, 4);
    expect(await fetchFrom(queue)).toEqual(ids.slice(0, 2));
    expect(await fetchFrom(queue)).toEqual([]);
    await ack(ids[0] as string);
    expect(await fetchFrom(queue)).toEqual([ids[2]]);
  });

  it('can be changed and taken back, and are shown', async () => {
    const queue = new TestQueue();
    await server.configure(queue.name, { rate_limit: { limit: 1, period: 'hour', concurrency: 7 } });
    const { config } = await server.ok(200, 'GET', `/ojs/v1/queues/${queue.name}/config`);
    expect(config).toEqual({ rate_limit: { limit: 1, period: 'PT1H', concurrency: 7 } });
    await addManyTo(queue, 3);
    expect(await fetchFrom(queue)).toHaveLength(1);
    await server.configure(queue.name, { rate_limit: { limit: 2, period: 'hour' } });
    expect(await fetchFrom(queue)).toHaveLength(1);
    await server.configure(queue.name, { rate_limit: null });
    expect(await fetchFrom(queue)).toHaveLength(1);
    expect(await queue.rows('SELECT key FROM limit_keys')).toEqual([]);
  });

  it('cost one row for each claim', async () => {
    const queue = new TestQueue();
    await server.configure(queue.name, { rate_limit: { limit: 1000, period: 'PT10S' } });
    await addManyTo(queue, 50);
    await fetchFrom(queue, 1);
    await queue.startCounting();
    await fetchFrom(queue, 40);
    const { written, alarms } = await queue.counted();
    expect(written - alarms).toBe(2);
  });
});
