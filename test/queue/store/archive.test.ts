/** Invariant "nothing vanishes", and where completed jobs go: chunks, large results, lists, retention. */

import { runInDurableObject } from 'cloudflare:test';
import { env } from 'cloudflare:workers';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { QUEUE, Schema } from '../../../src/durable/schema';
import { unwrap } from '../../../src/job/errors';
import { decodeId, RANK_BIT } from '../../../src/job/ids';
import {
  archivedBackwards,
  countArchived,
  deleteArchived,
  findArchived,
  forgetArchivedCount,
  pruneArchive,
  SPAN,
} from '../../../src/queue/store/archive';
import { ArchiveBuffer } from '../../../src/queue/store/archive-buffer';
import type { ArchivedJob } from '../../../src/queue/store/rows';
import { SIZES, Turn } from '../../../src/queue/store/sizes';
import { clock, DAY, T0 } from '../../support/clock';
import { histories, isLong } from '../../support/long';
import { type JobChange, steady, TestQueue } from '../../support/queue';

clock.startAtT0();

async function completeAll(queue: TestQueue, ids: string[], result?: string): Promise<void> {
  await queue.inside(({ instance }) =>
    Promise.all(
      ids.map((job_id) => instance.settle({ kind: 'completed', job_id, ...(result !== undefined && { result }) })),
    ),
  );
}

describe('a completed job', () => {
  it('is found by its id across many chunks, with everything it carried', async () => {
    const queue = new TestQueue();
    const ids: string[] = [];
    for (let n = 0; n < 4; n++) {
      ids.push(...(await queue.enqueue(...Array(100).fill({ body: { args: [n], tags: ['t'] } }))).map(({ id }) => id));
    }
    const claimed = await queue.claimAll();
    // Completed out of order, so that chunks overlap.
    for (const part of [0, 1, 2, 3])
      await completeAll(
        queue,
        claimed.filter((_, n) => n % 4 === part),
        '{"ok":true}',
      );
    await queue.evict();
    for (const [n, id] of ids.entries()) {
      if (n % 37 !== 0) continue;
      const record = await queue.get(id);
      expect(record).toMatchObject({ id, state: 'completed', attempt: 1, result: '{"ok":true}' });
      expect(JSON.parse(record.body)).toMatchObject({ args: [Math.floor(n / 100)], tags: ['t'] });
    }
    expect(await queue.counts()).toEqual({ completed: 400 });
    expect((await queue.listAll(70)).map(({ id }) => id)).toEqual([...ids].reverse());
  });

  it('is looked for among many others, and the chunk that they share is read once', async () => {
    const queue = new TestQueue();
    await queue.enqueue(...Array(50).fill({}));
    const ids = await queue.claimAll();
    await completeAll(queue, ids);
    await queue.inside(({ storage }) => {
      const chunks = storage.sql.exec<{ n: number }>('SELECT count(*) AS n FROM archive').one().n;
      const read: string[] = [];
      const exec = (query: string, ...bindings: SqlStorageValue[]) => {
        if (query.includes('data')) read.push(query);
        return storage.sql.exec(query, ...bindings);
      };
      expect(
        findArchived(
          { exec } as SqlStorage,
          ids.map((id) => decodeId(id).key),
        ).size,
      ).toBe(50);
      expect(read).toHaveLength(chunks);
    });
    expect(unwrap(await queue.stub.heartbeat({ worker_id: 'w', job_ids: ids })).lost).toEqual(ids);
  });

  it.each([64 * 1024 - 2, 64 * 1024 - 1, 1024 * 1024 - 2])(
    'keeps a result of %i characters until it is pruned',
    async (length) => {
      const queue = new TestQueue();
      const id = await queue.add();
      await queue.claim();
      const result = JSON.stringify('x'.repeat(length));
      expect(await queue.ack(id, { result })).toMatchObject({ result });
      await queue.evict();
      expect((await queue.get(id)).result).toBe(result);
      const own = await queue.rows('SELECT key FROM results');
      expect(own).toHaveLength(result.length > 64 * 1024 ? 1 : 0);
      clock.set(T0 + 8 * DAY);
      await queue.alarm();
      expect(await queue.state(id)).toBe('404');
      expect(await queue.rows('SELECT key FROM results')).toEqual([]);
      expect(await queue.rows('SELECT chunk FROM archive')).toEqual([]);
    },
  );

  it('stays for its retention and not a moment less', async () => {
    const queue = new TestQueue();
    const id = await queue.add();
    await queue.claim();
    await queue.ack(id);
    clock.set(T0 + 7 * DAY - 1);
    await queue.alarm();
    expect(await queue.state(id)).toBe('completed');
    clock.set(T0 + 7 * DAY);
    await queue.alarm();
    expect(await queue.state(id)).toBe('404');
    expect(await queue.counts()).toEqual({});
  });

  it('goes sooner when the retention is shortened', async () => {
    const queue = new TestQueue();
    const id = await queue.add();
    await queue.claim();
    await queue.ack(id);
    await queue.api.configure({ retention: { completed: 1000 } });
    clock.set(T0 + 2000);
    expect(await queue.armedAt()).toBeLessThanOrEqual(T0 + 2000);
    await queue.alarm();
    await queue.alarm();
    expect(await queue.state(id)).toBe('404');
  });
});

