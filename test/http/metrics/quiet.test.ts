/** Looking at numbers again and again wakes no queue that sleeps, and shows what the others have done. */

import { evictDurableObject } from 'cloudflare:test';
import { env } from 'cloudflare:workers';
import { beforeEach, describe, expect, it } from 'vitest';
import { stayFor } from '../../../src/directory/readings';
import { clock, MINUTE, SECOND, until } from '../../support/clock';
import { freshName, TestQueue } from '../../support/queue';
import { rowsWhile } from '../../support/rows';
import { server, V1 } from '../../support/server';
import { SocketClient } from '../../support/streams';
import { touchesOf } from '../../support/touches';

clock.startAtT0();
server.emptyBeforeEach();

let queue: string;
let object: TestQueue;
beforeEach(() => {
  queue = freshName('quiet');
  object = new TestQueue(queue);
});

const scrape = () => server.ok(200, 'GET', `${V1}/metrics`);
const stats = (query = '') => server.ok(200, 'GET', `${V1}/admin/stats${query}`);
const enqueued = async () => (await scrape()).jobs_enqueued_total;

/** So long after the last request nothing here takes a queue to be awake. */
const asleep = () => clock.advance(MINUTE);

const directory = () => env.DIRECTORY.getByName('directory');

/** Does something to the queue, and waits until the directory has heard that it changed. */
async function change(act: () => Promise<unknown>): Promise<void> {
  const changes = await touchesOf(directory(), 'queueChanged');
  await act();
  await until(() => changes.length > 0, 'the change to be told');
}

/** Scrapes as a monitoring system does. */
async function scrapeFor(ms: number, each: () => Promise<unknown> = async () => undefined): Promise<void> {
  for (let passed = 0; passed < ms; passed += 15 * SECOND) {
    await scrape();
    await stats();
    await each();
    clock.advance(15 * SECOND);
  }
}

describe('looking for ten minutes', () => {
  it('asks a queue that sleeps once', async () => {
    const others = [freshName('quiet'), freshName('quiet')];
    for (const name of [queue, ...others]) await server.enqueue(name);
    asleep();
    const asked = await Promise.all([queue, ...others].map((name) => touchesOf(new TestQueue(name).stub)));
    // As a page has it that is loaded again and again.
    const page = await SocketClient.open({ 'Sec-WebSocket-Protocol': 'ojs.v1' });
    for (const channel of ['all', `queue:${queue}`]) await page.subscribe(channel);
    for (const calls of asked) (calls as string[]).length = 0;
    asleep();
    const inDirectory = await rowsWhile(directory(), async () => {
      const load = () => server.ok(200, 'GET', `${V1}/admin/session`);
      const inQueue = await rowsWhile(object.stub, () => scrapeFor(10 * MINUTE, load));
      expect(inQueue).toMatchObject({ written: 0, alarms: 0 });
    });
    expect(inDirectory).toMatchObject({ written: 0, alarms: 0 });
    const once = ['watch'];
    expect(asked).toEqual([once, once, once]);
    // Numbers of all kinds come from the same answer.
    for (const path of ['stats/types', 'stats/cost', `stats?queue=${queue}`]) {
      await server.ok(200, 'GET', `${V1}/admin/${path}`);
    }
    expect(asked[0]).toEqual(once);
    page.socket.close();
  });

  it('asks it again after a quarter of an hour, and all of them once when the directory was evicted', async () => {
    await server.enqueue(queue);
    asleep();
    const asked = await touchesOf(object.stub);
    await scrapeFor(16 * MINUTE);
    expect(asked).toEqual(['watch', 'watch']);
    await evictDurableObject(directory());
    await scrapeFor(MINUTE);
    expect(asked).toEqual(['watch', 'watch', 'watch']);
  });

  it('sees within ten seconds what a queue has done, and leaves the others alone', async () => {
    const other = freshName('quiet');
    await server.enqueue(queue);
    await server.enqueue(other);
    asleep();
    const asked = await touchesOf(new TestQueue(other).stub);
    await scrapeFor(5 * MINUTE, async () => {
      const before = await enqueued();
      await change(() => object.enqueue({}));
      clock.advance(10 * SECOND);
      expect(await enqueued()).toBe((before as number) + 1);
    });
    expect(asked).toEqual(['watch']);
  });

  it('asks once for many changes', async () => {
    await server.enqueue(queue);
    await stats();
    asleep();
    const calls = await touchesOf(directory(), 'queueChanged');
    for (let n = 0; n < 20; n++) await object.enqueue({});
    await until(() => calls.length > 0, 'the change to be told');
    expect(await stats()).toMatchObject({ jobs: { available: 21 } });
    expect(calls).toEqual(['queueChanged']);
  });
});

