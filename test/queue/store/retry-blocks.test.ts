/** Jobs that fail together wait together, each for its own moment, and nothing but the rows written tells them from others. */
import { runInDurableObject } from 'cloudflare:test';
import { env } from 'cloudflare:workers';
import * as fc from 'fast-check';
import { v7 as uuidv7 } from 'uuid';
import { describe, expect, it } from 'vitest';
import { QUEUE, Schema } from '../../../src/durable/schema';
import { unwrap } from '../../../src/job/errors';
import { decodeId, RANK_BIT, sequenceOf } from '../../../src/job/ids';
import { ArchiveBuffer } from '../../../src/queue/store/archive-buffer';
import { compare } from '../../../src/queue/store/due-index';
import { type JobRow, STATE } from '../../../src/queue/store/job-row';
import type { QueueMemory } from '../../../src/queue/store/memory';
import { writeRow } from '../../../src/queue/store/own-rows';
import { RetryBlocks } from '../../../src/queue/store/retry-blocks';
import { answers } from '../../support/answers';
import { clock, DAY, T0 } from '../../support/clock';
import { failOnce } from '../../support/faults';
import { histories, isLong } from '../../support/long';
import { type JobChange, newJob, steady, TestQueue } from '../../support/queue';

clock.startAtT0();

const many = (n: number, change: JobChange = {}): JobChange[] => Array<JobChange>(n).fill(change);

/** A policy by which the first retry comes so long after the failure. */
const retried = (ms: number, change: JobChange = {}): JobChange => ({ retry: steady(4, ms), ...change });

/** Blocks that are stored. */
const blocks = (queue: TestQueue) =>
  queue.rows<{ jobs: number; gone: string | null }>(
    'SELECT json_array_length(heads) AS jobs, gone FROM retry_blocks ORDER BY block',
  );

const ownRows = async (queue: TestQueue) => (await queue.rows('SELECT key FROM jobs')).length;

const fail = (job_id: string, rest: object = {}) =>
  ({ kind: 'failed', job_id, error: { message: `${job_id.length} failed` }, ...rest }) as const;

/** These fail, in one transaction. */
const failTogether = (queue: TestQueue, ids: readonly string[]) =>
  queue.inside(({ instance }) => Promise.all(ids.map((job_id) => instance.settle(fail(job_id)))));

const failApart = async (queue: TestQueue, ids: readonly string[]) => {
  for (const job_id of ids) unwrap(await queue.api.settle(fail(job_id)));
};

const JOBS: JobChange[] = [
  ...many(4, retried(1000, { type: 'a' })),
  ...[1000, 1500, 700, 1000].map((ms) => retried(ms, { type: 'b', body: { args: [ms === 700 ? 'needle' : ms] } })),
  retried(1000, { type: 'b', id: '01962222-bbbb-7ccc-8ddd-000000000001' }),
  retried(1000, { expiresAt: T0 + DAY }),
  ...many(3, retried(900, { priority: 4 })),
  retried(900, { scheduledAt: T0 + 1, priority: 4, type: 'b' }),
  ...many(3, retried(2000, { body: { meta: { text: 'ü€😀"\\' } } })),
  retried(1000, { limit: { key: 'k', limits: { concurrency: 9 }, on_limit: 'wait' } }),
  ...many(2, retried(1000, { type: 'b', priority: -3 })),
];

type Fail = typeof failApart;

