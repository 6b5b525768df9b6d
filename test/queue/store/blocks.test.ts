/** Jobs by the block: what is over stays over whatever is forgotten of it, and all others are there, in order. */
import { runInDurableObject } from 'cloudflare:test';
import { env } from 'cloudflare:workers';
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { QUEUE, Schema } from '../../../src/durable/schema';
import { unwrap } from '../../../src/job/errors';
import { RANK_BIT } from '../../../src/job/ids';
import { ArchiveBuffer } from '../../../src/queue/store/archive-buffer';
import { BlockCache } from '../../../src/queue/store/block-cache';
import { BlockTable } from '../../../src/queue/store/block-table';
import { DueBlocks } from '../../../src/queue/store/blocks';
import { afterAllAt, compare, type Position, START } from '../../../src/queue/store/due-index';
import { clock, DAY, T0 } from '../../support/clock';
import { histories } from '../../support/long';
import { type JobChange, refusal, steady, TestQueue } from '../../support/queue';

clock.startAtT0();

const many = (n: number, change: JobChange = {}): JobChange[] => Array<JobChange>(n).fill(change);

/** Blocks that are stored. */
const blocks = (queue: TestQueue, table = 'blocks') =>
  queue.rows<{ first: number; span: number; jobs: number; gone: string | null }>(
    `SELECT first, span, jobs, gone FROM ${table}`,
  );

/** Enqueues these, all together; the first `taken` of them are claimed, and run for a long time. @returns their ids */
type Arrive = (queue: TestQueue, jobs: JobChange[], taken: number) => Promise<string[]>;

const inBlock =
  (table: string, change: JobChange): Arrive =>
  async (queue, jobs, taken) => {
    const ids = (await queue.enqueue(...jobs.map((job) => ({ ...job, ...change })))).map(({ id }) => id);
    expect(await blocks(queue, table)).toMatchObject([{ jobs: jobs.length }]);
    clock.set(T0 + 5);
    await queue.claim({ count: taken, visibility_timeout_ms: 10 * DAY });
    return ids;
  };

/** Each alone, while somebody waits for it. */
const inLeases: Arrive = async (queue, jobs, taken) => {
  clock.set(T0 + 5);
  // Then it exists.
  await queue.api.pause();
  await queue.api.resume();
  const ids: string[] = [];
  for (const job of jobs.slice(0, taken)) ids.push(await queue.addTaken(job, { visibility_timeout_ms: 10 * DAY }));
  expect(await queue.rows('SELECT id FROM leases WHERE job IS NOT NULL')).toHaveLength(taken);
  expect(await blocks(queue)).toEqual([]);
  for (const job of jobs.slice(taken)) ids.push(await queue.add(job));
  return ids;
};

/** They have failed together, and wait again. */
const inRetryBlock: Arrive = async (queue, jobs, taken) => {
  const ids = (await queue.enqueue(...jobs.map((job) => ({ retry: steady(9, 5), ...job })))).map(({ id }) => id);
  await queue.claim({ count: jobs.length });
  await queue.inside(({ instance }) =>
    Promise.all(ids.map((job_id) => instance.settle({ kind: 'failed', job_id, error: { message: 'failed' } }))),
  );
  expect(await queue.rows('SELECT block FROM retry_blocks')).toHaveLength(1);
  clock.set(T0 + 5);
  await queue.claim({ count: taken, visibility_timeout_ms: 10 * DAY });
  return ids;
};

