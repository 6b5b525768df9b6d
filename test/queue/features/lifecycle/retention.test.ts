/** A job's own retention: which ends it decides and when the job goes then. */

import fc from 'fast-check';
import { beforeEach, describe, expect, it } from 'vitest';
import { removalMoment } from '../../../../src/job/retention';
import { clock, DAY, HOUR, T0 } from '../../../support/clock';
import { histories } from '../../../support/long';
import { TestQueue } from '../../../support/queue';
import { type Json, server, V1 } from '../../../support/server';

server.emptyBeforeEach();
clock.restoreAfterEach();

let queue: TestQueue;
beforeEach(() => {
  clock.set(T0);
  queue = new TestQueue();
});

const status = async (id: string) => (await server.call('GET', `${V1}/jobs/${id}`)).status;
const add = (options: Json = {}) => server.enqueue(queue.name, { options });

async function fetchAll(count = 100): Promise<string[]> {
  const body = await server.ok(200, 'POST', `${V1}/workers/fetch`, { queues: [queue.name], count });
  return (body.jobs ?? []).map(({ id }) => id as string);
}

/** A job that ends so right away. */
const ENDINGS: Record<string, (options: Json) => Promise<string>> = {
  completed: async (options) => {
    const id = await add(options);
    await fetchAll();
    await server.ack(id, { result: { n: 1 } });
    return id;
  },
  cancelled: async (options) => {
    const id = await add(options);
    await server.ok(200, 'DELETE', `${V1}/jobs/${id}`);
    return id;
  },
  discarded: (options) => failed({ ...options, retry: { max_attempts: 1 } }),
  dead_letter: (options) => failed({ ...options, retry: { max_attempts: 1, on_exhaustion: 'dead_letter' } }),
};

async function failed(options: Json): Promise<string> {
  const id = await add(options);
  await fetchAll();
  await server.nack(id, { error: { code: 'E', message: 'no' } });
  return id;
}

const DEFAULTS: [end: string, days: number][] = [
  ['completed', 7],
  ['cancelled', 7],
  ['discarded', 30],
  ['dead_letter', 180],
];

describe.each(DEFAULTS)('a job that ends as %s', (end, days) => {
  const finish = ENDINGS[end] as (options: Json) => Promise<string>;

  it('goes sooner than its queue says when it says so, and the alarm wakes for it', async () => {
    const other = await finish({});
    const id = await finish({ retention: { [end]: 'PT1H' } });
    await queue.passTo(T0 + HOUR - 1);
    expect(await status(id)).toBe(200);
    await queue.passTo(T0 + HOUR);
    expect(await status(id)).toBe(404);
    await queue.passTo(T0 + days * DAY - 1);
    expect(await status(other)).toBe(200);
    await queue.passTo(T0 + days * DAY + HOUR);
    expect(await status(other)).toBe(404);
    expect(await queue.armedAt()).toBeNull();
  });

  it('stays longer than its queue says when its own retention is longer, whatever ends with it', async () => {
    const id = await finish({ retention: { [end]: `P${2 * days}D` } });
    const other = await finish({});
    await queue.passTo(T0 + days * DAY + HOUR);
    expect([await status(id), await status(other)]).toEqual([200, 404]);
    await queue.evict();
    await queue.passTo(T0 + 2 * days * DAY - 1);
    expect(await status(id)).toBe(200);
    await queue.passTo(T0 + 2 * days * DAY);
    expect(await status(id)).toBe(404);
    expect(await queue.rows('SELECT key FROM jobs')).toEqual([]);
    expect(await queue.rows('SELECT chunk FROM archive')).toEqual([]);
    expect(await queue.armedAt()).toBeNull();
  });

  it('goes at once with a retention of nothing', async () => {
    const id = await finish({ retention: { [end]: 0 } });
    if (end !== 'completed') await queue.passTo(T0 + 1);
    expect(await status(id)).toBe(404);
  });

  it('keeps to its own word when its queue changes its mind, and only for the end it named', async () => {
    const elsewhere = end === 'cancelled' ? 'completed' : 'cancelled';
    const own = await finish({ retention: { [end]: 'PT5H' } });
    const unnamed = await finish({ retention: { [elsewhere]: 'P500D' } });
    const setting =
      end === 'dead_letter' ? { dead_letter: { retention: { max_age: 'PT1H' } } } : { retention: { [end]: 'PT1H' } };
    await server.configure(queue.name, setting);
    await queue.passTo(T0 + 2 * HOUR);
    expect([await status(own), await status(unnamed)]).toEqual([200, 404]);
    await queue.passTo(T0 + 5 * HOUR);
    expect(await status(own)).toBe(404);
  });
});

