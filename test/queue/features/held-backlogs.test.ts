/** Backlogs of groups that may not start, longer than memory has room for: they delay no other group. */
import { describe, expect, it } from 'vitest';
import { unwrap } from '../../../src/job/errors';
import type { Sizes } from '../../../src/queue/store/sizes';
import { unpackReceipt } from '../../../src/rpc/receipts';
import { clock, HOUR } from '../../support/clock';
import { newJob, TestQueue } from '../../support/queue';

clock.startAtT0();

const SMALL: Partial<Sizes> = { entries: 40, memory: 200, memoryEach: 200 };

/** Adds a job for each of these groups. @returns their ids */
async function add(queue: TestQueue, groups: readonly string[], options: object = {}): Promise<string[]> {
  const jobs = groups.map((group) =>
    newJob({ type: 'a', group, body: { group, max_attempts: 5 } as never, ...options }),
  );
  return unpackReceipt(unwrap(await queue.api.enqueue(jobs))).jobs.map(({ record }) => record.id);
}

const bound = (queue: TestQueue, sizes: Partial<Sizes>) =>
  queue.inside(({ q }) => {
    Object.assign(q.store.sizes, sizes);
    q.load();
  });

const take = async (queue: TestQueue, count = 1): Promise<string[]> =>
  (await queue.claim({ count, worker_id: 'w' })).map(({ id }) => id);

const end = (queue: TestQueue, ids: readonly string[]) =>
  queue.api.report(ids.map((job_id) => ({ kind: 'completed' as const, job_id, worker_id: 'w' })));

describe.each(['runs', 'waits for its retry'])('a strict backlog whose first job %s', (state) => {
  async function held(): Promise<{ queue: TestQueue; ids: string[] }> {
    const queue = new TestQueue();
    await queue.api.configure({ groups: { order: 'strict' } });
    await bound(queue, SMALL);
    const ids = await add(
      queue,
      Array.from({ length: 200 }, (_, n) => 'ab'[n % 2] as string),
    );
    expect(await take(queue, 5)).toEqual(ids.slice(0, 2));
    if (state !== 'runs') {
      const error = { message: 'outage', retry_in_ms: HOUR };
      const failed = ids.slice(0, 2).map((job_id) => ({ kind: 'failed' as const, job_id, worker_id: 'w', error }));
      await queue.api.report(failed);
    }
    return { queue, ids };
  }

  it('delays no other group, and continues in its order', async () => {
    const { queue, ids } = await held();
    const [other] = await add(queue, ['c']);
    expect(await take(queue, 5)).toEqual([other]);
    await end(queue, [other as string]);
    if (state === 'runs') await end(queue, ids.slice(0, 2));
    else clock.advance(HOUR);
    const began = state === 'runs' ? ids.slice(0, 2) : [];
    for (let claims = 0; claims < 500 && began.length < ids.length; claims++) {
      const taken = await take(queue, 5);
      began.push(...taken);
      await end(queue, taken);
    }
    for (const first of [0, 1]) {
      const ofGroup = (id: string) => ids.indexOf(id) % 2 === first;
      expect(began.filter(ofGroup)).toEqual(ids.filter(ofGroup));
    }
  });

  it('has lost no job after an eviction, and gives none twice', async () => {
    const { queue, ids } = await held();
    await add(queue, ['c']);
    await end(queue, await take(queue, 5));
    await queue.evict();
    await bound(queue, SMALL);
    if (state === 'runs') await end(queue, ids.slice(0, 2));
    else clock.advance(HOUR);
    const began: string[] = [];
    for (let claims = 0; claims < 500; claims++) {
      const taken = await take(queue, 5);
      began.push(...taken);
      await end(queue, taken);
    }
    expect([...began].sort()).toEqual((state === 'runs' ? ids.slice(2) : ids).toSorted());
  });
});

it('a priority whose backlog is not read to its end yet goes before lower ones', async () => {
  const queue = new TestQueue();
  await queue.api.configure({ groups: { order: 'fair', concurrency: 1 } });
  await bound(queue, { ahead: 10 });
  const [first] = await add(queue, ['a', ...Array.from({ length: 60 }, () => 'a')], { priority: 5 });
  expect(await take(queue)).toEqual([first]);
  const [urgent] = await add(queue, ['b'], { priority: 5 });
  const [other] = await add(queue, ['c']);
  const taken: string[] = [];
  for (let claims = 0; claims < 20 && taken.length < 2; claims++) taken.push(...(await take(queue)));
  expect(taken).toEqual([urgent, other]);
});
