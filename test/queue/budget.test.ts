/** Invariant "cost": rows written per job, and rows read per claim, as SQLite's cursors count them. */

import { v7 as uuidv7 } from 'uuid';
import { describe, expect, it } from 'vitest';
import type { AttemptOutcome } from '../../src/job/attempt/outcome';
import { unwrap } from '../../src/job/errors';
import type { UniquePolicy } from '../../src/job/record';
import { type BlockJob, rowOf } from '../../src/queue/store/block';
import type { JobRow } from '../../src/queue/store/job-row';
import { encode } from '../../src/queue/store/retry-text';
import { clock, DAY, T0 } from '../support/clock';
import { type JobChange, newJob, steady, TestQueue } from '../support/queue';

import type { RowCount } from '../support/rows';

clock.startAtT0();

const many = (n: number, change: JobChange = {}): JobChange[] => Array<JobChange>(n).fill(change);

/** A queue that exists, has its alarm standing by, and counts its rows from now on. */
async function countedQueue(): Promise<TestQueue> {
  const queue = new TestQueue();
  await queue.add({ pending: true });
  await queue.add({ scheduledAt: T0 + 1 });
  clock.set(T0 + 1);
  await queue.ack((await queue.claim())[0]?.id as string);
  await queue.startCounting();
  return queue;
}

const take = (queue: TestQueue): Promise<RowCount> => queue.counted();

async function written(queue: TestQueue, run: () => Promise<unknown>): Promise<number> {
  await take(queue);
  await run();
  return (await take(queue)).written;
}

/** Enqueues, claims, completes in batches of `size`, keeps for a week and prunes; rows written per job. */
async function life(queue: TestQueue, jobs: number, size: number, change: JobChange): Promise<number> {
  await take(queue);
  for (let n = 0; n < jobs; n += size) await queue.enqueue(...many(size, change));
  if (change.scheduledAt !== undefined) clock.set(change.scheduledAt);
  for (let n = 0; n < jobs; n += size) {
    const claimed = await queue.claim({ count: size });
    expect(claimed).toHaveLength(size);
    await queue.inside(({ instance }) =>
      Promise.all(claimed.map(({ id }) => instance.settle({ kind: 'completed', job_id: id, attempt: 1, result: '1' }))),
    );
  }
  clock.set(T0 + 9 * DAY);
  // Pruning goes in steps; each alarm arms the next one until nothing is left.
  for (let alarms = 0; alarms < 5; alarms++) await queue.alarm();
  const count = await take(queue);
  expect(await queue.rows('SELECT chunk FROM archive')).toEqual([]);
  expect(await queue.counts()).toEqual({ pending: 1 });
  // Nothing is left to do: the queue sleeps.
  expect(await queue.armedAt()).toBeNull();
  expect(count.alarms).toBeLessThan(9);
  return (count.written - count.alarms) / jobs;
}

/** These end, each by a report of its own, in one transaction. */
const settleAll = (queue: TestQueue, jobs: readonly { id: string }[], outcome: AttemptOutcome) =>
  queue.inside(({ instance }) => Promise.all(jobs.map(({ id }) => instance.settle({ job_id: id, ...outcome }))));

const failAll = (queue: TestQueue, jobs: readonly { id: string }[]) =>
  settleAll(queue, jobs, { kind: 'failed', error: { message: 'failed' } });

const completeAll = (queue: TestQueue, jobs: readonly { id: string }[]) =>
  settleAll(queue, jobs, { kind: 'completed', result: '1' });