/** What happens to the jobs, by their places. */
const STEPS: [string, (queue: TestQueue, id: (place: number) => string, fails: Fail) => Promise<unknown>][] = [
  ['nothing', async () => undefined],
  ['all but two are claimed', (queue) => queue.claim({ count: JOBS.length - 2, visibility_timeout_ms: 5000 })],
  ['they fail', async (queue, _, fails) => fails(queue, await running(queue))],
  ['one is cancelled before its time', (queue, id) => queue.cancel(id(5))],
  [
    'others are to run earlier, later, at another priority, or must start by a moment',
    async (queue, id) => {
      for (const [place, change] of [
        [0, { scheduled_at: T0 + 500 }],
        [1, { scheduled_at: T0 + 3000 }],
        [2, { priority: 9 }],
        [3, { expires_at: T0 + 1400 }],
        [14, { scheduled_at: null }],
      ] as const) {
        unwrap(await queue.api.patch({ id: id(place), ...change }));
      }
    },
  ],
  [
    'two are removed',
    async (queue, id) => unwrap(await queue.api.bulk({ action: 'purge', ids: [id(4), id(11)], atomic: false })),
  ],
  ['the first moment is near', async () => clock.set(T0 + 700)],
  ['some moments are there', async () => clock.set(T0 + 1002)],
  ['some are claimed', (queue) => queue.claim({ count: 9, visibility_timeout_ms: 700 })],
  [
    'of these one completes, two fail, two go back',
    async (queue, _, fails) => {
      const [first, second, third, fourth, fifth] = await running(queue);
      await queue.ack(first as string, { result: '1' });
      await fails(queue, [second as string, third as string]);
      await queue.nack(fourth as string, {}, { requeue: true });
      unwrap(await queue.api.settle({ kind: 'released', job_id: fifth as string, release: { attempt: 'unused' } }));
    },
  ],
  ['one is too late', (queue) => queue.jumpTo(T0 + 1450)],
  ['the leases end', (queue) => queue.jumpTo(T0 + 1703)],
  ['more moments are there', async () => clock.set(T0 + 2500)],
  [
    'those that are there fail again',
    async (queue, _, fails) =>
      fails(
        queue,
        (await queue.claim({ count: 100 })).map(({ id }) => id),
      ),
  ],
  [
    'those of one type are removed',
    async (queue) =>
      unwrap(await queue.api.operate({ id: uuidv7(), action: 'purge', filter: { types: ['b'] } }, 20_000)),
  ],
  ['all moments are there', async () => clock.set(T0 + 9000)],
  [
    'all are claimed',
    async (queue) => {
      for (let n = 0; n < 15; n++) await queue.claim({ count: 2, visibility_timeout_ms: DAY });
    },
  ],
  [
    'all complete',
    async (queue) => {
      for (const id of await running(queue)) await queue.ack(id);
    },
  ],
  ['all is pruned', (queue) => queue.passTo(T0 + 60 * DAY)],
];

/** Ids of the jobs that run, in the order of their making. */
async function running(queue: TestQueue): Promise<string[]> {
  const jobs = (await queue.listAll()).filter(({ state }) => state === 'active');
  return jobs.map(({ id }) => id).reverse();
}

describe('jobs that fail together', () => {
  it.each([
    ...(isLong ? [['as long as the object lives', false] as const] : []),
    ['whenever the object has lost its memory', true] as const,
  ])('are reported as those that failed one by one, %s', async (_, evicted) => {
    const [together, apart] = [new TestQueue(), new TestQueue()];
    const idsOf = async (queue: TestQueue) => (await queue.enqueue(...JOBS)).map(({ id }) => id);
    const both = [
      [together, await idsOf(together), failTogether],
      [apart, await idsOf(apart), failApart],
    ] as const;
    clock.set(T0 + 1);
    const most: number[] = [];
    for (const [name, step] of STEPS) {
      const told: string[] = [];
      for (const [queue, ids, fails] of both) {
        const now = Date.now();
        await step(queue, (place) => ids[place] as string, fails as Fail);
        if (evicted) await queue.evict();
        told.push(await answers(queue, ids));
        if (queue === together) clock.set(now);
      }
      expect(JSON.parse(told[0] as string), name).toEqual(JSON.parse(told[1] as string));
      most.push(...(await blocks(together)).map(({ jobs }) => jobs));
    }
    expect(Math.max(...most)).toBe(15);
    expect(await blocks(apart)).toEqual([]);
    expect(await blocks(together)).toEqual([]);
    expect(await ownRows(together)).toBe(0);
    expect(await together.armedAt()).toBeNull();
  });
});

