/** Invariant "order": priority, then the order of becoming available. */

import { runInDurableObject } from 'cloudflare:test';
import { env } from 'cloudflare:workers';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { QUEUE, Schema } from '../../../src/durable/schema';
import { RANK_BIT, sequenceOf } from '../../../src/job/ids';
import { ArchiveBuffer } from '../../../src/queue/store/archive-buffer';
import { Blocks } from '../../../src/queue/store/blocks';
import { nextDue, readPriorities, selectReady } from '../../../src/queue/store/ranks';
import { Scan } from '../../../src/queue/store/scan';
import { clock, T0 } from '../../support/clock';
import { histories } from '../../support/long';
import { steady, TestQueue } from '../../support/queue';

clock.startAtT0();

describe('jobs are handed out', () => {
  it('first in, first out, whether one by one or in batches', async () => {
    const queue = new TestQueue();
    const ids: string[] = [];
    for (const size of [1, 3, 1, 250]) ids.push(...(await queue.enqueue(...Array(size).fill({}))).map(({ id }) => id));
    expect((await queue.claim()).map(({ id }) => id)).toEqual(ids.slice(0, 1));
    expect(await queue.claimAll()).toEqual(ids.slice(1));
  });

  it('by priority before age', async () => {
    const queue = new TestQueue();
    const jobs = await queue.enqueue(...[0, -100, 7, 0, 100, 7, -1].map((priority) => ({ priority })));
    const order = [4, 2, 5, 0, 3, 6, 1].map((index) => jobs[index]?.id);
    expect(await queue.claimAll()).toEqual(order);
  });

  it('in the order of becoming available, across delayed, retried, requeued and immediate jobs', async () => {
    const queue = new TestQueue();
    const late = await queue.add({ scheduledAt: T0 + 300 });
    const early = await queue.add({ scheduledAt: T0 + 100 });
    const failing = await queue.add({ retry: steady(3, 200) });
    await queue.claim();
    await queue.nack(failing);
    const first = await queue.add();
    clock.set(T0 + 150);
    const second = await queue.add();
    clock.set(T0 + 250);
    const third = await queue.add();
    clock.set(T0 + 400);
    const back = await queue.add();
    await queue.claim({ count: 1 });
    clock.set(T0 + 401);
    await queue.nack(first, {}, { requeue: true });
    clock.set(T0 + 500);
    expect(await queue.claimAll()).toEqual([early, second, failing, third, late, back, first]);
  });

  it('after a restart too when more run than one claim reads past', async () => {
    const queue = new TestQueue();
    for (let n = 0; n < 5; n++) await queue.enqueue(...Array(1000).fill({ priority: 5 }));
    for (let n = 0; n < 5; n++) expect(await queue.claim({ count: 1000 })).toHaveLength(1000);
    const id = await queue.add({ priority: 5 });
    await queue.evict();
    expect(await queue.claimAll()).toEqual([id]);
  });

  it('in the order of their numbers when they became available in the same millisecond', async () => {
    const queue = new TestQueue();
    const a = await queue.add({ scheduledAt: T0 + 50 });
    const b = await queue.add({ scheduledAt: T0 + 50 });
    clock.set(T0 + 50);
    const c = await queue.add();
    expect(await queue.claimAll()).toEqual([a, b, c]);
  });
});

interface ModelJob {
  key: number;
  priority: number;
  at: number;
  attempt: number;
  inLine: boolean;
  state: 'waiting' | 'running';
}

type Action =
  | { kind: 'enqueue'; priority: number; delay: number; count: number }
  | { kind: 'claim'; count: number }
  | { kind: 'release'; pick: number; delay: number }
  | { kind: 'finish'; pick: number }
  | { kind: 'pass'; ms: number }
  | { kind: 'forget' };

const action: fc.Arbitrary<Action> = fc.oneof(
  {
    weight: 5,
    arbitrary: fc.record({
      kind: fc.constant('enqueue' as const),
      priority: fc.constantFrom(0, 0, 0, 5, -5),
      delay: fc.constantFrom(0, 0, 0, 1, 20),
      // So many of the same place arrive together.
      count: fc.constantFrom(1, 1, 2, 5),
    }),
  },
  { weight: 4, arbitrary: fc.record({ kind: fc.constant('claim' as const), count: fc.integer({ min: 1, max: 7 }) }) },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant('release' as const),
      pick: fc.nat(),
      delay: fc.constantFrom(0, 0, 3, 30),
    }),
  },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('finish' as const), pick: fc.nat() }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('pass' as const), ms: fc.integer({ min: 1, max: 25 }) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('forget' as const) }) },
);

const AROUND = { nextSequence: () => 1, forget: () => undefined };