describe.each<[string, Arrive]>([
  ['a block of the line', inBlock('blocks', {})],
  ['a block of the due index', inBlock('due_blocks', { scheduledAt: T0 + 5 })],
  ['the row of its lease', inLeases],
  ['a retry block', inRetryBlock],
])('a job of %s whose last trace is deleted', (_, arrive) => {
  const ends: [string, (queue: TestQueue, id: string) => Promise<unknown>][] = [
    [
      'completed and kept for no time',
      async (queue, id) => {
        await queue.api.configure({ retention: { completed: 0 } });
        await queue.ack(id);
      },
    ],
    [
      'completed and pruned',
      async (queue, id) => {
        await queue.api.configure({ retention: { completed: 1000 } });
        await queue.ack(id);
        await queue.passTo(T0 + 60_000);
      },
    ],
    [
      'completed and deleted',
      async (queue, id) => {
        await queue.ack(id);
        unwrap(await queue.api.bulk({ action: 'delete', ids: [id], atomic: false }));
      },
    ],
    [
      'failed, retried, completed and kept for no time',
      async (queue, id) => {
        await queue.api.configure({ retention: { completed: 0 } });
        await queue.nack(id);
        clock.set(T0 + 1005);
        expect(await queue.claim({ types: ['one'] })).toMatchObject([{ id }]);
        await queue.ack(id);
      },
    ],
    [
      'cancelled and deleted',
      async (queue, id) => {
        await queue.cancel(id);
        unwrap(await queue.api.bulk({ action: 'delete', ids: [id], atomic: false }));
      },
    ],
    [
      'purged',
      async (queue, id) => {
        await queue.nack(id);
        unwrap(await queue.api.bulk({ action: 'purge', ids: [id], atomic: false }));
      },
    ],
  ];

  it.each(ends)('stays over after the object has lost its memory: %s', async (_, end) => {
    const queue = new TestQueue();
    // Those around it run under the same lease, or wait.
    const jobs = [{ type: 'a' }, { type: 'one', retry: steady(3, 5) }, { type: 'b' }, { type: 'c' }];
    const [first, id, third, last] = (await arrive(queue, jobs, 3)) as [string, string, string, string];
    await end(queue, id);
    const counts = { active: 2, available: 1 };
    expect(await queue.counts()).toEqual(counts);
    await queue.evict();
    expect(await queue.state(id)).toBe('404');
    expect(await queue.counts()).toEqual(counts);
    expect((await queue.listAll()).map((job) => job.id)).toEqual([last, third, first]);
    expect(await queue.claimAll()).toEqual([last]);
    for (const other of [first, third, last]) await queue.ack(other);
    await queue.evict();
    expect(await queue.claimAll()).toEqual([]);
    expect(refusal(await queue.api.settle({ kind: 'completed', job_id: id }))).toMatchObject({ status: 404 });
  });

  it('does not come back when the lease that named it, and others that were given out, cannot be read', async () => {
    const queue = new TestQueue();
    await queue.api.configure({ retention: { completed: 0 } });
    const ids = await arrive(queue, many(5), 4);
    await queue.ack(ids[1] as string);
    await queue.api.configure({ retention: { completed: DAY } });
    await queue.ack(ids[2] as string);
    await queue.inside(({ sql }) => void sql.exec("UPDATE leases SET data = '{'"));
    await queue.evict();
    expect(await queue.counts()).toEqual({ available: 3, completed: 1 });
    expect(await queue.claimAll()).toEqual([ids[0], ids[3], ids[4]]);
  });
});

