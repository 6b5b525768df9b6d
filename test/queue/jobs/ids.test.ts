/** Ids are never given twice; ids chosen by clients live as long as their jobs. */

import { v7 as uuidv7 } from 'uuid';
import { describe, expect, it } from 'vitest';
import { decodeId, mintId, sequenceOf } from '../../../src/job/ids';
import { clock, DAY, T0 } from '../../support/clock';
import { newJob, refusal, steady, TestQueue } from '../../support/queue';

describe('a number of the sequence', () => {
  clock.startAtT0();

  /** Ways in which the newest job of a queue goes without a trace. */
  const ways: [string, (queue: TestQueue, id: string) => Promise<unknown>][] = [
    [
      'completed without retention',
      async (queue, id) => {
        await queue.api.configure({ retention: { completed: 0 } });
        await queue.claim();
        await queue.ack(id);
      },
    ],
    [
      'completed and pruned',
      async (queue, id) => {
        await queue.claim();
        await queue.ack(id);
        clock.set(T0 + 20 * DAY);
        await queue.alarm();
      },
    ],
    [
      'cancelled and pruned',
      async (queue, id) => {
        await queue.cancel(id);
        clock.set(T0 + 20 * DAY);
        await queue.alarm();
      },
    ],
    [
      'deleted from the dead letters',
      async (queue, id) => {
        await queue.claim();
        await queue.nack(id, { code: 'DEAD_LETTER' });
        await queue.api.deleteDeadLetter(id);
      },
    ],
    [
      'held for a batch that was given up',
      async (queue, id) => {
        await queue.cancel(id);
        await queue.api.prepareBatch('b', 'elsewhere', [newJob(), newJob()]);
        await queue.api.abortBatch('b');
      },
    ],
  ];

  it.each(ways)('is not given again after its job was %s and the object forgot', async (_, remove) => {
    const queue = new TestQueue();
    const id = await queue.add();
    await remove(queue, id);
    const used = await queue.inside(({ q }) => q.store.nextSequence);
    await queue.evict();
    clock.set(T0);
    const [next] = await queue.enqueue({});
    expect(next?.id).not.toBe(id);
    expect(sequenceOf(decodeId(next?.id as string).key)).toBeGreaterThanOrEqual(used);
    expect(await queue.state(id)).not.toBe('available');
  });

  it('is not given again after surplus lease rows, which keep it on record, were trimmed', async () => {
    const queue = new TestQueue();
    await queue.api.configure({ retention: { completed: 0 } });
    for (let n = 0; n < 4; n++) await queue.enqueue(...Array(50).fill({}));
    const ids: string[] = [];
    for (let n = 0; n < 200; n++) ids.push((await queue.claim())[0]?.id as string);
    await queue.inside(({ instance }) =>
      Promise.all(ids.map((id) => instance.settle({ kind: 'completed', job_id: id }))),
    );
    await queue.alarm();
    expect((await queue.rows('SELECT id FROM leases')).length).toBeLessThanOrEqual(64);
    await queue.evict();
    expect(ids).not.toContain(await queue.add());
  });
});

describe('an id chosen by a client', () => {
  clock.startAtT0();

  it('finds its job in every state of its life, before and after an eviction', async () => {
    const queue = new TestQueue();
    const id = uuidv7();
    await queue.add({ id, retry: steady(3, 1000), scheduledAt: T0 + 1000 });
    const check = async (state: string) => {
      expect(await queue.get(id)).toMatchObject({ id, state });
      await queue.evict();
      expect(await queue.get(id)).toMatchObject({ id, state });
      expect((await queue.listAll()).map((job) => job.id)).toEqual([id]);
      expect(refusal(await queue.api.enqueue([newJob({ id })]))).toMatchObject({
        status: 409,
        code: 'duplicate',
        details: { existing_job_id: id, existing_job_state: state },
      });
    };
    await check('scheduled');
    clock.set(T0 + 1000);
    await check('available');
    expect(await queue.claim()).toMatchObject([{ id }]);
    await check('active');
    await queue.nack(id);
    await check('retryable');
    clock.set(T0 + 2000);
    await queue.claim();
    await queue.ack(id, { result: '[1]' });
    await check('completed');
    clock.set(T0 + 9 * 86_400_000);
    await queue.alarm();
    expect(await queue.state(id)).toBe('404');
    expect(await queue.rows('SELECT * FROM aliases')).toEqual([]);
    await queue.add({ id });
    expect(await queue.state(id)).toBe('available');
  });

  it.each(['cancelled', 'dead letter deleted', 'completed without retention'])(
    'is free again once its job was %s and removed',
    async (how) => {
      const queue = new TestQueue();
      const id = uuidv7();
      await queue.api.configure({ retention: { completed: 0, cancelled: 0 } });
      await queue.add({ id });
      if (how === 'cancelled') {
        await queue.cancel(id);
        clock.set(T0 + 1);
        await queue.alarm();
      } else {
        await queue.claim();
        if (how === 'completed without retention') await queue.ack(id);
        else {
          await queue.nack(id, { code: 'DEAD_LETTER' });
          await queue.api.deleteDeadLetter(id);
        }
      }
      expect(await queue.state(id)).toBe('404');
      expect(await queue.rows('SELECT * FROM aliases')).toEqual([]);
      await queue.add({ id });
      expect(await queue.claim()).toMatchObject([{ id }]);
    },
  );

  it('that this queue will mint itself one day is refused; one that it minted long ago is not', async () => {
    const queue = new TestQueue();
    const minted = await queue.add();
    const { time: at, route: own, key: last } = decodeId(minted);
    const future = mintId(at, own, last + 1);
    expect(refusal(await queue.api.enqueue([newJob({ id: future })]))).toMatchObject({ status: 400 });
    expect(refusal(await queue.api.enqueue([newJob({ id: minted })]))).toMatchObject({ status: 409 });
    const elsewhere = mintId(at, (own + 1) % 2 ** 32, last + 1);
    await queue.add({ id: elsewhere });
    expect(await queue.state(elsewhere)).toBe('available');
  });

  it('used twice in one request is refused, and nothing is written', async () => {
    const queue = new TestQueue();
    const id = uuidv7();
    expect(refusal(await queue.api.enqueue([newJob(), newJob({ id }), newJob({ id })]))).toMatchObject({
      status: 409,
      details: { index: 2 },
    });
    expect(await queue.counts()).toEqual({});
    // A refused enqueue leaves no queue behind, not even its tables.
    expect(await queue.rows("SELECT name FROM sqlite_master WHERE name = 'jobs'")).toEqual([]);
  });
});