describe('a retry block', () => {
  it('gives each job at its own moment, in the order of the due index, between those of other places', async () => {
    const queue = new TestQueue();
    const scheduled = await queue.add({ scheduledAt: T0 + 300 });
    const together = (await queue.enqueue(...many(2, { scheduledAt: T0 + 300 }))).map(({ id }) => id);
    const waits = [300, 100, 200, 300, 500].map((ms) => retried(ms));
    const ids = (await queue.enqueue(...waits, retried(300), retried(400, { priority: 2 }))).map(({ id }) => id);
    await queue.claim({ count: 7 });
    await failTogether(queue, ids.slice(0, 5).concat(ids.slice(6)));
    await queue.nack(ids[5] as string);
    expect(await blocks(queue)).toEqual([{ jobs: 5, gone: null }]);
    await queue.evict();
    const [first, second, third, fourth, fifth, alone, prior] = ids as [
      string,
      string,
      string,
      string,
      string,
      string,
      string,
    ];
    for (const [at, id] of [
      [T0 + 100, second],
      [T0 + 200, third],
    ] as const) {
      expect(await queue.armedAt()).toBe(at);
      expect((await queue.get(id)).due_at).toBe(at);
      clock.set(at - 1);
      expect(await queue.claimAll()).toEqual([]);
      clock.set(at);
      await queue.alarm();
      expect(await queue.claimAll()).toEqual([id]);
    }
    clock.set(T0 + 300);
    const line = await queue.add();
    const inOrder = [scheduled, ...together, first, fourth, alone, line];
    expect(await queue.claim({ count: 3 })).toMatchObject(inOrder.slice(0, 3).map((id) => ({ id })));
    await queue.evict();
    clock.set(T0 + 400);
    expect(await queue.claimAll()).toEqual([prior, ...inOrder.slice(3)]);
    clock.set(T0 + 500);
    expect(await queue.claimAll()).toEqual([fifth]);
  });

  it('has jobs that were put to sleep, given back, or lost with their leases, as well', async () => {
    const queue = new TestQueue();
    const ids = (await queue.enqueue(...many(8, retried(1000)))).map(({ id }) => id);
    await queue.claim({ count: 8, visibility_timeout_ms: 2000 });
    await queue.inside(({ instance }) =>
      Promise.all(
        ids
          .slice(0, 4)
          .map((job_id, n) =>
            n < 2
              ? instance.settle({ kind: 'snoozed', job_id, snooze: { in: 1000 * (n + 1) } } as never)
              : instance.settle({ kind: 'released', job_id, release: { attempt: 'unused' } }),
          ),
      ),
    );
    expect(await blocks(queue)).toEqual([{ jobs: 3, gone: null }]);
    expect(await ownRows(queue)).toBe(1);
    await queue.evict();
    expect(await queue.counts()).toEqual({ active: 4, available: 2, scheduled: 2 });
    await queue.jumpTo(T0 + 2000);
    expect(await blocks(queue)).toEqual([
      { jobs: 3, gone: null },
      { jobs: 3, gone: null },
    ]);
    await queue.evict();
    expect(await queue.counts()).toEqual({ available: 8 });
    const attempts = new Map((await queue.claim({ count: 8 })).map(({ id, attempt }) => [id, attempt]));
    expect(ids.map((id) => attempts.get(id))).toEqual([1, 1, 1, 1, 2, 2, 2, 2]);
  });

  it('is written once for all that fail, again for those that fail again, and goes with its last job', async () => {
    const queue = new TestQueue();
    const ids = (await queue.enqueue(...many(6, retried(1000)))).map(({ id }) => id);
    await queue.claim({ count: 6 });
    await failTogether(queue, ids);
    clock.set(T0 + 1000);
    await queue.claim({ count: 6 });
    await failTogether(queue, ids.slice(0, 3));
    await queue.evict();
    expect(await blocks(queue)).toMatchObject([{ jobs: 5 }, { jobs: 2 }]);
    expect(await queue.counts()).toEqual({ active: 3, retryable: 3 });
    for (const id of ids.slice(3)) await queue.ack(id);
    expect(await blocks(queue)).toMatchObject([{ jobs: 2 }]);
    clock.set(T0 + 2000);
    expect(await queue.claim({ count: 6 })).toMatchObject(many(3).map(() => ({ attempt: 3 })));
    // What fails alone has a row of its own.
    await queue.nack(ids[0] as string);
    expect(await ownRows(queue)).toBe(1);
    for (const id of ids.slice(1, 3)) await queue.ack(id);
    expect(await blocks(queue)).toEqual([]);
    expect((await queue.get(ids[0] as string)).history.errors).toHaveLength(3);
    await queue.evict();
    expect(await queue.counts()).toEqual({ completed: 5, retryable: 1 });
  });

  it('does not bring back a job that was to run earlier than it says, and has completed', async () => {
    const queue = new TestQueue();
    const ids = (await queue.enqueue(...many(5, retried(DAY)))).map(({ id }) => id);
    await queue.claim({ count: 5 });
    await failTogether(queue, ids);
    const [, second, third, ...others] = ids as [string, string, string, ...string[]];
    for (const id of [second, third]) unwrap(await queue.api.patch({ id, scheduled_at: null }));
    expect(await queue.claimAll()).toEqual([second, third]);
    await queue.ack(second);
    await failTogether(queue, [others[0] as string, third]).catch(() => undefined);
    await queue.evict();
    expect(await queue.counts()).toEqual({ completed: 1, retryable: 4 });
    clock.set(T0 + DAY);
    expect((await queue.claimAll()).sort()).toEqual(ids.filter((id) => id !== second).sort());
  });

  it('forgets nothing that it knew before a transaction failed', async () => {
    const queue = new TestQueue();
    const ids = (await queue.enqueue(...many(6, retried(1000)))).map(({ id }) => id);
    await queue.claim({ count: 6 });
    await queue.inside(({ sql }) => failOnce(sql, /INSERT INTO retry_blocks/));
    await expect(
      queue.inside(({ instance }) => Promise.all(ids.map((id) => instance.settle(fail(id))))),
    ).rejects.toThrow();
    expect(await queue.counts()).toEqual({ active: 6 });
    await failTogether(queue, ids);
    expect(await blocks(queue)).toEqual([{ jobs: 5, gone: null }]);
    await queue.inside(({ sql }) => failOnce(sql, /UPDATE retry_blocks/));
    const purge = () =>
      queue.inside(({ instance }) => instance.bulk({ action: 'purge', ids: ids.slice(1, 3), atomic: false }));
    await expect(purge()).rejects.toThrow();
    expect(await queue.counts()).toEqual({ retryable: 6 });
    unwrap(await purge());
    expect(await blocks(queue)).toEqual([{ jobs: 5, gone: '[0,1]' }]);
    await queue.evict();
    expect(await queue.counts()).toEqual({ retryable: 4 });
  });

  it('keeps what shares a transaction with an operation that fails', async () => {
    const queue = new TestQueue();
    const ids = (await queue.enqueue(...many(5, retried(1000)))).map(({ id }) => id);
    await queue.claim({ count: 5 });
    const [first, second, third, fourth, fifth] = ids as [string, string, string, string, string];
    const outcomes = await queue.inside(({ instance, sql }) => {
      const all = [instance.settle(fail(first)), instance.settle(fail(second)), instance.settle(fail(third))];
      all.push(instance.cancel(second), instance.cancel(fourth), instance.settle(fail(fifth)));
      failOnce(sql, /INSERT INTO jobs/, 2);
      return Promise.allSettled(all);
    });
    expect(outcomes.map(({ status }) => status === 'fulfilled')).toEqual([true, true, true, true, false, true]);
    const states = async () => Promise.all(ids.map((id) => queue.state(id)));
    const expected = ['retryable', 'cancelled', 'retryable', 'active', 'retryable'];
    expect(await states()).toEqual(expected);
    await queue.evict();
    expect(await states()).toEqual(expected);
    clock.set(T0 + 1000);
    expect(await queue.claimAll()).toEqual([first, third, fifth]);
  });

  it('is split as its texts need, and has them all as they were', async () => {
    const queue = new TestQueue();
    const sizes = [10, 900_000, 10, 60_000, 30_000, 30_000, 200];
    const text = 'é"\\😀';
    const jobs = sizes.map((size) =>
      retried(1000, { body: { args: [text.repeat(Math.floor(size / text.length / 2))] } }),
    );
    const ids = (await queue.enqueue(...jobs)).map(({ id }) => id);
    await queue.claim({ count: 7 });
    await queue.inside(({ instance }) =>
      Promise.all(ids.map((job_id, n) => instance.settle(fail(job_id, { error: { message: text.repeat(n) } })))),
    );
    expect((await blocks(queue)).map(({ jobs }) => jobs)).toEqual([3, 2]);
    await queue.evict();
    clock.set(T0 + 1000);
    const claimed = await queue.claim({ count: 7 });
    expect(claimed.map(({ id }) => id)).toEqual(ids);
    // A difference would be too long to print.
    expect(claimed.map(({ body }, n) => body === newJob(jobs[n]).body)).toEqual(ids.map(() => true));
    expect(claimed.map(({ history }) => history.errors?.map(({ message }) => message))).toEqual(
      sizes.map((_, n) => [text.repeat(n)]),
    );
  });

  it.each(['heads', 'data'])('that cannot be read costs its own jobs alone: %s', async (column) => {
    const queue = new TestQueue();
    const ids = (await queue.enqueue(...many(6, retried(1000)))).map(({ id }) => id);
    await queue.claim({ count: 6 });
    await failTogether(queue, ids.slice(0, 3));
    await failTogether(queue, ids.slice(3));
    await queue.inside(({ sql }) => void sql.exec(`UPDATE retry_blocks SET ${column} = 'x' WHERE block = 1`));
    await queue.evict();
    clock.set(T0 + 1000);
    const [first, second, third, ...others] = ids as [string, string, string, ...string[]];
    expect(await queue.claimAll()).toEqual([first, ...others]);
    expect(await queue.counts()).toEqual({ active: 4, discarded: 2 });
    expect((await queue.deadLetters({ limit: 9 } as never)).total).toBe(2);
    for (const id of [second, third]) expect(await queue.state(id)).toBe('discarded');
    expect(await blocks(queue)).toMatchObject([{ jobs: 2 }]);
  });

  it('of which nothing can be read stops no other', async () => {
    const queue = new TestQueue();
    const ids = (await queue.enqueue(...many(4, retried(1000)))).map(({ id }) => id);
    await queue.claim({ count: 4 });
    await failTogether(queue, ids.slice(0, 2));
    await failTogether(queue, ids.slice(2));
    const damaged = '\'[[2,"test.job",x]]\'';
    await queue.inside(
      ({ sql }) => void sql.exec(`UPDATE retry_blocks SET heads = ${damaged}, data = 'x' WHERE block = 1`),
    );
    await queue.evict();
    clock.set(T0 + 1000);
    expect(await queue.claimAll()).toEqual([ids[0], ...ids.slice(2)]);
    // Nothing says that the other one is not running any more, until its lease ends.
    expect(await queue.counts()).toEqual({ active: 4 });
    await queue.passTo(T0 + DAY);
    expect(await queue.counts()).not.toHaveProperty('active');
  });
});