describe('rows written', () => {
  it('are one for the immediate jobs of a batch together, and for each that comes alone', async () => {
    const queue = await countedQueue();
    expect(await written(queue, () => queue.enqueue(...many(100)))).toBeLessThanOrEqual(2);
    expect(await written(queue, () => queue.enqueue(...many(100)))).toBe(1);
    for (let n = 0; n < 3; n++) expect(await written(queue, () => queue.add())).toBe(1);
    // Types, ids that producers choose and other jobs between them make no difference.
    const mixed = Array.from({ length: 50 }, (_, n) => [{ type: `type.${n}` }, { scheduledAt: T0 + 1000 }]).flat();
    expect(await written(queue, () => queue.enqueue(...mixed))).toBe(1 + 2);
  });

  it('are two for the jobs of a batch together that become available at one moment, and two for each that does alone', async () => {
    const queue = await countedQueue();
    const later = (ms: number, change: JobChange = {}) => ({ scheduledAt: T0 + ms, ...change });
    expect(await written(queue, () => queue.enqueue(...many(100, later(1000))))).toBe(2);
    expect(await written(queue, () => queue.enqueue(...many(100, { priority: 7 })))).toBe(2);
    expect(await written(queue, () => queue.enqueue(...many(3, later(1000)), ...many(2, later(2000))))).toBe(4);
    expect(await written(queue, () => queue.enqueue(...many(2, later(9)), ...many(2, later(9, { priority: 1 }))))).toBe(
      4,
    );
    expect(await written(queue, () => queue.enqueue(...[3, 4, 5, 6].map((ms) => later(ms))))).toBe(8);
    expect(await written(queue, () => queue.add(later(1000)))).toBe(2);
  });

  it('are one for all newcomers of a request that become a part of a job which waits', async () => {
    const queue = await countedQueue();
    const unique: UniquePolicy = {
      ...{ fingerprint: 'f'.repeat(64), scope: 'queue', states: ['scheduled', 'available', 'pending'] },
      on_conflict: 'accumulate',
    };
    const newcomer = (change: JobChange = {}): JobChange => ({ unique, body: { args: ['x'] }, ...change });
    const first = { ...newcomer(), body: { args: ['x'], fingerprint: unique.fingerprint } };
    const later = { ...first, scheduledAt: T0 + 1000 };
    // Its row, its place in the due index, its fingerprint.
    expect(await written(queue, () => queue.enqueue(later))).toBe(3);
    expect(await written(queue, () => queue.enqueue(...many(100, newcomer())))).toBe(1);
    expect(await written(queue, () => queue.add(newcomer()))).toBe(1);
    const each = async () => void unwrap(await queue.api.enqueueEach(many(100, newcomer()).map(newJob)));
    expect(await written(queue, each)).toBe(1);
    // Put off: the due index, too.
    const putOff = newcomer({ unique: { ...unique, max_wait_ms: 60_000 }, scheduledAt: T0 + 5000 });
    expect(await written(queue, () => queue.enqueue(...many(100, putOff)))).toBe(2);
    clock.set(T0 + 5000);
    const [job] = await queue.claim();
    expect(JSON.parse(job?.body ?? '')).toMatchObject({ args: Array(302).fill('x'), coalesced: { calls: 302 } });
    // One that starts at once, and its fingerprint. It leaves its block with the first newcomer of another request.
    expect(await written(queue, () => queue.enqueue(first, ...many(99, newcomer())))).toBe(2);
    expect(await written(queue, () => queue.enqueue(...many(100, newcomer())))).toBe(1);
    expect(await written(queue, () => queue.enqueue(...many(100, newcomer())))).toBe(1);
  });

  it('are as many as bodies of a quarter of a megabyte need', async () => {
    const queue = await countedQueue();
    const large = { body: { args: ['x'.repeat(100 * 1024)] } };
    expect(await written(queue, () => queue.enqueue(...many(20, large)))).toBe(10);
    const huge = { body: { args: ['x'.repeat(900 * 1024)] } };
    expect(await written(queue, () => queue.enqueue({}, huge, {}, {}))).toBe(3);
  });

  it('are a few for the blocks that a purge or the deletion of the queue empties', async () => {
    const queue = await countedQueue();
    const large = { body: { args: ['x'.repeat(100)] } };
    for (let n = 0; n < 6; n++) await queue.enqueue(...many(1000, large));
    const purge = { id: uuidv7(), action: 'purge', filter: { created: { max: T0 + 1 } } } as const;
    const rows = await written(queue, async () => {
      expect(unwrap(await queue.api.operate(purge, 20_000))).toMatchObject({ done: true, succeeded: 6002 });
    });
    expect(await queue.rows('SELECT first FROM blocks')).toEqual([]);
    // A step of the purge is noted in a row or two, and ends in the middle of a block as a rule.
    expect(rows).toBeLessThan(100);
    await queue.enqueue(...many(1000, large), ...many(1000, large));
    const removal = await written(queue, async () => {
      unwrap(await queue.api.remove({ strategy: 'discard' }, 0));
      for (let alarms = 0; alarms < 20 && (await queue.armedAt()) !== null; alarms++) await queue.alarm();
    });
    expect(removal).toBeLessThan(60);
  });

  it.each<[string, number, number, JobChange, number]>([
    ['an immediate job in batches of 100', 400, 100, {}, 0.1],
    ['an immediate job one by one, none of which anybody waits for', 150, 1, {}, 3.02],
    ['a delayed job one by one', 150, 1, { scheduledAt: T0 + 1000 }, 5.03],
    ['a prioritised job one by one', 150, 1, { priority: 5 }, 5.03],
    ['a delayed job in batches of 100', 400, 100, { scheduledAt: T0 + 1000 }, 0.1],
    ['a prioritised job in batches of 100', 400, 100, { priority: 5 }, 0.1],
  ])('over the whole life of %s stay inside the budget', async (_, jobs, size, change, budget) => {
    // A row or two are paid once, not for each job.
    expect(await life(await countedQueue(), jobs, size, change)).toBeLessThanOrEqual(budget + 2 / jobs);
  });

  it('are two for a job that arrives alone while a worker waits for it: its lease, and its share of the archive', async () => {
    const queue = await countedQueue();
    await queue.ack(await queue.addTaken());
    const rows = await written(queue, async () => {
      for (let n = 0; n < 50; n++) await queue.ack(await queue.addTaken());
    });
    // The chunk of the archive begins anew when it is full, and the alarm is moved now and then.
    expect(rows / 50).toBeLessThanOrEqual(2.1);
  });

  it('are at most three for each retry: the failure and the next claim', async () => {
    const queue = await countedQueue();
    await queue.enqueue(...many(100, { retry: steady(25, 1000) }));
    let now = T0 + 1;
    const claimed = await queue.claim({ count: 100 });
    const count = await written(queue, async () => {
      for (let round = 0; round < 3; round++) {
        await queue.inside(({ instance }) =>
          Promise.all(
            claimed.map(({ id }) => instance.settle({ kind: 'failed', job_id: id, error: { message: 'failed' } })),
          ),
        );
        now += 1000;
        clock.set(now);
        expect(await queue.claim({ count: 100 })).toHaveLength(100);
      }
    });
    expect(count / 300).toBeLessThanOrEqual(3);
    const [first] = claimed;
    const alone = await written(queue, async () => {
      await queue.nack(first?.id as string);
      clock.set(now + 1000);
      await queue.claim();
    });
    // Alone, a retry pays for a whole lease row and for moving the alarm.
    expect(alone).toBeLessThanOrEqual(4);
  });

  it('are one more for a step that can be undone, and one for the job that undoes it', async () => {
    const queue = await countedQueue();
    const running = async (): Promise<string> => {
      const id = await queue.add({ retry: steady(1) });
      expect((await queue.claim()).map((job) => job.id)).toEqual([id]);
      return id;
    };
    const record = (job_id: string, step: object) => () =>
      queue.api.recordStep({ job_id, name: 'charge', record: JSON.stringify(step) });
    const plain = await running();
    expect(await written(queue, record(plain, { result: 1 }))).toBe(1);
    const fail = (id: string) => written(queue, () => queue.nack(id));
    const alone = await fail(plain);
    const undone = await running();
    const begun = { begun: true, undo: true };
    expect(await written(queue, record(undone, begun))).toBe(1);
    expect(await written(queue, record(undone, begun))).toBe(0);
    expect(await written(queue, record(undone, { result: 1, undo: true }))).toBe(1);
    expect((await fail(undone)) - alone).toBe(1);
  });

  it('are a tenth for each retry of jobs that fail together: the failure, and again the next claim', async () => {
    const queue = await countedQueue();
    await queue.enqueue(...many(100, { retry: steady(25, 1000) }));
    let claimed = await queue.claim({ count: 100 });
    for (let round = 1; round <= 4; round++) {
      const failed = await written(queue, () => failAll(queue, claimed));
      expect(failed).toBeLessThanOrEqual(10);
      clock.set(T0 + 1 + 1000 * round);
      const again = await written(queue, async () => {
        claimed = await queue.claim({ count: 100 });
      });
      expect(claimed).toHaveLength(100);
      expect(again).toBeLessThanOrEqual(10);
    }
  });

  it('are less than a half for jobs that fail in batches, run again in batches, and are pruned', async () => {
    const queue = await countedQueue();
    const rows = await written(queue, async () => {
      for (let n = 0; n < 10; n++) await queue.enqueue(...many(100, { retry: steady(3, 60_000) }));
      for (let round = 0; round < 2; round++) {
        for (let n = 0; n < 10; n++) {
          const claimed = await queue.claim({ count: 100 });
          expect(claimed).toHaveLength(100);
          if (round === 0) await failAll(queue, claimed);
          else await completeAll(queue, claimed);
        }
        clock.set(T0 + 1 + 60_000);
      }
      clock.set(T0 + 9 * DAY);
      for (let alarms = 0; alarms < 5; alarms++) await queue.alarm();
    });
    expect(await queue.counts()).toEqual({ pending: 1 });
    expect(await queue.rows('SELECT block FROM retry_blocks')).toEqual([]);
    expect(rows / 1000).toBeLessThanOrEqual(0.4);
  });

  it('are one for each job that fails together with others and had a row of its own, and none after that', async () => {
    const queue = await countedQueue();
    for (let n = 0; n < 50; n++) await queue.add({ priority: 1, retry: steady(25, 1000) });
    let claimed = await queue.claim({ count: 50 });
    expect(await written(queue, () => failAll(queue, claimed))).toBeLessThanOrEqual(50 + 10);
    clock.set(T0 + 1001);
    claimed = await queue.claim({ count: 50 });
    expect(await written(queue, () => failAll(queue, claimed))).toBeLessThanOrEqual(10);
  });

  it('are none for reads, an idle alarm, empty claims and refusals', async () => {
    const queue = await countedQueue();
    const id = await queue.add();
    await queue.claim({ worker_id: 'w1' });
    const count = await written(queue, async () => {
      await queue.stats();
      await queue.listAll();
      await queue.get(id);
      await queue.claim();
      await queue.api.events({ limit: 10 });
      await queue.api.deadLetterList({ limit: 10 });
      await queue.api.config();
      await queue.api.settle({ kind: 'completed', job_id: id, attempt: 7 });
      await queue.api.activate(id);
      await queue.api.heartbeat({ worker_id: 'somebody-else' });
      await queue.api.resume();
    });
    expect(count).toBe(0);
  });

  it('are none for an object that wakes up and has its alarm', async () => {
    const queue = new TestQueue();
    await queue.enqueue({}, { scheduledAt: T0 + 50_000 });
    await queue.claim({ visibility_timeout_ms: 9000 });
    await queue.alarm();
    await queue.evict();
    const changes = async () => {
      await queue.stats();
      const [row] = await queue.rows<{ n: number }>('SELECT total_changes() AS n');
      return row?.n;
    };
    expect(await changes()).toBe(0);
  });

  it('are one for each lease that a heartbeat extends, however many jobs it holds', async () => {
    const queue = await countedQueue();
    await queue.enqueue(...many(50));
    await queue.claim({ count: 25, worker_id: 'w1' });
    await queue.claim({ count: 25, worker_id: 'w1' });
    clock.set(T0 + 1000);
    expect(await written(queue, () => queue.api.heartbeat({ worker_id: 'w1' }))).toBe(2);
  });

  it('do not grow with the workers that came and went: free lease rows are reused and trimmed', async () => {
    const queue = await countedQueue();
    for (let round = 0; round < 3; round++) {
      await queue.enqueue(...many(30));
      const ids: string[] = [];
      for (let n = 0; n < 30; n++) ids.push((await queue.claim())[0]?.id as string);
      for (const id of ids) await queue.ack(id);
    }
    expect((await queue.rows('SELECT id FROM leases')).length).toBeLessThanOrEqual(31);
  });
});