describe('the archive', () => {
  const archived = (k: number, at: number): ArchivedJob => ({
    k,
    t: 't',
    p: 0,
    n: 1,
    c: 1,
    at: [at, at, at, at],
    b: { type: 't', args: [], meta: {} },
  });

  it('finds, lists and counts any set of completed jobs, in chunks within the span, whatever order they ended in', async () => {
    await runInDurableObject(env.QUEUES.getByName('archive'), (_, { storage }) => {
      const { sql } = storage;
      new Schema(storage, QUEUE).create();
      const sequence = fc.oneof(fc.integer({ min: 1, max: 40 }), fc.integer({ min: 1, max: 5000 }));
      const batches = fc.array(fc.array(fc.tuple(sequence, fc.boolean()), { maxLength: 12 }), { maxLength: 12 });
      fc.assert(
        fc.property(batches, sequence, (transactions, before) => {
          sql.exec('DELETE FROM archive');
          forgetArchivedCount(sql);
          const kept = new Map<number, number>();
          let buffer = new ArchiveBuffer(sql, () => '{}');
          transactions.forEach((jobs, at) => {
            // An object that lost its memory joins the newest chunk too.
            if (at % 4 === 3) buffer = new ArchiveBuffer(sql, () => '{}');
            for (const [seq, delayed] of jobs) {
              if (kept.has(seq)) continue;
              const key = delayed ? RANK_BIT + seq : seq;
              kept.set(seq, key);
              const { b, ...job } = archived(key, at);
              buffer.add(job, JSON.stringify(b), undefined);
            }
            buffer.flush((endedAt) => Math.floor(endedAt / 5));
          });
          for (const { lo, hi } of sql.exec<{ lo: number; hi: number }>('SELECT lo, hi FROM archive')) {
            expect(hi - lo).toBeLessThan(SPAN);
          }
          const find = (key: number) => findArchived(sql, [key]).get(key);
          for (const key of kept.values()) expect(find(key)?.k).toBe(key);
          for (const missing of [41, 2500, 6000]) if (!kept.has(missing)) expect(find(missing)).toBeUndefined();
          const together = findArchived(sql, [41, 2500, 6000, ...kept.values()]);
          expect([...together.keys()].sort((a, b) => a - b)).toEqual([...kept.values()].sort((a, b) => a - b));
          expect(countArchived(sql)).toBe(kept.size);
          const newestFirst = [...kept.entries()].filter(([seq]) => seq < before).sort(([a], [b]) => b - a);
          expect([...archivedBackwards(sql, before)].map(({ key }) => key)).toEqual(newestFirst.map(([, key]) => key));
          const oldest = Math.floor(transactions.length / 2);
          const vanished: number[] = [];
          const store = {
            sql,
            turn: new Turn({ ...SIZES, turnChanges: 2_000 }, { work: 0 }),
            blocks: { vanish: (keys: readonly number[]) => void vanished.push(...keys), holds: () => false },
          };
          pruneArchive(store, oldest);
          const left = sql.exec<{ ended_at: number }>('SELECT ended_at FROM archive').toArray();
          for (const { ended_at } of left) expect(ended_at).toBeGreaterThan(oldest);
          deleteArchived(store, [...kept.values()].slice(0, 3));
          // Nothing else would tell that they are over.
          for (const key of kept.values()) expect(vanished.includes(key)).toBe(!find(key));
          const inMemory = countArchived(sql);
          forgetArchivedCount(sql);
          expect(inMemory).toBe(countArchived(sql));
        }),
        { numRuns: histories(80) },
      );
    });
  });
});