describe('a queue that sleeps', () => {
  it('is seen to work although it was evicted after it was asked', async () => {
    await server.enqueue(queue);
    asleep();
    expect(await stats()).toMatchObject({ jobs: { available: 1 } });
    await object.evict();
    await change(() => object.enqueue({}));
    expect(await stats()).toMatchObject({ jobs: { available: 2 } });
  });

  it('shows what time does to its jobs without being asked', async () => {
    for (const minutes of [10, 20, 300]) await object.add({ scheduledAt: Date.now() + minutes * MINUTE });
    const [id] = (await object.enqueue({})).map(({ id: made }) => made) as [string];
    await object.claim();
    await object.nack(id);
    const start = Date.now();
    asleep();
    await stats();
    const asked = await touchesOf(object.stub);
    const jobs = async () => (await stats()).jobs;
    clock.set(start + 10 * MINUTE);
    expect(await jobs()).toMatchObject({ available: 2, scheduled: 2, retryable: 0 });
    expect(await stats()).toMatchObject({ oldest_available_at: expect.any(String) });
    expect(asked).toEqual([]);
    await object.evict();
    clock.set(start + 20 * MINUTE);
    expect(await jobs()).toMatchObject({ available: 3, scheduled: 1 });
  });

  it('is asked when more jobs become available than it could name', async () => {
    const due = Date.now() + 2 * MINUTE;
    await object.enqueue(...Array.from({ length: 100 }, (_, n) => ({ scheduledAt: due + n })));
    asleep();
    expect(await stats()).toMatchObject({ jobs: { available: 0, scheduled: 100 } });
    clock.set(due + 200);
    expect(await stats()).toMatchObject({ jobs: { available: 100, scheduled: 0 } });
  });

  it('is not shown any longer when it is deleted, nor one that was never there', async () => {
    await server.enqueue(queue);
    asleep();
    expect(await stats()).toMatchObject({ queues: 1 });
    await server.ok(202, 'DELETE', `${V1}/queues/${queue}`, { strategy: 'discard' });
    await until(async () => (await stats()).queues === 0, 'the queue to be gone');
    expect(await stats()).toMatchObject({ jobs: { available: 0 } });
    expect(await server.refusal('GET', `${V1}/admin/stats?queue=none-such`)).toMatchObject({ status: 404 });
  });
});

describe('staying in memory', () => {
  const reading = (available: number) => ({
    counts: {
      ...{ scheduled: 0, available, pending: 0, active: 0, retryable: 0 },
      ...{ completed: 1_000_000, cancelled: 0, discarded: 0 },
    },
  });

  it('lasts for as long as it costs no more than to ask all queues again', () => {
    expect(stayFor([])).toBe(0);
    expect(stayFor(Array(5).fill(reading(10)))).toBe(0);
    expect(stayFor(Array(200).fill(reading(0)))).toBe(19 * SECOND);
    expect(stayFor([reading(30_000)])).toBe(19 * SECOND);
    expect(stayFor(Array(200).fill(reading(10_000)))).toBe(2 * MINUTE);
  });
});
