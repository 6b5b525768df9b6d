/** A crowd behind one key is in nobody's way, and costs nothing while it waits. */
import { describe, expect, it } from 'vitest';
import { clock } from '../../../support/clock';
import { TestQueue } from '../../../support/queue';
import { ack, addManyTo, addTo, countsOf, fetchFrom } from './limited';

clock.startAtT0();

/** Targets of the deployment of the tests: each looks at what is new. */
const TARGETS = 24;

const blocked = { key: 'blocked', concurrency: 1 };

describe('ten thousand jobs of a key without room', () => {
  it('do not hold back a job behind them, for which they are read once', async () => {
    const queue = new TestQueue();
    const [first] = await addManyTo(queue, 10_000, blocked);
    expect(await fetchFrom(queue, 1)).toEqual([first]);
    const free = await addTo(queue);
    await queue.startCounting();
    expect(await fetchFrom(queue, 1)).toEqual([free]);
    expect((await queue.counted()).read).toBeLessThan(400);
    // Nor does whoever finds nothing look through the crowd.
    expect(await fetchFrom(queue)).toEqual([]);
    const nothing = await queue.counted();
    expect(nothing.written).toBe(0);
    expect(nothing.read).toBeLessThan(10);
    expect(await countsOf(queue)).toMatchObject({ active: 2, available: 9_999 });
  });

  it('do not even when they were scheduled for one moment, or the object has lost its memory', async () => {
    const queue = new TestQueue();
    const ids = await addManyTo(queue, 10_000, blocked, { delay_until: '+PT1S' });
    const free = await addTo(queue, undefined, { delay_until: '+PT2S' });
    await queue.evict();
    clock.at(2000);
    expect(await fetchFrom(queue, 2)).toEqual([ids[0], free]);
    await queue.startCounting();
    expect(await fetchFrom(queue)).toEqual([]);
    expect((await queue.counted()).read).toBeLessThan(20);
  });

  it('start one by one, by a few reads each', async () => {
    const queue = new TestQueue();
    const ids = await addManyTo(queue, 10_000, blocked);
    await queue.startCounting();
    await queue.counted();
    for (let n = 0; n < 20; n++) {
      expect(await fetchFrom(queue, 1)).toEqual([ids[n]]);
      await ack(ids[n] as string);
    }
    const { read, written, alarms } = await queue.counted();
    expect(read / 20).toBeLessThan(4 * TARGETS);
    // Lease, and one for its place in an archive chunk.
    expect((written - alarms) / 20).toBeLessThanOrEqual(2.2);
  });
});

describe('a delayed job that comes behind a crowd of its key', () => {
  it('lets those go first that the window has room for, by a few reads each', async () => {
    const queue = new TestQueue();
    const rated = { key: 'rated', rate: { limit: 10, period: 'PT10S' } };
    const ids = await addManyTo(queue, 10, rated);
    expect(await fetchFrom(queue, 5)).toEqual(ids.slice(0, 5));
    clock.at(1000);
    const crowd = await addManyTo(queue, 5_000, rated);
    await addManyTo(queue, 10, rated, { delay_until: '+PT1S' });
    clock.at(10_000);
    await queue.startCounting();
    expect(await fetchFrom(queue)).toEqual([...ids.slice(5), ...crowd.slice(0, 5)]);
    const { read, written, alarms } = await queue.counted();
    expect(read).toBeLessThan(21 * TARGETS);
    // The lease, the starts, and the next moment of the key.
    expect(written - alarms).toBeLessThanOrEqual(4);
  });
});

describe('a crowd that workers pull', () => {
  it('is not looked through again for handlers that take other types', async () => {
    const queue = new TestQueue();
    await addManyTo(queue, 3_000);
    await addManyTo(queue, 3_000, undefined, { priority: 5 });
    await queue.startCounting();
    await addTo(queue);
    await addTo(queue, undefined, { priority: 5 });
    expect((await queue.counted()).read).toBeLessThan(14 * TARGETS);
  });
});

describe('rows written', () => {
  it('for jobs that find room are one at their enqueue', async () => {
    const queue = new TestQueue();
    await addManyTo(queue, 2, { key: 'wide', concurrency: 1000 });
    await queue.startCounting();
    await addManyTo(queue, 100, { key: 'wide', concurrency: 1000 });
    expect((await queue.counted()).written).toBe(1);
  });

  it('for jobs that wait are one at their enqueue, and none while they wait', async () => {
    const queue = new TestQueue();
    await addManyTo(queue, 2, blocked);
    await fetchFrom(queue);
    await queue.startCounting();
    await addManyTo(queue, 100, blocked);
    expect((await queue.counted()).written).toBe(1);
    for (let n = 1; n <= 5; n++) {
      clock.at(n * 1000);
      await fetchFrom(queue);
    }
    await queue.alarm();
    const { written, alarms } = await queue.counted();
    expect(written - alarms).toBe(0);
  });

  it('for counting starts are one for each claim, however many jobs it takes', async () => {
    const queue = new TestQueue();
    const limit = { key: 'counted', rate: 1000, period: 'minute' };
    await addManyTo(queue, 101, limit);
    await fetchFrom(queue, 1);
    await queue.startCounting();
    await fetchFrom(queue, 100);
    const { written, alarms } = await queue.counted();
    expect(written - alarms).toBe(2);
  });

  it('for a key are two when it is first seen and one when it is forgotten, a day after its last use', async () => {
    const queue = new TestQueue();
    const [plain] = await addManyTo(queue, 1);
    await fetchFrom(queue);
    await ack(plain as string);
    await queue.startCounting();
    const id = await addTo(queue, { key: 'rare', concurrency: 1 });
    const enqueued = await queue.counted();
    expect(enqueued.written - enqueued.alarms).toBe(1 + 2);
    await fetchFrom(queue);
    clock.at(23 * 3_600_000);
    await queue.alarm();
    expect(await queue.rows('SELECT key FROM limit_keys')).toEqual([{ key: 'rare' }]);
    // It is in use when it is looked at, and looked at again a day later.
    clock.at(24 * 3_600_000);
    await fetchFrom(queue);
    await queue.alarm();
    expect(await queue.rows('SELECT key FROM limit_keys')).toEqual([{ key: 'rare' }]);
    await ack(id);
    await queue.counted();
    clock.at(48 * 3_600_000);
    await queue.alarm();
    expect(await queue.rows('SELECT key FROM limit_keys')).toEqual([]);
  });
});