describe('a discarded job', () => {
  const ends: [string, JobChange, (queue: TestQueue, id: string) => Promise<unknown>, string][] = [
    ['exhausted', { retry: steady(1) }, (queue, id) => queue.nack(id, { code: 'E' }), 'retries_exhausted'],
    ['not retryable', {}, (queue, id) => queue.nack(id, { code: 'E', retryable: false }), 'non_retryable'],
    ['discarded by its handler', {}, (queue, id) => queue.nack(id, { code: 'DISCARD' }), 'discard_code'],
    ['a known failure', {}, (queue, id) => queue.nack(id, { code: 'FAIL' }), 'fail_code'],
    ['killed', {}, (queue, id) => queue.nack(id, { kill: true }), 'killed'],
    ['lost with its last lease', { retry: steady(1) }, async () => clock.set(T0 + 3_600_000), 'retries_exhausted'],
  ];

  it.each(ends)('that was %s has its reason and errors until its retention ends', async (_, change, end, reason) => {
    const queue = new TestQueue();
    const id = await queue.add(change);
    await queue.claim();
    await end(queue, id);
    const check = async () => {
      const { state, history } = await queue.get(id);
      expect({ state, reason: history.reason }).toEqual({ state: 'discarded', reason });
      expect(history.errors).toHaveLength(1);
      expect(history.error).toEqual(history.errors?.[0]);
      expect(history.error).toMatchObject({ attempt: 1, reason, backoff_ms: null });
      expect((await queue.listAll()).map((job) => job.id)).toEqual([id]);
    };
    await check();
    await queue.evict();
    const retention = ((await queue.get(id)).history.dead_letter ? 180 : 30) * DAY;
    clock.set(T0 + retention - 1);
    await queue.alarm();
    await check();
    clock.set(T0 + retention + 2 * 3_600_000);
    await queue.alarm();
    expect(await queue.state(id)).toBe('404');
    expect(await queue.rows('SELECT key FROM jobs')).toEqual([]);
  });

  it('keeps its newest errors when there are more than fit', async () => {
    const queue = new TestQueue();
    const id = await queue.add({ retry: steady(100, 0) });
    const message = 'm'.repeat(8192);
    for (let attempt = 1; attempt <= 60; attempt++) {
      await queue.claim();
      await queue.nack(id, { code: 'E', message: `${attempt} ${message}` });
    }
    const { history } = await queue.get(id);
    expect(history.errors?.at(-1)).toMatchObject({ attempt: 60 });
    const attempts = history.errors?.map(({ attempt }) => attempt) ?? [];
    expect(attempts).toEqual(Array.from({ length: attempts.length }, (_, n) => 61 - attempts.length + n));
    expect(attempts.length).toBeGreaterThan(20);
    const [row] = await queue.rows<{ size: number }>('SELECT length(history) AS size FROM jobs');
    expect(row?.size).toBeLessThan(512 * 1024);
  });
});

describe('many jobs that end their retention together', () => {
  it('are removed in bounded steps, one alarm after the other, until the queue sleeps', async () => {
    const queue = new TestQueue();
    await queue.cancel(await queue.add());
    await queue.inside(({ sql }) => {
      sql.exec(
        `WITH RECURSIVE n(i) AS (SELECT 2 UNION ALL SELECT i + 1 FROM n WHERE i < 1200)
         INSERT INTO jobs (key, state, type, priority, attempt, claims, created_at, enqueued_at, ended_at, body)
         SELECT i, 2, 't', 0, 0, 0, ?1, ?1, ?1, '{}' FROM n`,
        T0,
      );
    });
    clock.set(T0 + 8 * DAY);
    const left: number[] = [];
    for (let alarms = 0; alarms < 6 && (await queue.alarm()); alarms++) {
      left.push((await queue.rows('SELECT key FROM jobs')).length);
    }
    expect(left[0]).toBeGreaterThan(0);
    expect(left.at(-1)).toBe(0);
    expect(await queue.armedAt()).toBeNull();
  });
});

describe('dead letters', () => {
  it('are bounded: the oldest go first', async () => {
    const queue = new TestQueue();
    await queue.api.configure({ dead_letter: { max_count: 3 } });
    const ids: string[] = [];
    for (let n = 0; n < 5; n++) {
      clock.set(T0 + n);
      const id = await queue.add();
      await queue.claim();
      await queue.nack(id, { code: 'DEAD_LETTER' });
      ids.push(id);
      if (n === 3) await queue.evict();
    }
    const page = await queue.deadLetters({ limit: 10 });
    expect(page.jobs.map(({ record }) => record.id)).toEqual([ids[4], ids[3], ids[2]]);
    expect(page.total).toBe(3);
    expect(await queue.stats()).toMatchObject({ dead: 3, counts: { discarded: 3 } });
    expect(await queue.state(ids[0] as string)).toBe('404');
  });

  it('are filtered by type, error and time, and counted as they are listed', async () => {
    const queue = new TestQueue();
    for (const [n, type] of ['mail.send', 'mail.read', 'pdf.make'].entries()) {
      clock.set(T0 + n * 1000);
      const id = await queue.add({ type });
      await queue.claim();
      await queue.nack(id, { code: 'DEAD_LETTER', type: n === 1 ? 'Other' : 'Boom' });
    }
    const find = async (filter: object) => {
      const page = await queue.deadLetters({ limit: 10, ...filter });
      expect(page.total).toBe(page.jobs.length);
      return page.jobs.map(({ record }) => record.type);
    };
    expect(await find({})).toEqual(['pdf.make', 'mail.read', 'mail.send']);
    expect(await find({ types: ['mail.*'] })).toEqual(['mail.read', 'mail.send']);
    expect(await find({ error_type: 'Boom' })).toEqual(['pdf.make', 'mail.send']);
    expect(await find({ since: T0 + 1000 })).toEqual(['pdf.make', 'mail.read']);
    expect(await find({ until: T0 + 1000 })).toEqual(['mail.send']);
    expect((await queue.deadLetters({ limit: 1 })).total).toBe(3);
  });
});