describe('a completed job of its own retention', () => {
  it('is found, listed, counted, filtered, acknowledged again and purged like any other', async () => {
    const own: string[] = [];
    const all: string[] = [];
    for (let n = 0; n < 12; n++) {
      const retention = n % 3 === 0 ? undefined : { completed: `P${n}D` };
      const id = await server.enqueue(queue.name, { args: [{ n }], options: { retention, tags: [`t${n % 2}`] } });
      all.unshift(id);
      if (retention) own.push(id);
    }
    const fetched = await fetchAll();
    await Promise.all(fetched.map((id) => server.ack(id, { attempt: 1, result: { of: id } })));
    await queue.evict();
    for (const id of own) {
      expect(await server.job(id)).toMatchObject({ state: 'completed', result: { of: id } });
      expect((await server.ack(id, { attempt: 1, result: 'again' })).job).toMatchObject({ result: { of: id } });
    }
    const list = async (query: string) =>
      ((await server.ok(200, 'GET', `${V1}/jobs?queue=${queue.name}&${query}`)).jobs ?? []).map(({ id }) => id);
    expect(await list('state=completed')).toEqual(all);
    expect(await list('args.0.n=7')).toEqual([all[4]]);
    expect((await server.ok(200, 'GET', `${V1}/jobs/count?queue=${queue.name}&tag=t1`)).count).toBe(6);
    expect(await queue.counts()).toEqual({ completed: 12 });

    await server.ok(200, 'POST', `${V1}/jobs/bulk/delete`, { job_ids: [own[0]] });
    expect(await status(own[0] as string)).toBe(404);
    clock.set(T0 + 1000);
    const late = await ENDINGS.completed?.({ retention: { completed: 'PT1M' } });
    const purge = { states: ['completed'], older_than: new Date(T0).toISOString(), confirm: true };
    expect(await server.ok(200, 'POST', `${V1}/queues/${queue.name}/purge`, purge)).toMatchObject({ deleted: 11 });
    expect(await list('state=completed')).toEqual([late]);
  });

  it('takes its id, its large result and its uniqueness with it', async () => {
    const id = '01962222-bbbb-7ccc-8ddd-eeeeeeeeeee1';
    const body = {
      id,
      type: 'test.echo',
      args: [],
      options: {
        queue: queue.name,
        retention: { completed: '90m' },
        unique: { keys: ['type', 'queue'], unique_while: 'exists' },
      },
    };
    await server.ok(201, 'POST', `${V1}/jobs`, body);
    await fetchAll();
    await server.ack(id, { result: 'x'.repeat(70_000) });
    expect((await server.call('POST', `${V1}/jobs`, body)).status).toBe(409);
    await queue.passTo(T0 + 90 * 60_000);
    for (const table of ['archive', 'results', 'aliases', 'unique_keys']) {
      expect(await queue.rows(`SELECT * FROM ${table}`), table).toEqual([]);
    }
    await server.ok(201, 'POST', `${V1}/jobs`, body);
  });

  it('goes at its time whatever others end, wherever the queue stands', async () => {
    const retention = fc.option(fc.integer({ min: 1, max: 40 }), { nil: undefined });
    const batches = fc.array(fc.array(retention, { minLength: 1, maxLength: 5 }), { minLength: 1, maxLength: 5 });
    await fc.assert(
      fc.asyncProperty(batches, fc.integer({ min: 1, max: 40 }), async (transactions, ownOfQueue) => {
        clock.set(T0);
        queue = new TestQueue();
        await queue.api.configure({ retention: { completed: ownOfQueue * HOUR } });
        const due = new Map<string, number>();
        for (const [n, hours] of transactions.entries()) {
          clock.set(T0 + n * 1000);
          const jobs = await queue.enqueue(
            ...hours.map((own) => ({
              body: own === undefined ? {} : { retention: { completed: `${own}h` as const } },
            })),
          );
          await queue.claimAll();
          await queue.inside(({ instance }) =>
            Promise.all(jobs.map(({ id }) => instance.settle({ kind: 'completed', job_id: id }))),
          );
          for (const [i, { id }] of jobs.entries()) due.set(id, T0 + n * 1000 + (hours[i] ?? ownOfQueue) * HOUR);
        }
        for (const hours of [1, 3, 7, 20, 38, 42, 60]) {
          await queue.passTo(T0 + hours * HOUR);
          for (const [id, at] of due) {
            const state = await queue.state(id);
            if (at > T0 + hours * HOUR) expect(state).toBe('completed');
            // What is due goes at the next full step: an hour at most.
            if (at + HOUR <= T0 + hours * HOUR) expect(state).toBe('404');
          }
        }
        expect(await queue.armedAt()).toBeNull();
      }),
      { numRuns: histories(12) },
    );
  });
});

