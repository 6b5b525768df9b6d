/** Ids carry their route; they are never given twice; ids chosen by clients live as long as their jobs. */

import fc from 'fast-check';
import { v7 as uuidv7 } from 'uuid';
import { beforeEach, describe, expect, it } from 'vitest';
import {
  claimOfDelivery,
  decodeId,
  deliveryId,
  isUuidV7,
  LANE_BIT,
  MAX_SEQUENCE,
  mintId,
  routeOf,
  sequenceOf,
} from '../../../src/job/ids';
import { clock, T0 } from '../../support/clock';
import { newJob, refusal, steady, TestQueue } from '../../support/queue';

const time = fc.integer({ min: 0, max: 2 ** 48 - 1 });
const route = fc.integer({ min: 0, max: 2 ** 32 - 1 });
const key = fc.integer({ min: 0, max: 2 ** 42 - 1 });
const edge = <T>(arbitrary: fc.Arbitrary<T>, ...edges: T[]) => fc.oneof(fc.constantFrom(...edges), arbitrary);

describe('an id', () => {
  it('is a UUIDv7 that gives back what it was made of', () => {
    fc.assert(
      fc.property(
        edge(time, 0, 2 ** 48 - 1),
        edge(route, 0, 2 ** 32 - 1, 2 ** 20 - 1, 2 ** 20, 63, 64),
        edge(key, 0, LANE_BIT, LANE_BIT - 1, 2 ** 42 - 1, MAX_SEQUENCE - 1),
        (t, r, k) => {
          const id = mintId(t, r, k);
          expect(isUuidV7(id)).toBe(true);
          expect(decodeId(id)).toEqual({ time: t, route: r, key: k });
          expect(routeOf(id)).toBe(r);
        },
      ),
    );
  });

  it('sorts by time, and by number within a millisecond of one queue and lane', () => {
    fc.assert(
      fc.property(time, time, route, route, key, key, (t1, t2, r1, r2, k1, k2) => {
        if (t1 !== t2) expect(mintId(t1, r1, k1) < mintId(t2, r2, k2)).toBe(t1 < t2);
        if (k1 !== k2) expect(mintId(t1, r1, k1) < mintId(t1, r1, k2)).toBe(k1 < k2);
      }),
    );
  });

  it('is told from everything else', () => {
    const id = mintId(T0, 7, 9);
    for (const wrong of [id.toUpperCase(), `${id}0`, id.slice(1), id.replaceAll('-', ''), '', ` ${id}`, `${id}\n`]) {
      expect(isUuidV7(wrong)).toBe(false);
    }
    expect(isUuidV7(id.replace('-7', '-4'))).toBe(false);
    expect(isUuidV7(`${id.slice(0, 19)}c${id.slice(20)}`)).toBe(false);
    fc.assert(fc.property(fc.uuid({ version: 7 }), (uuid) => isUuidV7(uuid)));
  });

  it('decodes to numbers in range even when a client chose it', () => {
    fc.assert(
      fc.property(fc.uuid({ version: 7 }), (uuid) => {
        const decoded = decodeId(uuid);
        expect(decoded.route).toBeLessThan(2 ** 32);
        expect(decoded.key).toBeLessThan(2 ** 42);
        expect(sequenceOf(decoded.key)).toBeLessThan(MAX_SEQUENCE);
        expect(mintId(decoded.time, decoded.route, decoded.key)).toBe(uuid);
      }),
    );
  });
});

describe('a delivery id', () => {
  it('names one claim of one job', () => {
    const id = mintId(T0, 1, 1);
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 1e6 }), (claim) => {
        expect(claimOfDelivery(id, deliveryId(id, claim))).toBe(claim);
        expect(claimOfDelivery(mintId(T0, 1, 2), deliveryId(id, claim))).toBeUndefined();
      }),
    );
    for (const wrong of ['', 'del_', `del_${id}`, `del_${id}_`, `del_${id}_!`, `${deliveryId(id, 1)}!`]) {
      expect(claimOfDelivery(id, wrong)).toBeUndefined();
    }
  });
});

describe('a number of the sequence', () => {
  beforeEach(() => clock.set(T0));
  clock.restoreAfterEach();
  const DAY = 86_400_000;

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
    const used = await queue.inside(({ q }) => q.nextSequence);
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
    await queue.inside(({ instance }) => Promise.all(ids.map((id) => instance.ack({ job_id: id }))));
    await queue.alarm();
    expect((await queue.rows('SELECT id FROM leases')).length).toBeLessThanOrEqual(64);
    await queue.evict();
    expect(ids).not.toContain(await queue.add());
  });
});

describe('an id chosen by a client', () => {
  beforeEach(() => clock.set(T0));
  clock.restoreAfterEach();

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
