/** What chunks cost: the rows of the claims that they are, and at most one for the alarm at the end of their wait. */
import { describe, expect, it } from 'vitest';
import { clock, SECOND, T0 } from '../support/clock';
import { TestQueue } from '../support/queue';

clock.startAtT0();

const CHUNKS = { chunked: [{ type: 'test.job', size: 100, wait_ms: 5_000 }], singles: [] };

/** A queue that counts its rows from now on, with a lease row that may be used again. */
async function counted(): Promise<TestQueue> {
  const queue = new TestQueue();
  await queue.ack(await queue.add().then(async (id) => ((await queue.claim())[0]?.id === id ? id : '')));
  await queue.startCounting();
  return queue;
}

describe('rows of a chunk', () => {
  it('are those of a claim of the same jobs', async () => {
    const queue = await counted();
    const rowsOf = async (chunks?: typeof CHUNKS) => {
      await queue.enqueue(...Array.from({ length: 100 }, () => ({})));
      await queue.counted();
      const jobs = await queue.claim({ count: chunks ? 1 : 100, types: ['test.job'], ...(chunks && { chunks }) });
      expect(jobs).toHaveLength(100);
      return (await queue.counted()).written;
    };
    await rowsOf();
    expect(await rowsOf(CHUNKS)).toBe(await rowsOf());
  });

  it('are none while jobs are gathered, however often a worker asks', async () => {
    const queue = await counted();
    for (let n = 0; n < 20; n++) await queue.enqueue({}, {});
    await queue.counted();
    for (let n = 0; n < 20; n++) expect(await queue.claim({ types: ['test.job'], chunks: CHUNKS })).toEqual([]);
    const { read, written } = await queue.counted();
    expect(written).toBe(0);
    // Each job was read once.
    expect(read).toBeLessThan(100);
  });

  it('are found again after an eviction by reading each block once', async () => {
    const queue = await counted();
    for (let n = 0; n < 9; n++) await queue.enqueue(...Array.from({ length: 10 }, () => ({})));
    expect(await queue.claim({ types: ['test.job'], chunks: CHUNKS })).toEqual([]);
    await queue.evict();
    clock.set(T0 + 5 * SECOND);
    expect(await queue.claim({ types: ['test.job'], chunks: CHUNKS })).toHaveLength(90);
  });
});
