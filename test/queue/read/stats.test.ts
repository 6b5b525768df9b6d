import { describe, expect, it } from 'vitest';
import { clock } from '../../support/clock';
import { TestQueue } from '../../support/queue';
import { addManyTo } from '../features/limits/limited';

const T0 = Date.UTC(2040, 0, 1);

/** A queue with jobs in all states, `each` of a kind. */
async function mixed(each: number): Promise<TestQueue> {
  clock.set(T0);
  const queue = new TestQueue();
  const many = <T>(of: T): T[] => Array(each).fill(of);
  await queue.enqueue(...many({}));
  await queue.claim({ count: each });
  await queue.enqueue(...many({}), ...many({ scheduledAt: T0 + 60_000 }), ...many({ priority: 5 }));
  await queue.enqueue(...many({ pending: true }));
  for (const { id } of await queue.enqueue(...many({ priority: 1 }))) await queue.cancel(id);
  return queue;
}

describe('the counts of a queue', () => {
  it('are counted once: afterwards they read no jobs, however many there are', async () => {
    const queue = await mixed(200);
    await queue.stats();
    await queue.startCounting();
    await queue.stats();
    await queue.api.count({ filter: { states: ['available', 'cancelled'] } });
    await queue.api.priorities();
    expect((await queue.counted()).read).toBeLessThan(40);
  });

  it('include the job that waits longest for its key, without reading those behind it', async () => {
    clock.set(T0);
    const queue = new TestQueue();
    for (const [n, key] of ['a', 'b'].entries()) {
      clock.set(T0 + n);
      await addManyTo(queue, 200, { key: `${queue.name}-${key}`, concurrency: 1 });
    }
    await queue.api.activity();
    await queue.startCounting();
    expect(await queue.api.activity()).toMatchObject({ oldest_available_at: T0 });
    expect((await queue.counted()).read).toBeLessThan(30);
  });

  it('follow the clock, and read each job that became due once', async () => {
    const queue = await mixed(20);
    const counts = { active: 20, available: 40, scheduled: 20, pending: 20, cancelled: 20 };
    expect(await queue.counts()).toEqual(counts);
    clock.set(T0 + 60_000);
    await queue.startCounting();
    expect(await queue.counts()).toEqual({ active: 20, available: 60, pending: 20, cancelled: 20 });
    expect((await queue.counted()).read).toBeLessThan(50);
    expect(await queue.counts()).toMatchObject({ available: 60 });
    expect((await queue.counted()).read).toBeLessThan(10);
  });

  it('are the same as when they are counted again, after every kind of move', async () => {
    const queue = await mixed(6);
    const agree = async () => {
      const kept = [await queue.stats(), await queue.api.priorities()];
      await queue.inside(({ q }) => q.load());
      expect([await queue.stats(), await queue.api.priorities()]).toEqual(kept);
    };
    await agree();
    const [first, second, third] = (await queue.claim({ count: 3 })).map(({ id }) => id) as [string, string, string];
    await queue.ack(first);
    await queue.nack(second, { message: 'again' });
    await queue.nack(third, { code: 'DEAD_LETTER' });
    await agree();
    clock.set(T0 + 5_000);
    await queue.redrive(third);
    await agree();
    const waiting = await queue.listAll();
    for (const state of ['available', 'scheduled', 'pending', 'retryable']) {
      const job = waiting.find((candidate) => candidate.state === state);
      if (job) await queue.cancel(job.id);
      await agree();
    }
    clock.set(T0 + 120_000);
    await agree();
    await queue.claimAll();
    await agree();
  });
});
