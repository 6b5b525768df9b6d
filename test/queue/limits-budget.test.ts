/** What limits by key cost: rows written per job, rows read by a claim, and what is known after an eviction. */
import { describe, expect, it } from 'vitest';
import type { AttemptOutcome } from '../../src/job/attempt/outcome';
import { type BlockJob, encode } from '../../src/queue/store/block';
import { clock, T0 } from '../support/clock';
import { isLong } from '../support/long';
import { type JobChange, TestQueue } from '../support/queue';
import { type Json, server } from '../support/server';

clock.startAtT0();

/** The key of the job at a place in the order of enqueue; undefined: nothing limits it. */
type KeyAt = (at: number) => string | undefined;

/** A queue that has its alarm standing by, and counts its rows from now on. */
async function countedQueue(groups?: Json): Promise<TestQueue> {
  const queue = new TestQueue();
  if (groups) await server.configure(queue.name, { groups });
  await queue.add({ pending: true });
  await queue.add({ scheduledAt: T0 + 1 });
  clock.set(T0 + 1);
  await queue.ack((await queue.claim())[0]?.id as string);
  await queue.startCounting();
  return queue;
}

const underKey = (key: string, concurrency: number, group = key): JobChange => ({
  limit: { key, limits: { concurrency }, on_limit: 'wait' },
  group,
  body: { rate_limit: { key, concurrency }, ...(group !== key && { group }) },
});

/** How queues serve their groups. */
const QUEUES: [string, groups: Json | undefined][] = [
  ['without groups', undefined],
  ['that serves its groups fairly', { order: 'fair' }],
];

const settleAll = (queue: TestQueue, jobs: readonly { id: string }[]) => {
  const completed: AttemptOutcome = { kind: 'completed', result: '1' };
  return queue.inside(({ instance }) =>
    Promise.all(jobs.map(({ id }) => instance.settle({ job_id: id, ...completed }))),
  );
};

/** Rows per job of 1,000 that are enqueued, all before the first claim, and completed by the claim. */
async function perJob(jobs: readonly JobChange[], inClaim: number, groups?: Json): Promise<number> {
  const queue = await countedQueue(groups);
  // A key has a row of its own from its first job on.
  for (const job of jobs.slice(0, 10)) await queue.enqueue(job);
  await settleAll(queue, await queue.claim({ count: 100 }));
  await queue.counted();
  for (let at = 0; at < jobs.length; at += 100) await queue.enqueue(...jobs.slice(at, at + 100));
  for (let left = jobs.length; left > 0; ) {
    const claimed = await queue.claim({ count: 100 });
    expect(claimed.length).toBe(Math.min(left, inClaim));
    // Others find nothing meanwhile, and that costs nothing.
    if (inClaim < 100) expect(await queue.claim({ count: 100 })).toEqual([]);
    await settleAll(queue, claimed);
    left -= claimed.length;
  }
  const { written, alarms } = await queue.counted();
  return (written - alarms) / jobs.length;
}

describe('after an eviction', () => {
  it('attempts of jobs in blocks count under their keys, also of one that lives in the row of its lease', async () => {
    const queue = new TestQueue();
    await queue.api.pause();
    await queue.api.resume();
    // The first job of a key is written with the row of its key.
    await queue.ack(await queue.addTaken(underKey('other', 1)));
    const alone = await queue.addTaken(underKey('other', 1));
    expect(await queue.rows('SELECT id FROM leases WHERE job IS NOT NULL')).toHaveLength(1);
    const ids = (await queue.enqueue(...Array<JobChange>(5).fill(underKey('one', 2)))).map(({ id }) => id);
    const next = (await queue.enqueue(underKey('other', 1)))[0]?.id as string;
    expect((await queue.claim({ count: 2 })).map(({ id }) => id)).toEqual(ids.slice(0, 2));
    for (const done of [ids[0] as string, alone]) {
      await queue.evict();
      expect(await queue.claim()).toEqual([]);
      expect(await queue.claim()).toEqual([]);
      await queue.ack(done);
      const [taken] = await queue.claim();
      expect(taken?.id).toBe(done === alone ? next : ids[2]);
    }
  });
});

