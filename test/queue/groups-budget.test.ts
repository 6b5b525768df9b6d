/** What groups cost: rows written per job, rows read by a claim, and memory. */
import { describe, expect, it } from 'vitest';
import type { AttemptOutcome } from '../../src/job/attempt/outcome';
import { type BlockJob, encode } from '../../src/queue/store/block';
import { clock, T0 } from '../support/clock';
import { isLong } from '../support/long';
import { type JobChange, TestQueue } from '../support/queue';
import type { RowCount } from '../support/rows';
import { type Json, server } from '../support/server';

clock.startAtT0();

/** The group of the job at a place in the order of enqueue. */
type GroupAt = (at: number) => string | undefined;

const ofGroup = (group: string | undefined): JobChange => (group === undefined ? {} : { group, body: { group } });

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

/** These jobs wait, in blocks of 100. They are written directly: this is about reading. */
const fill = (queue: TestQueue, count: number, groupAt: GroupAt) =>
  queue.inside(({ sql, q }) => {
    const insert = 'INSERT INTO blocks (first, span, jobs, heads, data) VALUES (?, ?, ?, ?, ?)';
    for (let at = 0; at < count; at += 100) {
      const first = q.store.nextSequence + at;
      const jobs = Array.from({ length: 100 }, (_, n): BlockJob => {
        const group = groupAt(at + n);
        const body = JSON.stringify({ type: 't', args: [], meta: {}, ...(group && { group }) });
        const job = { key: first + n, type: 't', at: T0, body, alias: null, priority: 0, due_at: null };
        return group === undefined ? job : { ...job, group };
      });
      const { heads, data } = encode(jobs, first);
      sql.exec(insert, first, 100, 100, `[${heads}]`, `[${data}]`).toArray();
    }
    q.load();
  });

const settleAll = (queue: TestQueue, jobs: readonly { id: string }[]) => {
  const completed: AttemptOutcome = { kind: 'completed', result: '1' };
  return queue.inside(({ instance }) =>
    Promise.all(jobs.map(({ id }) => instance.settle({ job_id: id, ...completed }))),
  );
};

const none: GroupAt = () => undefined;
const one: GroupAt = () => 'noisy';
const each: GroupAt = (at) => `group ${at}`;
const interleaved: GroupAt = (at) => `group ${at % 1000}`;
const contiguous: GroupAt = (at) => `group ${Math.floor(at / 100) % 1000}`;

/** A rate, and the beginning of names, for what is counted over a day. */
const DAILY = { limit: 1_000_000, period_ms: 86_400_000 };
const PREFIX = 'a group with a rather long name ';

/** Rows per job of 1,000 that are enqueued, claimed and completed in batches of 100. */
async function perJob(groupAt: GroupAt, groups?: Json): Promise<number> {
  const queue = await countedQueue(groups);
  const jobs = Array.from({ length: 1_000 }, (_, at) => ofGroup(groupAt(at)));
  await queue.counted();
  for (let at = 0; at < 1_000; at += 100) await queue.enqueue(...jobs.slice(at, at + 100));
  for (let at = 0; at < 1_000; at += 100) {
    const claimed = await queue.claim({ count: 100 });
    expect(claimed).toHaveLength(100);
    await settleAll(queue, claimed);
  }
  return (await queue.counted()).written / 1_000;
}

describe('rows written in a queue that serves its groups fairly', () => {
  it.each<[string, GroupAt]>([
    ['has no group', none],
    ['has a group of its own', each],
    ['is of the same group', one],
    ['is of one of many groups by turns', interleaved],
    ['is of a group whose jobs follow each other', contiguous],
  ])('are those of a queue without groups where each job %s', async (_, groupAt) => {
    const plain = await perJob(groupAt);
    expect(plain).toBeLessThanOrEqual(0.05);
    expect(await perJob(groupAt, { order: 'fair' })).toBeLessThanOrEqual(plain);
  });
});

describe('rows written for groups with a rate', () => {
  const rate = { limit: 1_000, period: 'minute' };

  it.each<[string, GroupAt]>([
    ['one group', one],
    ['a group for each job', each],
    ['many groups by turns', interleaved],
  ])('are one more for each claim, of %s', async (_, groupAt) => {
    expect(await perJob(groupAt, { order: 'fair', rate })).toBeLessThanOrEqual(0.06);
  });

  it.runIf(isLong)('stay few, however many claims there are in a period', async () => {
    const queue = await countedQueue({ rate: { limit: 1_000_000, period: 'day' } });
    const kept = await queue.inside(({ q, sql }) => {
      const counted = () => sql.exec<{ n: number }>('SELECT count(*) AS n FROM group_starts').one().n;
      let most = 0;
      for (let claim = 0; claim < 20_000; claim++) {
        const groups = Array.from({ length: 100 }, (_, at) => `${PREFIX}${(claim + at) % 500}`);
        q.store.gates.started(groups, T0 + claim * 1_000);
        if (claim % 100 === 0) most = Math.max(most, counted());
      }
      return { most, used: 1_000_000 - q.store.gates.starts.room(`${PREFIX}7`, DAILY, 0, T0 + 20_000_000) };
    });
    expect(kept.most).toBeLessThanOrEqual(2_000);
    expect(kept.used).toBe(4_000);
    await queue.evict();
    const used = await queue.inside(
      ({ q }) => 1_000_000 - q.store.gates.starts.room(`${PREFIX}7`, DAILY, 0, T0 + 20_000_000),
    );
    expect(used).toBe(4_000);
  });

  it('are written again once they count no more', async () => {
    const queue = await countedQueue({ rate: { limit: 5, period: 'second' } });
    await queue.inside(({ q }) => {
      for (let claim = 0; claim < 1_000; claim++) q.store.gates.started(['a'], T0 + claim * 100);
    });
    const rows = await queue.rows('SELECT id FROM group_starts');
    expect(rows.length).toBeLessThanOrEqual(11);
  });
});