describe('pages of a list', () => {
  it('show every job that existed at the first page once, newest first, while jobs move between states', async () => {
    const move: ((queue: TestQueue, id: string) => Promise<unknown>)[] = [
      (queue) => queue.claim(),
      async (queue) => {
        const [job] = await queue.claim();
        if (job) await queue.ack(job.id);
      },
      async (queue) => {
        const [job] = await queue.claim();
        if (job) await queue.nack(job.id);
      },
      (queue, id) => queue.api.cancel(id),
      (queue) => queue.add(),
      (queue) => queue.add({ priority: 2 }),
      (queue) => queue.evict(),
    ];
    const steps = fc.array(fc.tuple(fc.nat(move.length - 1), fc.nat(40)), { minLength: 3, maxLength: 12 });
    await fc.assert(
      fc.asyncProperty(steps, fc.integer({ min: 1, max: 7 }), async (moves, limit) => {
        clock.set(T0);
        const queue = new TestQueue();
        const jobs = await queue.enqueue(
          {},
          {},
          { priority: 3 },
          {},
          { scheduledAt: T0 + 50 },
          { pending: true },
          {},
          {},
        );
        const seen: string[] = [];
        let before: number | undefined;
        for (let at = 0; ; at++) {
          const page = unwrap(await queue.api.list({ limit, ...(before !== undefined && { before }) }));
          seen.push(...page.jobs.map(({ record }) => record.id));
          before = page.jobs.at(-1)?.position;
          if (!page.has_more) break;
          const [which, pick] = moves[at % moves.length] as [number, number];
          await move[which]?.(queue, jobs[pick % jobs.length]?.id as string);
        }
        expect(seen).toEqual(jobs.map(({ id }) => id).reverse());
      }),
      { numRuns: histories(25) },
    );
  });

  it('count what they list, for every state and type', async () => {
    const queue = new TestQueue();
    const [a, b, c] = (
      await queue.enqueue({ type: 'x.a' }, { type: 'x.b' }, { type: 'y.a' }, { type: 'x.a', pending: true })
    ).map(({ id }) => id) as [string, string, string];
    await queue.claim({ count: 3 });
    await queue.ack(a);
    await queue.nack(b);
    await queue.cancel(c);
    for (const states of [undefined, ['completed'], ['retryable', 'pending'], ['cancelled'], ['active']] as const) {
      for (const type of [undefined, 'x.a', 'x.*', '*', 'z']) {
        const page = unwrap(
          await queue.api.list({
            limit: 200,
            ...(states && { states: [...states] }),
            ...(type !== undefined && { type }),
          }),
        );
        expect(page.total).toBe(page.jobs.length);
        expect(page.has_more).toBe(false);
      }
    }
  });
});

describe('a job as large as its parts may be', () => {
  it.runIf(isLong)(
    'completes within what a row of the platform holds, and hurts no other job in the same commit',
    async () => {
      const queue = new TestQueue();
      // What a workflow gives a job: its arguments and the results of those before it.
      const args = ['語'.repeat(524_000)];
      const large = await queue.add({ body: { args, retry: steady(100, 0) }, retry: steady(100, 0) });
      const small = await queue.add();
      for (let attempt = 0; attempt < 12; attempt++) {
        await queue.claim({ count: 2 });
        await queue.nack(large, { message: '語'.repeat(8_000) });
      }
      await queue.claim({ count: 2 });
      const result = JSON.stringify('語'.repeat(65_500));
      await queue.inside(async ({ instance }) => {
        const acks = [
          instance.settle({ kind: 'completed', job_id: large, result }),
          instance.settle({ kind: 'completed', job_id: small }),
        ];
        for (const { ok } of await Promise.all(acks)) expect(ok).toBe(true);
      });
      expect(await queue.get(large)).toMatchObject({ state: 'completed', result });
      expect(await queue.state(small)).toBe('completed');
    },
  );
});