type Step =
  | { kind: 'load' | 'flush' }
  | { kind: 'add'; jobs: { delay: number; priority: number; again: number | null }[] }
  | { kind: 'touch'; how: 'move' | 'complete' | 'early' | 'vanish' | 'prune'; picks: number[] };

const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 1, arbitrary: fc.record({ kind: fc.constantFrom('load' as const, 'flush' as const) }) },
  {
    weight: 3,
    arbitrary: fc.record({
      kind: fc.constant('add' as const),
      jobs: fc.array(fc.record({ delay: fc.nat(9), priority: fc.constantFrom(0, 5), again: fc.option(fc.nat()) }), {
        minLength: 1,
        maxLength: 5,
      }),
    }),
  },
  {
    weight: 4,
    arbitrary: fc.record({
      kind: fc.constant('touch' as const),
      how: fc.constantFrom('move', 'complete', 'early', 'vanish', 'prune'),
      picks: fc.array(fc.nat(), { minLength: 1, maxLength: 3 }),
    }),
  },
);

describe('retry blocks', () => {
  it('are read again only when something that was undone has touched them', async () => {
    const queue = new TestQueue();
    const ids = (await queue.enqueue(...many(4, retried(1000)))).map(({ id }) => id);
    await queue.claim({ count: 4 });
    await failTogether(queue, ids);
    const readAfter = (act: (q: QueueMemory) => void) =>
      queue.inside(({ q, engine }) => {
        const { sql } = q.store as unknown as { sql: { sql: SqlStorage } };
        let read = 0;
        const { exec } = sql.sql;
        sql.sql.exec = ((query: string, ...bindings: unknown[]) => {
          if (query.includes('SELECT block, gone, heads')) read++;
          return exec.call(sql.sql, query, ...bindings);
        }) as SqlStorage['exec'];
        try {
          engine.writeNow(() => {
            act(q);
            q.store.changes++;
            throw new Error('undone');
          });
        } catch {}
        sql.sql.exec = exec;
        return read;
      });
    expect(await readAfter(() => undefined)).toBe(0);
    expect(await queue.counts()).toEqual({ retryable: 4 });
    const key = decodeId(ids[0] as string).key;
    expect(await readAfter((q) => q.store.blocks.vanish([key]))).toBeGreaterThan(0);
    expect(await queue.counts()).toEqual({ retryable: 4 });
  });

  it('have what a plain map has, in any history of transactions, of which some are rolled back', async () => {
    await runInDurableObject(env.QUEUES.getByName('retry-blocks'), (_, { storage }) => {
      const { sql } = storage;
      new Schema(storage, QUEUE).create();
      const play = (history: { steps: Step[]; fails: boolean }[]) => {
        for (const table of ['jobs', 'archive', 'retry_blocks']) sql.exec(`DELETE FROM ${table}`);
        const archive = new ArchiveBuffer(sql, () => '{}');
        let sequence = 1;
        const around = { nextSequence: () => sequence, forget: () => undefined };
        const table = new RetryBlocks(sql, archive, around);
        table.load();
        type Place = 'block' | 'own' | 'archive' | 'none';
        let jobs = new Map<number, { row: JobRow; place: Place }>();
        const add = (key: number, claims: number, delay: number, priority: number) => {
          const row: JobRow = {
            ...{ key, alias: null, state: STATE.waiting, type: `t${priority}`, priority, due_at: T0 + delay },
            ...{ attempt: claims, claims, created_at: T0, enqueued_at: T0, expires_at: null, ended_at: null },
            ...{ body: JSON.stringify({ key, claims }), history: delay % 3 === 0 ? null : '{"a":1}' },
            ...{ limit_key: null, holds_group: null },
          };
          if (table.takes(row)) table.add(row);
          else writeRow(sql, row);
          jobs.set(key, { row, place: table.holds(key) ? 'block' : 'own' });
        };
        const picked = (pick: number) => [...jobs.values()][pick % Math.max(1, jobs.size)];
        const set = (row: JobRow, place: Place) => jobs.set(row.key, { row, place });
        const run = (one: Step) => {
          if (one.kind === 'load') table.load();
          else if (one.kind === 'flush') table.flush();
          else if (one.kind === 'touch') for (const pick of one.picks) touch(one.how, pick);
          else if (one.kind === 'add') {
            for (const { delay, priority, again } of one.jobs) {
              const before = again === null ? undefined : picked(again);
              if (before?.place === 'block') {
                table.leave(before.row.key);
                add(before.row.key, before.row.claims + 1, delay, priority);
              } else add((sequence % 2) * RANK_BIT + sequence++, 1, delay, priority);
            }
          }
        };
        const touch = (how: string, pick: number) => {
          const job = picked(pick);
          if (!job) return;
          const { row, place } = job;
          if (how === 'move' && place === 'block') {
            table.leave(row.key);
            writeRow(sql, row);
            set(row, 'own');
          } else if ((how === 'complete' || how === 'early') && (place === 'block' || place === 'own')) {
            sql.exec('DELETE FROM jobs WHERE key = ?', row.key).toArray();
            const now = (row.due_at as number) + (how === 'early' ? -1 : 1);
            const at: [number, number, number, number] = [T0, T0, T0, now];
            archive.add({ k: row.key, t: 't', p: 0, n: 1, c: 1, at }, '{}', undefined);
            table.completed(row.key, now);
            set(row, 'archive');
          } else if (how === 'vanish' && (place === 'block' || place === 'own')) {
            sql.exec('DELETE FROM jobs WHERE key = ?', row.key).toArray();
            table.vanish([row.key]);
            set(row, 'none');
          } else if (how === 'prune' && place === 'archive' && !archive.find(row.key)) {
            const chunks = sql.exec<{ chunk: number; keys: string }>(
              "SELECT chunk, (SELECT json_group_array(value ->> '$.k') FROM json_each(data)) AS keys FROM archive",
            );
            const chunk = chunks.toArray().find(({ keys }) => (JSON.parse(keys) as number[]).includes(row.key));
            const keys = JSON.parse(chunk?.keys ?? '[]') as number[];
            sql.exec('DELETE FROM archive WHERE chunk = ?', chunk?.chunk ?? 0).toArray();
            table.vanish(keys);
            for (const key of keys) set((jobs.get(key) as { row: JobRow }).row, 'none');
          }
        };
        const agree = () => {
          const here = [...jobs.values()].filter(({ place }) => place === 'block').map(({ row }) => row);
          here.sort((a, b) => sequenceOf(a.key) - sequenceOf(b.key));
          expect(table.count).toBe(here.length);
          expect([...table.after(0)]).toEqual(here);
          const middle = Math.floor(sequence / 2);
          const keys = (rows: JobRow[]) => rows.map(({ key }) => key);
          const below = here.filter(({ key }) => sequenceOf(key) < middle).reverse();
          const above = here.filter(({ key }) => sequenceOf(key) > middle);
          expect([...table.pages(middle, false, 2)].flat()).toEqual(keys(below));
          expect([...table.pages(middle, true, 2)].flat()).toEqual(keys(above));
          expect([...table.keysBetween(RANK_BIT + 2, RANK_BIT + middle)]).toEqual(
            keys(here.filter(({ key }) => key >= RANK_BIT + 2 && key < RANK_BIT + middle)),
          );
          const position = ({ due_at, attempt, key }: JobRow) => ({ at: due_at as number, attempt, key });
          for (const priority of [0, 5]) {
            const inTurn = here.filter((row) => row.priority === priority);
            inTurn.sort((a, b) => compare(position(a), position(b)));
            expect([...table.inTurn(priority)]).toEqual(inTurn);
            const from = inTurn[Math.floor(inTurn.length / 3)];
            if (!from) continue;
            const later = inTurn.filter((row) => compare(position(row), position(from)) > 0);
            const soon = later.filter(({ due_at }) => (due_at as number) <= T0 + 5);
            expect([...table.inTurn(priority, position(from), T0 + 5)]).toEqual(soon);
          }
          const moments = here.map(({ due_at }) => due_at as number).filter((at) => at > T0 + 4);
          expect(table.nextDue(T0 + 4)).toBe(moments.length === 0 ? undefined : Math.min(...moments));
          expect([...table.becoming(T0 + 4, T0 + 7)]).toHaveLength(moments.filter((at) => at <= T0 + 7).length);
          for (const { row, place } of jobs.values()) {
            expect(table.row(row.key)).toEqual(place === 'block' ? row : undefined);
            expect(table.claimsOf(row.key)).toBe(place === 'block' ? row.claims : undefined);
          }
          expect(table.highest()).toBeLessThan(sequence);
        };
        for (const { steps, fails } of history) {
          const before = new Map(jobs);
          const archived = archive.size;
          const mark = table.mark();
          try {
            storage.transactionSync(() => {
              for (const one of steps) run(one);
              if (fails) throw new Error('rolled back');
              agree();
            });
          } catch (error) {
            if (!fails) throw error;
            archive.rollback(archived);
            table.rollback(mark);
            table.load();
            jobs = before;
          }
          agree();
          // Every second transaction is only a part of a larger one.
          if (steps.length % 2 === 0) {
            archive.flush((at) => at);
            table.flush();
          }
        }
        archive.flush((at) => at);
        table.flush();
        agree();
        table.load();
        agree();
        // A block is there as long as a job of it is.
        const left = Map.groupBy(
          sql.exec<{ block: number; key: number }>(
            'SELECT block, value ->> 0 AS key FROM retry_blocks, json_each(heads)',
          ),
          ({ block }) => block,
        );
        for (const entries of left.values()) expect(entries.some(({ key }) => table.holds(key))).toBe(true);
      };
      const transaction = fc.record({ steps: fc.array(step, { maxLength: 6 }), fails: fc.boolean() });
      fc.assert(fc.property(fc.array(transaction, { maxLength: 12 }), play), { numRuns: histories(300) });
    });
  });
});