describe('rows written in a queue that serves its groups in strict order', () => {
  it('are those of a claim and an end for each job of one group, and nothing for those that wait', async () => {
    const queue = await countedQueue({ order: 'strict' });
    await queue.enqueue(...Array<JobChange>(50).fill(ofGroup('one')));
    await queue.counted();
    for (let n = 0; n < 50; n++) await settleAll(queue, await queue.claim({ count: 100 }));
    expect((await queue.counted()).written / 50).toBeLessThanOrEqual(2.1);
  });

  it('are those of a queue without groups where each claim takes one job of each of a hundred groups', async () => {
    const queue = await countedQueue({ order: 'strict' });
    for (let n = 0; n < 10; n++) {
      await queue.enqueue(...Array.from({ length: 100 }, (_, at) => ofGroup(`group ${at}`)));
    }
    await queue.counted();
    for (let n = 0; n < 10; n++) {
      const claimed = await queue.claim({ count: 100 });
      expect(claimed).toHaveLength(100);
      await settleAll(queue, claimed);
    }
    expect((await queue.counted()).written / 1_000).toBeLessThanOrEqual(0.05);
  });
});

/** The counts of claims whose jobs complete before the next one, and how many jobs each took. */
async function claims(groupAt: GroupAt, backlog: number, count: number, groups?: Json) {
  const queue = await countedQueue(groups);
  await fill(queue, backlog, groupAt);
  const read: number[] = [];
  const taken: number[] = [];
  for (let n = 0; n < count; n++) {
    await queue.counted();
    const jobs = await queue.claim({ count: 100 });
    const counted: RowCount = await queue.counted();
    read.push(counted.read);
    taken.push(jobs.length);
    await settleAll(queue, jobs);
  }
  return { read, taken };
}

describe('rows read by a claim of 100 jobs', () => {
  it.each<[string, GroupAt, Json | undefined]>([
    ['without groups', none, undefined],
    ['in a fair queue of jobs without a group', none, { order: 'fair' }],
    ['in a fair queue where each job has a group of its own', each, { order: 'fair' }],
    ['in a fair queue of a thousand groups by turns', interleaved, { order: 'fair' }],
    ['in a strict queue of a thousand groups by turns', interleaved, { order: 'strict' }],
  ])('are at most ten %s, whatever the backlog', async (_, groupAt, groups) => {
    for (const backlog of [1_000, isLong ? 100_000 : 10_000]) {
      // The first one finds out where the jobs are.
      const { read, taken } = await claims(groupAt, backlog, 8, groups);
      expect(Math.max(...read.slice(1))).toBeLessThanOrEqual(10);
      expect(taken).toEqual(Array(8).fill(100));
    }
  });

  it('are at most ten in a fair queue with a backlog of one group, once it was read ahead, and 400 before', async () => {
    const { read, taken } = await claims(one, 100_000, 40, { order: 'fair' });
    expect(Math.max(...read)).toBeLessThanOrEqual(400);
    expect(Math.max(...read.slice(25))).toBeLessThanOrEqual(10);
    expect(taken.slice(25)).toEqual(Array(15).fill(100));
  });

  it.each(['fair', 'strict'])(
    'are at most 400 in a %s queue of a thousand groups whose jobs follow each other',
    async (order) => {
      const { read, taken } = await claims(contiguous, 100_000, isLong ? 100 : 12, { order });
      expect(Math.max(...read)).toBeLessThanOrEqual(400);
      // A claim that reads ahead may not have come upon a hundred groups yet.
      expect(Math.min(...taken)).toBeGreaterThan(60);
    },
  );

  it.runIf(isLong)('are the same where a million jobs wait, each in a group of its own', async () => {
    const { read, taken } = await claims(each, 1_000_000, 8, { order: 'fair' });
    expect(Math.max(...read.slice(1))).toBeLessThanOrEqual(10);
    expect(taken).toEqual(Array(8).fill(100));
  });

  it.runIf(isLong)('are the same where a million jobs of a thousand noisy groups wait', async () => {
    const { read } = await claims(contiguous, 1_000_000, 100, { order: 'fair' });
    expect(Math.max(...read)).toBeLessThanOrEqual(400);
  });
});

describe('an object that has lost its memory', () => {
  it('hands out no more than thirty jobs of a noisy group, beside its eighth, before quiet ones behind it', async () => {
    const queue = await countedQueue({ order: 'fair' });
    await fill(queue, 50_000, (at) => (at < 49_000 ? 'noisy' : `quiet ${at}`));
    for (const lost of [false, true]) {
      if (lost) await queue.evict();
      let [noisy, quiet, wanted] = [0, 0, 0];
      while (quiet < 100) {
        const jobs = await queue.claim({ count: 100 });
        expect(jobs.length).toBeGreaterThan(0);
        wanted += 100;
        const of = jobs.filter(({ body }) => body.includes('"group":"noisy"')).length;
        noisy += of;
        quiet += jobs.length - of;
      }
      expect(noisy).toBeLessThanOrEqual(30 + wanted / 8);
      expect(wanted).toBeLessThanOrEqual(1_100);
    }
  });
});