describe('selectReady', () => {
  it('takes what a sorted list would give, in any history of enqueues, claims, releases and lost cursors', async () => {
    await runInDurableObject(env.QUEUES.getByName('ranks'), (_, { storage }) => {
      const { sql } = storage;
      new Schema(storage, QUEUE).create();
      const play = (history: Action[]) => {
        sql.exec('DELETE FROM jobs');
        sql.exec('DELETE FROM blocks');
        sql.exec('DELETE FROM due_blocks');
        sql.exec('DELETE FROM retry_blocks');
        const blocks = new Blocks(sql, new ArchiveBuffer(sql, () => '{}'), AROUND);
        const ranks = { sql, blocks, priorities: new Set<number>() };
        let scan = new Scan();
        const model = new Map<number, ModelJob>();
        let now = 1000;
        let sequence = 1;
        const put = (job: ModelJob) => {
          sql.exec(
            `INSERT OR REPLACE INTO jobs
             (key, state, type, priority, due_at, attempt, claims, created_at, enqueued_at, body)
             VALUES (?, 0, 't', ?, ?, ?, 0, 0, ?, '{}')`,
            job.key,
            job.priority,
            job.inLine ? null : job.at,
            job.attempt,
            job.at,
          );
          model.set(job.key, job);
          if (!job.inLine) entered(job);
        };
        const entered = ({ priority, at, attempt, key }: ModelJob) => {
          ranks.priorities.add(priority);
          scan.entered(priority, { at, attempt, key });
        };
        const enqueue = (priority: number, at: number, isTogether: boolean) => {
          const inLine = priority === 0 && at === now;
          const key = sequence++ + (inLine ? 0 : RANK_BIT);
          const job: ModelJob = { key, priority, at, attempt: 0, inLine, state: 'waiting' };
          // Of the line, one in four has a row of its own, as those that expire have; of the others, those that come alone.
          if (inLine ? key % 4 > 0 : isTogether && key % 7 > 0) {
            const place = { priority, due_at: inLine ? null : at };
            blocks.add({ key, type: 't', at: now, body: '{}', alias: null, ...place });
            model.set(key, job);
            if (!inLine) entered(job);
            if (key % 3 === 0) blocks.flush();
          } else put(job);
        };
        const running = () => [...model.values()].filter(({ state }) => state === 'running');
        for (const step of history) {
          if (step.kind === 'enqueue') {
            for (let n = 0; n < step.count; n++) enqueue(step.priority, now + step.delay, step.count > 1);
          } else if (step.kind === 'claim') {
            const expected = [...model.values()]
              .filter((job) => job.state === 'waiting' && job.at <= now)
              .sort(
                (a, b) =>
                  b.priority - a.priority ||
                  a.at - b.at ||
                  (a.inLine === b.inLine ? a.attempt - b.attempt : 0) ||
                  sequenceOf(a.key) - sequenceOf(b.key),
              );
            const rows = selectReady(ranks, scan, now, step.count, (row) =>
              model.get(row.key)?.state === 'running' ? 'pass' : 'take',
            );
            const taken = rows.map(({ key }) => key);
            // Among retried and immediate jobs of one millisecond no order is promised; between all others it is.
            const rank = (key: number) => {
              const { priority, at } = model.get(key) as ModelJob;
              return [priority, at];
            };
            expect(taken.length).toBe(Math.min(step.count, expected.length));
            expect(taken.map(rank)).toEqual(expected.slice(0, step.count).map(({ key }) => rank(key)));
            expect(new Set(taken).size).toBe(taken.length);
            for (const fresh of [taken.filter((key) => key < RANK_BIT), taken.filter((key) => key >= RANK_BIT)]) {
              const untried = fresh.filter((key) => model.get(key)?.attempt === 0);
              const same = expected.filter(({ key }) => untried.includes(key)).map(({ key }) => key);
              expect(untried).toEqual(same);
            }
            for (const key of taken) (model.get(key) as ModelJob).state = 'running';
          } else if (step.kind === 'release') {
            const job = running()[step.pick % Math.max(1, running().length)];
            if (!job) continue;
            put({ ...job, at: now + step.delay, attempt: job.attempt + 1, inLine: false, state: 'waiting' });
            blocks.leave(job.key);
          } else if (step.kind === 'finish') {
            const job = running()[step.pick % Math.max(1, running().length)];
            if (job) {
              sql.exec('DELETE FROM jobs WHERE key = ?', job.key);
              blocks.vanish([job.key]);
              model.delete(job.key);
            }
          } else if (step.kind === 'pass') now += step.ms;
          else {
            scan = new Scan();
            ranks.priorities = readPriorities(ranks);
            blocks.flush();
            blocks.load();
          }
          const future = [...model.values()].filter((job) => !job.inLine && job.at > now).map(({ at }) => at);
          expect(nextDue(ranks, now)).toBe(future.length === 0 ? undefined : Math.min(...future));
        }
      };
      fc.assert(fc.property(fc.array(action, { maxLength: 60 }), play), { numRuns: histories(150) });
    });
  });
});
