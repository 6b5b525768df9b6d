import { env } from 'cloudflare:workers';
import { expect, it } from 'vitest';
import { parseJob, withFingerprint } from '../../../src/job/envelope/parse';
import { shardOf } from '../../../src/rpc/locks';
import { until } from '../../support/clock';
import { TestQueue } from '../../support/queue';
import { rowsWritten } from '../../support/rows';
import { type Json, server } from '../../support/server';
import { enqueued } from './jobs';

server.emptyBeforeEach();

const QUEUE = 'a';
const queue = new TestQueue(QUEUE);

const unique = { keys: ['type', 'queue'] };

/** Rows of one job's life: enqueue, claim, complete, and what removes it. */
async function life(make: () => Promise<unknown>): Promise<number> {
  return queue.rowsWritten(async () => {
    await make();
    await server.complete(QUEUE);
    await queue.alarm();
  });
}

/** The name of the lock object that a unique policy leads to. */
async function lockOf(policy: Json): Promise<string> {
  const { job } = await withFingerprint(parseJob({ type: 'sync.user', args: [], unique: policy }, { now: Date.now() }));
  return shardOf(job.unique?.fingerprint as string);
}

it('a unique job costs two rows more than any other', async () => {
  await server.configure(QUEUE, { retention: { completed: 'PT0S' } });
  await life(() => server.enqueue(QUEUE, { type: 'sync.user' }));
  const ordinary = await life(() => server.enqueue(QUEUE, { type: 'sync.user' }));
  const singular = await life(() => enqueued(QUEUE, unique));
  expect(ordinary).toBeGreaterThan(2);
  expect(singular - ordinary).toBe(2);
});

it('a fingerprint goes when its job goes', async () => {
  const rows = async () => (await queue.rows<{ n: number }>('SELECT count(*) AS n FROM unique_keys'))[0]?.n;
  for (let n = 0; n < 5; n++) {
    await enqueued(QUEUE, unique);
    await server.complete(QUEUE);
  }
  // Of those that completed only the newest can ever stand in the way; one more is tidied up by the next enqueue.
  expect(await rows()).toBeLessThanOrEqual(2);
  await server.configure(QUEUE, { retention: { completed: 'PT0S' } });
  // The alarm may be on its way by itself already: then there is none to ring, and a later look sees what it did.
  await until(async () => {
    await queue.alarm();
    return (await rows()) === 0;
  }, 'the fingerprints to go');
});

it('a job that is unique over all queues costs three rows at its lock too', async () => {
  await server.configure(QUEUE, { retention: { completed: 'PT0S' } });
  const everywhere = { key: 'report:7' };
  const lock = env.UNIQUE_LOCKS.getByName(await lockOf(everywhere));
  await life(() => enqueued(QUEUE, { key: 'report:6' }));
  const ordinary = await life(() => server.enqueue(QUEUE, { type: 'sync.user' }));
  let inQueue = 0;
  const atLock = await rowsWritten(lock, async () => {
    inQueue = await life(() => enqueued(QUEUE, everywhere));
  });
  expect(inQueue - ordinary).toBe(2);
  expect(atLock).toBe(3);
});
