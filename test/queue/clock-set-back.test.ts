/** A clock that is set back by an hour holds up nothing for an hour. */
import { describe, expect, it } from 'vitest';
import { clock, HOUR, SECOND, T0 } from '../support/clock';
import { TestQueue } from '../support/queue';
import { server } from '../support/server';
import { addManyTo, addTo, fetchFrom } from './features/limits/limited';

clock.startAtT0();

/** A queue that has been at work for an hour when its clock is set back by it. */
async function setBack(work: (queue: TestQueue) => Promise<unknown>): Promise<TestQueue> {
  const queue = new TestQueue();
  await queue.add({ scheduledAt: T0 + HOUR });
  await queue.passTo(T0 + HOUR);
  await work(queue);
  clock.at(0);
  return queue;
}

describe('a queue whose clock was set back', () => {
  it('wakes for what becomes due next, although its last alarm lies an hour ahead', async () => {
    const queue = await setBack((own) => own.claim());
    await queue.add({ scheduledAt: T0 + 10 * SECOND });
    expect(await queue.armedAt()).toBe(T0 + 10 * SECOND);
    await queue.alarm();
    await queue.add({ scheduledAt: T0 + 20 * SECOND });
    clock.at(10 * SECOND);
    expect(await queue.claim()).toHaveLength(1);
    expect(await queue.armedAt()).toBeLessThanOrEqual(T0 + 20 * SECOND);
  });

  it('lets the jobs of a limited key start as soon as its period is over', async () => {
    const rated = { key: 'rated', rate: { limit: 1, period: 'PT5S' } };
    let ids: string[] = [];
    const queue = await setBack(async (own) => {
      await own.claim();
      ids = await addManyTo(own, 3, rated);
      expect(await fetchFrom(own)).toEqual([ids[0]]);
    });
    expect(await fetchFrom(queue)).toEqual([]);
    clock.at(5 * SECOND);
    expect(await fetchFrom(queue)).toEqual([ids[1]]);
    await queue.evict();
    clock.at(10 * SECOND);
    expect(await fetchFrom(queue)).toEqual([ids[2]]);
  });

  it('gives new jobs ids and places after the older ones', async () => {
    const before: string[] = [];
    const queue = await setBack(async (own) => {
      await own.claim();
      before.push(await addTo(own), await addTo(own));
    });
    const after = [await addTo(queue), await addTo(queue)];
    expect(new Set([...before, ...after]).size).toBe(4);
    expect(await fetchFrom(queue)).toEqual([...before, ...after]);
    await queue.evict();
    for (const id of [...before, ...after]) expect(await server.state(id)).toBe('active');
  });
});