describe('a block', () => {
  it('goes when its jobs are all over, and its numbers are not given out again', async () => {
    const queue = new TestQueue();
    const big = { body: { args: ['x'.repeat(200)] } };
    const ids = (await queue.enqueue(...many(100, big))).map(({ id }) => id);
    expect(await blocks(queue)).toMatchObject([{ span: 100, jobs: 100, gone: null }]);
    unwrap(await queue.api.bulk({ action: 'purge', ids: ids.slice(1), atomic: false }));
    expect(await blocks(queue)).toMatchObject([{ span: 100, jobs: 1 }]);
    unwrap(await queue.api.bulk({ action: 'purge', ids: ids.slice(0, 1), atomic: false }));
    expect(await blocks(queue)).toEqual([]);
    await queue.evict();
    expect((await queue.add()) > (ids.at(-1) as string)).toBe(true);
    expect(await queue.rows('SELECT first FROM blocks')).toEqual([{ first: 101 }]);
  });

  it('takes in what arrives alone while it is small, and leaves room for what stands elsewhere', async () => {
    const queue = new TestQueue();
    const ids: string[] = [];
    for (let n = 0; n < 30; n++) {
      ids.push(await queue.add({ type: `type.${n % 3}`, ...(n % 7 === 3 && { id: chosen(n) }) }));
      if (n % 5 === 1) await queue.add({ priority: -1 });
      if (n % 11 === 5) ids.push(await queue.add({ expiresAt: T0 + DAY }));
      if (n === 17) await queue.evict();
    }
    expect(await blocks(queue)).toHaveLength(1);
    const listed = async () => (await queue.listAll()).filter(({ priority }) => priority === 0).map(({ id }) => id);
    expect(await listed()).toEqual([...ids].reverse());
    await queue.evict();
    expect(await listed()).toEqual([...ids].reverse());
    expect(await queue.counts()).toEqual({ available: 39 });
    expect((await queue.claimAll()).slice(0, ids.length)).toEqual(ids);
  });

  it('is split as its bodies need, and none is larger than a row may be', async () => {
    const queue = new TestQueue();
    await queue.add();
    const sizes = [10, 900_000, 10, 250_000, 100_000, 100_000, 900_000, 900_000];
    const text = 'é"\\😀';
    const jobs = sizes.map((size) => ({ body: { args: [text.repeat(Math.floor(size / text.length / 2))] } }));
    const ids = (await queue.enqueue(...jobs)).map(({ id }) => id);
    const [before] = await queue.claim();
    expect(before).toBeDefined();
    await queue.evict();
    const claimed = await queue.claimAll();
    expect(claimed).toEqual(ids);
    for (const [at, id] of ids.entries()) {
      expect(JSON.parse((await queue.get(id)).body).args).toEqual(jobs[at]?.body.args);
      await queue.ack(id);
    }
    expect(await queue.counts()).toMatchObject({ completed: sizes.length });
  });

  it('stays in memory for a while only when it was written, because where many wait it is read much later', async () => {
    const queue = new TestQueue();
    const job = { body: { args: ['x'.repeat(400)] } };
    for (let n = 0; n < 10; n++) await queue.enqueue(...many(1000, job));
    const bytes = await queue.inside(
      async ({ q }) => (q.store.blocks as unknown as { cache: { bytes: number } }).cache.bytes,
    );
    expect(bytes).toBeLessThan(2.5 * 1024 * 1024);
    await queue.claim({ count: 1000 });
    expect(await queue.counts()).toEqual({ available: 9_000, active: 1_000 });
  });

  it('is read into memory up to a bound, however many there are', async () => {
    const queue = new TestQueue();
    const job = { body: { args: ['x'.repeat(400)] } };
    for (let n = 0; n < 10; n++) {
      await queue.enqueue(...many(1000, job));
      await queue.enqueue(...many(1000, { ...job, type: 'later', scheduledAt: T0 + 5 }));
    }
    clock.set(T0 + 5);
    const most = await queue.inside(async ({ instance, q }) => {
      const cached = () => (q.store.blocks as unknown as { cache: { bytes: number } }).cache.bytes;
      let most = cached();
      q.load();
      for (let n = 0; n < 10; n++) {
        const types = [n % 2 ? 'later' : 'test.job'];
        const jobs = unwrap(await instance.claim({ count: 1000, types }));
        most = Math.max(most, cached());
        await Promise.all(jobs.map(({ record }) => instance.settle({ kind: 'completed', job_id: record.id })));
        most = Math.max(most, cached());
      }
      await instance.list({ limit: 10, filter: { types: ['no.such'] } });
      return Math.max(most, cached());
    });
    expect(most).toBeLessThan(14.5 * 1024 * 1024);
    expect(await queue.counts()).toEqual({ available: 10_000, completed: 10_000 });
  });
});

const chosen = (n: number) => `01962222-bbbb-7ccc-8ddd-${String(n).padStart(12, '0')}`;

type Touch = 'move' | 'complete' | 'vanish' | 'prune';
type Step =
  | { kind: 'add'; jobs: { gap: number; size: number; delay: number; priority: number }[] }
  | { kind: 'touch'; how: Touch; picks: number[] }
  | { kind: 'load' | 'flush' };

