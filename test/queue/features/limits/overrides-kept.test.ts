/** What overrides of limits cost, and how many there may be. */

import { runInDurableObject } from 'cloudflare:test';
import { beforeEach, describe, expect, it } from 'vitest';
import { clock, T0 } from '../../../support/clock';
import { TestQueue } from '../../../support/queue';
import { rowsWhile, rowsWritten } from '../../../support/rows';
import { server } from '../../../support/server';
import { addManyTo, addTo } from './limited';

import { directory, existing, KEY, path, put, remove } from './overriding';

clock.startAtT0();
beforeEach(async () => {
  await server.ok(200, 'POST', '/ojs/v1/admin/reset');
});

describe('many overrides', () => {
  const fill = (count: number) =>
    runInDurableObject(directory(), (_, { storage }) => {
      const overrides = Object.fromEntries(
        Array.from({ length: count }, (_, n) => [
          `key-${n}`,
          n === 0 ? { concurrency: 0, expires_at: T0 + 1_000 } : { concurrency: 0 },
        ]),
      );
      storage.sql.exec('UPDATE queue_defaults SET limit_overrides = ?', JSON.stringify(overrides)).toArray();
    });

  it('are a thousand at most; those that ended do not count, and one that is there can be changed', async () => {
    await put({ concurrency: 0 });
    await fill(1000);
    const full = await server.call('PUT', path(), { concurrency: 0 });
    const error = { code: 'conflict', details: { max_overrides: 1000 } };
    expect(full).toMatchObject({ status: 409, body: { error } });
    await put({ concurrency: 1 }, 'key-7');
    expect(await remove('key-8')).toBe(204);
    await put({ concurrency: 0 });
    expect(await server.refusal('PUT', path('more'), { concurrency: 0 })).toMatchObject({ status: 409 });
    clock.at(1_000);
    await put({ concurrency: 0 }, 'more');
  });
});

/** A write of an operator is a row in the audit log, which the directory holds. */
const AUDITED = 1;

describe('what an override costs', () => {
  it.each([
    ['stops a key for a while', { concurrency: 0, expires_at: '+PT1H' }],
    ['raises a key', { concurrency: 9 }],
  ])('is two rows in the directory and one in each queue when it %s', async (_, override) => {
    const [knows, other] = [new TestQueue(), await existing()];
    await addTo(knows, { key: KEY, concurrency: 1 });
    await put({ concurrency: 5 });
    for (const body of [override, { concurrency: 5 }, override]) {
      let inQueues = [0, 0];
      const inDirectory = await rowsWritten(directory(), async () => {
        inQueues = [
          await rowsWritten(knows.stub, async () => {
            inQueues[1] = await rowsWritten(other.stub, () => put(body));
          }),
          inQueues[1] as number,
        ];
      });
      expect([inDirectory, ...inQueues]).toEqual([2 + AUDITED, 1, 1]);
    }
    expect(await rowsWritten(directory(), () => put(override))).toBe(AUDITED);
    expect(await rowsWritten(directory(), () => remove())).toBe(2 + AUDITED);
    expect(await rowsWritten(directory(), () => remove())).toBe(AUDITED);
  });

  it('one row is written in a queue where jobs wait for a key that stays stopped', async () => {
    const queue = new TestQueue();
    await put({ concurrency: 0 });
    await addManyTo(queue, 50, { key: KEY, concurrency: 1 });
    expect(await rowsWritten(queue.stub, () => put({ concurrency: 0, expires_at: '+PT1H' }))).toBe(1);
  });

  it('is nothing for jobs, limited or not, nor a question to the directory', async () => {
    const queue = new TestQueue();
    const limited = { key: KEY, concurrency: 9 };
    const cost = async () => [
      await rowsWritten(queue.stub, () => addTo(queue)),
      await rowsWritten(queue.stub, () => addTo(queue, limited)),
    ];
    await addTo(queue, limited);
    const before = await cost();
    await put({ concurrency: 5, expires_at: '+PT1H' });
    await put({ concurrency: 0 }, 'other');
    expect(await cost()).toEqual(before);
    const asked = await rowsWhile(directory(), () => addTo(queue, { key: 'new-here', concurrency: 1 }));
    expect(asked).toEqual({ read: 0, written: 0, alarms: 0 });
  });
});
