/** More strict groups than memory has room for, whose first jobs have all failed once. */
import { expect, it } from 'vitest';
import { unwrap } from '../../../src/job/errors';
import { clock, HOUR } from '../../support/clock';
import { newJob, TestQueue } from '../../support/queue';

clock.startAtT0();

const GROUPS = 100;

/** Room for a third of the groups, and for no job that holds one up. */
const shrink = (queue: TestQueue) =>
  queue.inside(({ q }) => {
    Object.assign(q.store.sizes, { memory: 600, memoryEach: 600, holders: 0 });
    q.load();
  });

it.each([false, true])('they all continue once their retries are due; memory was lost: %j', async (isEvicted) => {
  const queue = new TestQueue();
  await queue.api.configure({ groups: { order: 'strict' } });
  await shrink(queue);
  for (let round = 0; round < 2; round++) {
    const jobs = Array.from({ length: GROUPS }, (_, n) =>
      newJob({ type: 'a', group: `${n}`, body: { group: `${n}`, max_attempts: 5 } as never }),
    );
    unwrap(await queue.api.enqueue(jobs));
  }
  const take = async () => (await queue.claim({ count: 100, worker_id: 'w' })).map(({ id }) => id);
  const failed = new Set<string>();
  for (let n = 0; n < 30 && failed.size < GROUPS; n++) {
    const ids = await take();
    for (const id of ids) failed.add(id);
    const error = { message: 'outage', retry_in_ms: HOUR };
    await queue.api.report(ids.map((job_id) => ({ kind: 'failed' as const, job_id, worker_id: 'w', error })));
  }
  expect(failed.size).toBe(GROUPS);
  if (isEvicted) {
    await queue.evict();
    await shrink(queue);
  }
  clock.advance(2 * HOUR);
  const ended: string[] = [];
  for (let n = 0; n < 60 && ended.length < 2 * GROUPS; n++) {
    const ids = await take();
    ended.push(...ids);
    await queue.api.report(ids.map((job_id) => ({ kind: 'completed' as const, job_id, worker_id: 'w' })));
  }
  expect(ended).toHaveLength(2 * GROUPS);
  // Of each group the job that failed came first.
  expect(ended.filter((id) => failed.has(id))).toHaveLength(GROUPS);
  for (const [at, id] of ended.entries()) if (at < 10) expect(failed).toContain(id);
});