describe.each(QUEUES)('rows written for limited jobs in a queue %s', (_, groups) => {
  it('are those of other jobs where their keys have room', async () => {
    const plain = await perJob(
      Array.from({ length: 1_000 }, () => ({})),
      100,
      groups,
    );
    expect(plain).toBeLessThanOrEqual(0.05);
    const limited = Array.from({ length: 1_000 }, (_, at) => underKey(`key${at % 10}`, 1_000));
    expect(await perJob(limited, 100, groups)).toBeLessThanOrEqual(plain + 0.01);
  });

  it('are a tenth of a row where a hundred claims of ten keys must wait for room', async () => {
    const limited = Array.from({ length: 1_000 }, (_, at) => underKey(`key${at % 10}`, 5));
    expect(await perJob(limited, 50, groups)).toBeLessThanOrEqual(0.12);
  });

  it('are those of claims and ends where one key lets few jobs run', async () => {
    const limited = Array.from({ length: 100 }, () => underKey('one', 5));
    expect(await perJob(limited, 5, groups)).toBeLessThanOrEqual(0.8);
  });
});

describe('rows written for jobs of many groups under one key that lets few of them run', () => {
  it.each([['fair'], ['strict']])('are those of claims and ends in a queue whose order is %s', async (order) => {
    const limited = Array.from({ length: 100 }, (_, at) => underKey('one', 5, `group ${at % 10}`));
    expect(await perJob(limited, 5, { order })).toBeLessThanOrEqual(0.8);
  });
});

describe.each(QUEUES)('rows read by a claim of 100 jobs in a queue %s', (_, groups) => {
  /** These jobs wait, in blocks of 100. They are written directly: this is about reading. */
  const fill = (queue: TestQueue, count: number, keyAt: KeyAt) =>
    queue.inside(({ sql, q }) => {
      const insert = 'INSERT INTO blocks (first, span, jobs, heads, data) VALUES (?, ?, ?, ?, ?)';
      for (let at = 0; at < count; at += 100) {
        const first = q.store.nextSequence + at;
        const jobs = Array.from({ length: 100 }, (_, n): BlockJob => {
          const key = keyAt(at + n);
          const rate_limit = key === undefined ? undefined : { key, concurrency: 1 };
          const body = JSON.stringify({ type: 't', args: [], meta: {}, ...(rate_limit && { rate_limit }) });
          const job = { key: first + n, type: 't', at: T0, body, alias: null, priority: 0, due_at: null };
          return key === undefined ? job : { ...job, group: key, limit_key: key };
        });
        const { heads, data } = encode(jobs, first);
        sql.exec(insert, first, 100, 100, `[${heads}]`, `[${data}]`).toArray();
      }
      q.load();
    });

  /** The rows that claims read once all that waits was read once: their jobs complete before the next one. */
  async function claims(backlog: number, keyAt: KeyAt, atOnce: number): Promise<number[]> {
    const queue = await countedQueue(groups);
    await fill(queue, backlog, keyAt);
    const running: { id: string }[] = [];
    for (let empty = 0; empty < 10; ) {
      const jobs = await queue.claim({ count: 100 });
      running.push(...jobs);
      empty = jobs.length === 0 ? empty + 1 : 0;
    }
    expect(running).toHaveLength(atOnce);
    const read: number[] = [];
    for (let n = 0; n < 5; n++) {
      await settleAll(queue, running.splice(0, 100));
      await queue.counted();
      const jobs = await queue.claim({ count: 100 });
      read.push((await queue.counted()).read);
      expect(jobs).toHaveLength(Math.min(100, atOnce));
      running.push(...jobs);
    }
    return read;
  }

  it.each(isLong ? [20_000, 100_000] : [20_000])(
    'are at most 400 with a thousand keys out of room and %i jobs',
    async (backlog) => {
      const read = await claims(backlog, (at) => `key${at % 1_000}`, 1_000);
      expect(Math.max(...read)).toBeLessThanOrEqual(400);
    },
  );

  it.each([1_000, isLong ? 100_000 : 10_000])(
    'are at most ten with one key out of room and %i jobs',
    async (backlog) => {
      expect(Math.max(...(await claims(backlog, () => 'one', 1)))).toBeLessThanOrEqual(10);
    },
  );
});