const picks = fc.array(fc.nat(200), { maxLength: 6 });
const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 3,
    arbitrary: fc.record({
      kind: fc.constant('add' as const),
      jobs: fc.array(
        fc.record({
          gap: fc.constantFrom(0, 0, 0, 1, 5, 17, 40),
          size: fc.constantFrom(1, 30, 3000, 90_000),
          delay: fc.constantFrom(0, 0, 0, 1, 20),
          priority: fc.constantFrom(0, 0, 0, 0, 5),
        }),
        {
          maxLength: 8,
        },
      ),
    }),
  },
  {
    weight: 4,
    arbitrary: fc.record({
      kind: fc.constant('touch' as const),
      how: fc.constantFrom<Touch>('move', 'complete', 'vanish', 'prune'),
      picks,
    }),
  },
  { weight: 2, arbitrary: fc.record({ kind: fc.constantFrom('load', 'flush' as const) }) },
) as fc.Arbitrary<Step>;

describe.each(['blocks', 'due_blocks'])('the table %s', (name) => {
  const isDue = name === 'due_blocks';
  const lowest = isDue ? RANK_BIT : 0;
  const tableOver = (sql: SqlStorage, archive: ArchiveBuffer) =>
    new (isDue ? DueBlocks : BlockTable)(sql, archive, new BlockCache(), () => undefined);

  it('finds jobs stored after a search found none there, in a new block or in one that grew', async () => {
    await runInDurableObject(env.QUEUES.getByName(`${name}-gap`), (_, { storage }) => {
      const { sql } = storage;
      new Schema(storage, QUEUE).create();
      const cache = new BlockCache();
      const archive = new ArchiveBuffer(sql, () => '{}');
      const table = new (isDue ? DueBlocks : BlockTable)(sql, archive, cache, () => undefined);
      table.load();
      const add = (key: number) => {
        const place = isDue ? { priority: 0, due_at: T0 } : { priority: 0, due_at: null };
        table.add({ key: lowest + key, type: 't', at: T0, body: '{}', alias: null, ...place });
        table.flush();
        // As if many others had been read since.
        cache.clear();
      };
      const found = (...keys: number[]) => keys.filter((key) => table.holds(lowest + key));
      add(1);
      expect(found(2, 3, 60)).toEqual([]);
      for (const key of [2, 3, 40]) add(key);
      expect(found(1, 2, 3, 4, 39, 40, 41, 60)).toEqual([1, 2, 3, 40]);
      add(60);
      expect(found(1, 2, 3, 4, 39, 40, 41, 59, 60, 61)).toEqual([1, 2, 3, 40, 60]);
    });
  });

  it('asks the database once where jobs have rows of their own, and again after what it read was rolled back', async () => {
    await runInDurableObject(env.QUEUES.getByName(`${name}-asked`), (_, { storage }) => {
      new Schema(storage, QUEUE).create();
      let asked = 0;
      const exec = (query: string, ...bindings: SqlStorageValue[]) => {
        if (query.includes('ORDER BY first DESC LIMIT 1')) asked++;
        return storage.sql.exec(query, ...bindings);
      };
      const sql = { exec } as SqlStorage;
      const table = tableOver(sql, new ArchiveBuffer(sql, () => '{}'));
      table.load();
      const place = isDue ? { priority: 0, due_at: T0 } : { priority: 0, due_at: null };
      const keys = Array.from({ length: 20 }, (_, n) => lowest + 1 + n);
      for (const key of keys) table.add({ key, type: 't', at: T0, body: '{}', alias: null, ...place });
      table.flush();
      table.add({
        key: lowest + 2_000,
        type: 't',
        at: T0,
        body: '{"b":1}',
        alias: null,
        ...place,
        due_at: isDue ? T0 + 9 : null,
      });
      table.flush();
      const mark = table.mark();
      expect(() =>
        storage.transactionSync(() => {
          for (const key of keys) table.leave(key);
          table.flush();
          asked = 0;
          expect(keys.filter((key) => table.holds(key))).toEqual([]);
          expect(asked).toBeLessThan(3);
          throw new Error('rolled back');
        }),
      ).toThrow('rolled back');
      table.rollback(mark);
      expect(keys.filter((key) => table.holds(key))).toEqual(keys);
    });
  });

  it('has what a plain map has, in any history of transactions, of which some are rolled back', async () => {
    await runInDurableObject(env.QUEUES.getByName(name), (_, { storage }) => {
      const { sql } = storage;
      new Schema(storage, QUEUE).create();
      const play = (history: { steps: Step[]; fails: boolean }[]) => {
        for (const table of ['jobs', 'archive', name]) sql.exec(`DELETE FROM ${table}`);
        const archive = new ArchiveBuffer(sql, () => '{}');
        const table = tableOver(sql, archive);
        table.load();
        type Place = 'block' | 'own' | 'archive' | 'none';
        type ModelJob = { key: number; body: string; place: Place; priority: number; due_at: number | null };
        let jobs = new Map<number, ModelJob>();
        let next = lowest + 1;
        const run = (step: Step) => {
          if (step.kind === 'load') table.load();
          else if (step.kind === 'flush') table.flush();
          else if (step.kind === 'add') {
            for (const { gap, size, delay, priority } of step.jobs) {
              // Some numbers between are those of jobs that expire, which have rows of their own.
              for (let n = 0; n < gap; n++, next++) if (n % 2 === 0) own(next);
              const job = {
                key: next++,
                type: `t${size}`,
                at: T0 + size,
                body: JSON.stringify({ x: 'y'.repeat(size) }),
                ...(isDue ? { priority, due_at: T0 + delay } : { priority: 0, due_at: null }),
              };
              table.add({ ...job, alias: size === 30 ? chosen(job.key) : null });
              jobs.set(job.key, { ...job, place: 'block' });
            }
          } else if (step.kind === 'touch') for (const pick of step.picks) touch(step.how, pick);
        };
        const own = (key: number) =>
          sql
            .exec(
              `INSERT INTO jobs (key, state, type, priority, attempt, claims, created_at, enqueued_at, body)
               VALUES (?, 0, 't', 0, 1, 1, 0, 0, '{}')`,
              key,
            )
            .toArray();
        const touch = (kind: Touch, pick: number) => {
          const key = [...jobs.keys()][pick % Math.max(1, jobs.size)];
          const job = key === undefined ? undefined : jobs.get(key);
          if (key === undefined || !job) return;
          const set = (place: Place) => jobs.set(key, { ...job, place });
          if (kind === 'move' && job.place === 'block') {
            own(key);
            table.leave(key);
            set('own');
          } else if (kind === 'complete' && (job.place === 'block' || job.place === 'own')) {
            const at: [number, number, number, number] = [T0, T0, T0, T0];
            archive.add({ k: key, t: 't', p: 0, n: 1, c: 1, at }, '{}', undefined);
            if (job.place === 'block') table.leave(key);
            else sql.exec('DELETE FROM jobs WHERE key = ?', key).toArray();
            set('archive');
          } else if (kind === 'vanish' && (job.place === 'block' || job.place === 'own')) {
            sql.exec('DELETE FROM jobs WHERE key = ?', key).toArray();
            table.vanish([key]);
            set('none');
          } else if (kind === 'prune' && job.place === 'archive' && !archive.find(key)) {
            const chunks = sql.exec<{ chunk: number; keys: string }>(
              "SELECT chunk, (SELECT json_group_array(value ->> '$.k') FROM json_each(data)) AS keys FROM archive",
            );
            const chunk = chunks.toArray().find(({ keys }) => (JSON.parse(keys) as number[]).includes(key));
            const keys = JSON.parse(chunk?.keys ?? '[]') as number[];
            sql.exec('DELETE FROM archive WHERE chunk = ?', chunk?.chunk ?? 0).toArray();
            table.vanish(keys);
            for (const gone of keys) jobs.set(gone, { ...(jobs.get(gone) as ModelJob), place: 'none' });
          }
        };
        const agree = () => {
          const here = [...jobs].filter(([, { place }]) => place === 'block');
          expect(table.count()).toBe(here.length);
          const told = ({ key, body, priority, due_at }: Omit<ModelJob, 'place'>) => [key, body, priority, due_at];
          expect([...table.after(lowest)].map(told)).toEqual(here.map(([, job]) => told(job)));
          const middle = lowest + Math.floor((next - lowest) / 2);
          if (table instanceof DueBlocks) agreeInTurn(table, middle);
          const keys = here.map(([key]) => key);
          expect([...table.pages(middle, false, 3)].flat()).toEqual(keys.filter((key) => key < middle).reverse());
          expect([...table.pages(middle, true, 3)].flat()).toEqual(keys.filter((key) => key > middle));
          for (const [key, { place, body }] of jobs) {
            expect(table.holds(key)).toBe(place === 'block');
            expect(table.row(key)?.body).toBe(place === 'block' ? body : undefined);
          }
          expect(table.holds(next)).toBe(false);
          expect(table.highest()).toBeLessThan(next);
        };
        const agreeInTurn = (table: DueBlocks, middle: number) => {
          const here = [...jobs.values()].filter(({ place }) => place === 'block');
          const before = (a: Position, b: Position) => compare(a, b) < 0;
          const moments = (job: ModelJob) => job.due_at as number;
          expect([...table.priorities()].sort()).toEqual([...new Set(here.map(({ priority }) => priority))].sort());
          for (const priority of [0, 5]) {
            const inTurn = here
              .filter((job) => job.priority === priority)
              .map((job) => ({ at: moments(job), attempt: 0, key: job.key, body: job.body }))
              .sort(compare);
            const positions = [START, { at: T0, attempt: 0, key: middle }, { at: T0, attempt: 2, key: middle }];
            const first = inTurn[Math.floor(inTurn.length / 3)];
            if (first) positions.push(first, { ...first, key: first.key - 1 }, afterAllAt(first.at));
            for (const after of positions) {
              for (const until of [T0, T0 + 5, undefined]) {
                const expected = inTurn.filter((job) => before(after, job) && job.at <= (until ?? job.at));
                const read = [...table.inTurn(priority, after, until)];
                expect(read.map(({ key, body }) => [key, body])).toEqual(expected.map(({ key, body }) => [key, body]));
                expect([...table.inTurn(priority, after, until, false)].map(({ key }) => key)).toEqual(
                  expected.map(({ key }) => key),
                );
              }
            }
            for (const at of [T0 - 1, T0, T0 + 5]) {
              const later = inTurn.filter((job) => job.at > at);
              expect(table.nextDue(priority, at)).toBe(later[0]?.at);
              expect(table.countBetween(priority, at)).toBe(later.length);
              expect(table.countBetween(priority, undefined, at)).toBe(inTurn.length - later.length);
            }
          }
          for (const at of [T0, T0 + 5]) {
            const due = here.filter((job) => moments(job) <= at).map(({ key }) => key);
            const later = here.filter((job) => moments(job) > at).map(({ key }) => key);
            expect([...table.pagesOf(middle, true, 3, { until: at })].flat()).toEqual(due.filter((k) => k > middle));
            expect([...table.pagesOf(next, false, 3, { after: at })].flat()).toEqual(later.reverse());
          }
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
            table.flush();
            archive.flush((at) => at);
            table.flush();
          }
        }
        table.flush();
        archive.flush((at) => at);
        const fresh = tableOver(sql, new ArchiveBuffer(sql, () => '{}'));
        fresh.load();
        expect([...fresh.after(lowest)].map(({ key }) => key)).toEqual([...table.after(lowest)].map(({ key }) => key));
        agree();
        // A block is there as long as a job of it is; the newest one of the line may wait for others.
        const stored = sql
          .exec<{ first: number; span: number }>(`SELECT first, span FROM ${name} ORDER BY first`)
          .toArray();
        for (const { first, span } of isDue ? stored : stored.slice(0, -1)) {
          const left = [...jobs].filter(([key, { place }]) => place === 'block' && key >= first && key < first + span);
          expect(left.length).toBeGreaterThan(0);
        }
      };
      const transaction = fc.record({ steps: fc.array(step, { maxLength: 6 }), fails: fc.boolean() });
      fc.assert(fc.property(fc.array(transaction, { maxLength: 12 }), play), { numRuns: histories(isDue ? 100 : 200) });
    });
  });
});
