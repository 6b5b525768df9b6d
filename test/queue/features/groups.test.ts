import { describe, expect, it } from 'vitest';
import { clock } from '../../support/clock';
import { TestQueue } from '../../support/queue';
import { type Json, server } from '../../support/server';

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

describe('groups that are served fairly', () => {
  it('with few waiting jobs come before those with many, whose turns come one after the other', async () => {
    const queue = await queueOf({ order: 'fair' });
    const noisy = await addAll(queue, Array(60).fill('noisy'));
    const other = await addAll(queue, Array(60).fill('other'));
    const quiet = await addAll(queue, ['a', 'b', 'a', undefined]);
    const first = await take(queue, 8);
    // An eighth is kept for those with many.
    expect(first.slice(0, 4)).toEqual(quiet);
    expect(first.slice(4)).toEqual(noisy.slice(0, 4));
    const then = await take(queue, 16);
    expect(new Set(then)).toEqual(new Set([...noisy.slice(4, 12), ...other.slice(0, 8)]));
  });
});

describe('groups in strict order', () => {
  it('have one job at a time run, in the order of enqueue', async () => {
    const queue = await queueOf({ order: 'strict' });
    const ids = await addAll(queue, ['a', 'a', 'b', 'a', 'b', undefined]);
    const [a1, a2, b1, a3, b2, free] = ids as [string, string, string, string, string, string];
    expect(await take(queue, 10)).toEqual([a1, b1, free]);
    expect(await take(queue, 10)).toEqual([]);
    await server.ack(b1);
    expect(await take(queue, 10)).toEqual([b2]);
    await server.ack(a1);
    expect(await take(queue, 10)).toEqual([a2]);
    await queue.evict();
    expect(await take(queue, 10)).toEqual([]);
    await server.ack(a2);
    expect(await take(queue, 10)).toEqual([a3]);
  });

  it('wait for the retry of the job whose turn it is, and for nothing else', async () => {
    const queue = await queueOf({ order: 'strict' });
    const [a1, a2, b1] = (await addAll(queue, ['a', 'a', 'b'], {
      retry: { max_attempts: 2, initial_interval: 1000, jitter: false },
    })) as [string, string, string];
    expect(await take(queue, 10)).toEqual([a1, b1]);
    await server.nack(a1);
    expect(await take(queue, 10)).toEqual([]);
    await queue.evict();
    expect(await take(queue, 10)).toEqual([]);
    expect(await server.call('GET', `/ojs/v1/jobs/${a2}`)).toMatchObject({
      body: { job: { waiting_for: { reason: 'group', job_id: a1 } } },
    });
    clock.advance(1000);
    expect(await take(queue, 10)).toEqual([a1]);
    await server.nack(a1);
    expect(await take(queue, 10)).toEqual([a2]);
  });
});
