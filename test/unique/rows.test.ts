import { runDurableObjectAlarm, runInDurableObject } from 'cloudflare:test';
import { env } from 'cloudflare:workers';
import { expect, it, vi } from 'vitest';
import { enqueue, ok, startEmpty } from '../http/client';
import { complete, enqueued } from './support';

startEmpty();

const QUEUE = 'a';
const stub = () => env.QUEUES.getByName(QUEUE);

/** Rows written to the queue's database while `task` runs. */
async function rowsWritten(task: () => Promise<unknown>): Promise<number> {
  const cursors: { rowsWritten: number }[] = [];
  const spy = await runInDurableObject(stub(), (_, { storage: { sql } }) => {
    const exec = sql.exec.bind(sql);
    return vi.spyOn(sql, 'exec').mockImplementation(((query: string, ...bindings: unknown[]) => {
      const cursor = exec(query, ...bindings);
      cursors.push(cursor);
      return cursor;
    }) as unknown as typeof sql.exec);
  });
  try {
    await task();
  } finally {
    spy.mockRestore();
  }
  return runInDurableObject(stub(), () => cursors.reduce((rows, cursor) => rows + cursor.rowsWritten, 0));
}

const unique = { keys: ['type', 'queue'] };

/** Rows of one job's life: enqueue, claim, complete, and what removes it. */
async function life(make: () => Promise<unknown>): Promise<number> {
  return rowsWritten(async () => {
    await make();
    await complete(QUEUE);
    await runDurableObjectAlarm(stub());
  });
}

it('a unique job costs two rows more than any other', async () => {
  await ok(200, 'PUT', `/ojs/v1/queues/${QUEUE}/config`, { retention: { completed: 'PT0S' } });
  await life(() => enqueue(QUEUE, { type: 'sync.user' }));
  const ordinary = await life(() => enqueue(QUEUE, { type: 'sync.user' }));
  const singular = await life(() => enqueued(QUEUE, unique));
  expect(ordinary).toBeGreaterThan(2);
  expect(singular - ordinary).toBe(2);
});

it('a fingerprint goes when its job goes', async () => {
  const rows = () =>
    runInDurableObject(
      stub(),
      (_, { storage }) => storage.sql.exec<{ n: number }>('SELECT count(*) AS n FROM unique_keys').one().n,
    );
  for (let n = 0; n < 5; n++) {
    await enqueued(QUEUE, unique);
    await complete(QUEUE);
  }
  // Of those that completed only the newest can ever stand in the way; one more is tidied up by the next enqueue.
  expect(await rows()).toBeLessThanOrEqual(2);
  await ok(200, 'PUT', `/ojs/v1/queues/${QUEUE}/config`, { retention: { completed: 'PT0S' } });
  await runDurableObjectAlarm(stub());
  expect(await rows()).toBe(0);
});