describe('rows read by a claim', () => {
  /** Fills the table directly: this is about reading. */
  async function fill(queue: TestQueue, n: number, due: { priority: number; at: number } | null): Promise<void> {
    await queue.inside(({ sql, q }) => {
      sql.exec(
        `WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i + 1 < ?1)
         INSERT INTO jobs (key, state, type, priority, due_at, attempt, claims, created_at, enqueued_at, body)
         SELECT ?2 + i, 0, 'test.job', ?3, ?4 + i, 0, 0, ?5, ?5, '{"type":"test.job","args":[],"meta":{}}' FROM n`,
        n,
        q.store.nextSequence + (due ? 2 ** 41 : 0),
        due?.priority ?? 0,
        due?.at ?? null,
        T0,
      );
      q.load();
    });
  }

  async function readPerClaim(queue: TestQueue, claims: number): Promise<number> {
    await queue.claim();
    await take(queue);
    for (let n = 0; n < claims; n++) expect(await queue.claim()).toHaveLength(1);
    return (await take(queue)).read / claims;
  }

  it.each([
    ['in the line', null],
    ['by priority', { priority: 3, at: T0 - 1e6 }],
  ])('do not grow with the backlog of jobs that wait %s', async (_, due) => {
    const read: number[] = [];
    for (const backlog of [100, 10_000, 100_000]) {
      const queue = await countedQueue();
      await fill(queue, backlog, due);
      read.push(await readPerClaim(queue, 20));
    }
    expect(Math.max(...read)).toBeLessThan(40);
    expect(Math.max(...read) - Math.min(...read)).toBeLessThanOrEqual(5);
  });

  it('do not grow with the backlog of jobs that wait for another attempt, in blocks that come by turns', async () => {
    const read: number[] = [];
    for (const backlog of [1_000, 100_000]) {
      const queue = await countedQueue();
      const size = 100;
      await queue.inside(({ sql }) => {
        const blocks = backlog / size;
        for (let block = 0; block < blocks; block++) {
          const rows = Array.from({ length: size }, (_, n): JobRow => {
            const key = 1_000 + block * size + n;
            const due_at = T0 - backlog + n * blocks + block;
            const job: BlockJob = {
              key,
              type: 't',
              at: T0,
              body: '{"type":"t","args":[]}',
              alias: null,
              priority: 0,
              due_at,
            };
            return { ...rowOf(job), attempt: 1, claims: 1, history: '{"started_at":1}' };
          });
          const { heads, data } = encode(rows);
          const insert = 'INSERT INTO retry_blocks (sequence, heads, data) VALUES (?, ?, ?)';
          sql.exec(insert, 1_000 + (block + 1) * size, heads, data).toArray();
        }
      });
      await queue.evict();
      await queue.startCounting();
      expect(await queue.claim()).toMatchObject([{ attempt: 2 }]);
      expect((await take(queue)).read).toBeLessThan(backlog / size + 100);
      read.push(await readPerClaim(queue, 20));
    }
    expect(Math.max(...read)).toBeLessThan(20);
    expect(Math.max(...read) - Math.min(...read)).toBeLessThanOrEqual(5);
  });

  it('do not grow with the jobs that became available in the same millisecond', async () => {
    const queue = await countedQueue();
    for (let n = 0; n < 8; n++) await queue.enqueue(...many(250, { scheduledAt: T0 + 1000 }));
    clock.set(T0 + 1000);
    for (let n = 0; n < 10; n++) await queue.claim({ count: 100 });
    expect(await readPerClaim(queue, 20)).toBeLessThan(40);
  });

  it('include each body of a large claim once, until its jobs have completed', async () => {
    const queue = await countedQueue();
    for (let n = 0; n < 10; n++) await queue.enqueue(...many(4, { body: { args: ['x'.repeat(100_000)] } }));
    await queue.evict();
    await queue.startCounting();
    const claimed = await queue.claim({ count: 100 });
    expect(claimed.length).toBeGreaterThan(35);
    await completeAll(queue, claimed);
    const blocks = claimed.length / 2;
    // What is known of the jobs of a block, and their bodies; it goes, and three rows for its chunk of the archive.
    expect((await take(queue)).read).toBeLessThan(6 * blocks + 10);
  });

  it('do not grow with jobs that are scheduled for later, at any priority', async () => {
    const queue = await countedQueue();
    await queue.enqueue(...many(30));
    for (const priority of [9, 0, -9]) await fill(queue, 10_000, { priority, at: T0 + DAY });
    expect(await readPerClaim(queue, 20)).toBeLessThan(60);
  });

  it.each([
    ['the line', {}],
    ['the due index', { priority: 2 }],
  ])('do not grow with the jobs that run, taken from %s', async (_, change) => {
    const queue = await countedQueue();
    for (let n = 0; n < 5; n++) await queue.enqueue(...many(200, change));
    for (let n = 0; n < 9; n++) await queue.claim({ count: 100 });
    expect(await readPerClaim(queue, 20)).toBeLessThan(40);
  });

  it('are few for an alarm of a queue with a large archive and nothing to prune', async () => {
    const queue = await countedQueue();
    await queue.inside(({ sql }) => {
      sql.exec(
        `WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 5000)
         INSERT INTO archive (lo, hi, jobs, ended_at, data) SELECT 100000 + i, 100000 + i, 1, ?, '[]' FROM n`,
        T0,
      );
    });
    await take(queue);
    await queue.inside(({ instance }) => instance.alarm());
    expect((await take(queue)).read).toBeLessThan(80);
  });
});