describe('the retention of a job', () => {
  it('outlives a redrive, and the time of its first end means nothing in its second life', async () => {
    const id = await ENDINGS.cancelled?.({ retention: { cancelled: '1h', completed: '2h' } });
    await queue.redrive(id as string);
    await queue.passTo(T0 + 3 * HOUR);
    expect(await server.job(id as string)).toMatchObject({ state: 'available', retention: { cancelled: '1h' } });
    await server.ok(200, 'DELETE', `${V1}/jobs/${id}`);
    await queue.passTo(T0 + 4 * HOUR - 1);
    expect(await status(id as string)).toBe(200);
    await queue.redrive(id as string);
    await fetchAll();
    await server.ack(id as string);
    await queue.passTo(T0 + 6 * HOUR - 1);
    expect(await status(id as string)).toBe(200);
    await queue.passTo(T0 + 6 * HOUR);
    expect(await status(id as string)).toBe(404);
  });

  it('goes with it when its queue moves away', async () => {
    const id = await add({ retention: { cancelled: '1h' } });
    const target = new TestQueue();
    await server.ok(202, 'DELETE', `${V1}/queues/${queue.name}`, { strategy: 'move', target_queue: target.name });
    await expect.poll(() => target.counts()).toEqual({ available: 1 });
    await server.ok(200, 'DELETE', `${V1}/jobs/${id}`);
    await target.passTo(T0 + HOUR);
    expect(await status(id)).toBe(404);
  });

  it('does not save a dead letter when there are too many: the oldest go first, and the list is by age', async () => {
    await queue.api.configure({ dead_letter: { max_count: 3 } });
    const ids: string[] = [];
    for (let n = 0; n < 5; n++) {
      clock.set(T0 + n);
      ids.push((await ENDINGS.dead_letter?.(n % 2 ? {} : { retention: { dead_letter: 'P400D' } })) as string);
    }
    const dead = (await server.ok(200, 'GET', `${V1}/dead-letter?queue=${queue.name}`)).jobs ?? [];
    expect(dead.map(({ id }) => id)).toEqual([ids[4], ids[3], ids[2]]);
    expect(await queue.stats()).toMatchObject({ dead: 3, counts: { discarded: 3 } });
  });
});

it('a removal is never early, and late by a tenth of the retention or an hour at most', () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 0, max: 4e12 }),
      fc.integer({ min: 0, max: 3_153_600_000_000 }),
      (ended, retention) => {
        const late = removalMoment(ended, retention) - (ended + retention);
        expect(late).toBeGreaterThanOrEqual(0);
        expect(late).toBeLessThanOrEqual(Math.min(retention / 10, HOUR) + 1);
        expect(Number.isInteger(late)).toBe(true);
      },
    ),
  );
});
