/** Invariants "accepted is durable" and "counted before run": whatever dies, what was answered is there. */

import { abortAllDurableObjects } from 'cloudflare:test';
import { describe, expect, it, vi } from 'vitest';
import { ApiError } from '../../src/job/errors';
import type { QueueMemory } from '../../src/queue/store/memory';
import { clock, DAY, T0 } from '../support/clock';
import { failOnce, failureOf } from '../support/faults';
import { type JobChange, newJob, refusal, steady, TestQueue } from '../support/queue';
import { addTo } from './features/limits/limited';

clock.startAtT0();

/** The next completion fails when all is done but its commit. Call it inside the object. */
function failLast(q: QueueMemory): void {
  vi.spyOn(q.store.blocks, 'vanish').mockImplementationOnce(() => {
    throw new Error('storage failed');
  });
}

const deaths: [string, (queue: TestQueue) => Promise<void>][] = [
  ['evicted', (queue) => queue.evict()],
  ['aborted', () => abortAllDurableObjects()],
];

describe.each(deaths)('an object that is %s', (_, kill) => {
  it('still has every job that was accepted before', async () => {
    const queue = new TestQueue();
    const jobs = await queue.enqueue({}, { priority: 7 }, { scheduledAt: T0 + 5000 }, { pending: true });
    await kill(queue);
    // A receipt has no body: whoever enqueues has it.
    for (const job of jobs)
      expect(await queue.get(job.id)).toMatchObject({ ...job, body: expect.stringContaining('test.job') });
    expect(await queue.counts()).toEqual({ available: 2, scheduled: 1, pending: 1 });
  });

  it('still knows what was acknowledged, failed and cancelled', async () => {
    const queue = new TestQueue();
    const ids = (await queue.enqueue({}, {}, {}, {})).map(({ id }) => id) as [string, string, string, string];
    await queue.claim({ count: 4 });
    await queue.ack(ids[0], { result: '{"n":1}' });
    await queue.nack(ids[1]);
    await queue.cancel(ids[2]);
    const before = await Promise.all(ids.map((id) => queue.get(id)));
    await kill(queue);
    expect(await Promise.all(ids.map((id) => queue.get(id)))).toEqual(before);
    expect(before.map(({ state }) => state)).toEqual(['completed', 'retryable', 'cancelled', 'active']);
    expect(await queue.counts()).toEqual({ completed: 1, retryable: 1, cancelled: 1, active: 1 });
  });

  it('still knows who holds which job, until when, and in which attempt', async () => {
    const queue = new TestQueue();
    const id = await queue.add({ retry: steady(2) });
    await queue.claim({ worker_id: 'w1', visibility_timeout_ms: 60_000 });
    await kill(queue);
    expect(await queue.get(id)).toMatchObject({ state: 'active', attempt: 1, worker_id: 'w1' });
    expect(await queue.claim()).toEqual([]);
    clock.set(T0 + 60_000);
    expect(await queue.claim()).toMatchObject([{ id, attempt: 2 }]);
  });

  it('uses up the attempts of a job that takes its object down each time', async () => {
    const queue = new TestQueue();
    const id = await queue.add({ retry: steady(3) });
    for (let attempt = 1; attempt <= 3; attempt++) {
      clock.set(T0 + attempt * 60_000);
      expect(await queue.claim({ visibility_timeout_ms: 30_000 })).toMatchObject([{ id, attempt }]);
      await kill(queue);
    }
    clock.set(T0 + 600_000);
    expect(await queue.claim()).toEqual([]);
    const { state, attempt, history } = await queue.get(id);
    expect({ state, attempt, reason: history.reason }).toEqual({
      state: 'discarded',
      attempt: 3,
      reason: 'retries_exhausted',
    });
    expect(history.errors?.map((entry) => entry.code)).toEqual(Array(3).fill('visibility_timeout'));
  });

  it('keeps pause, settings and the order of its jobs', async () => {
    const queue = new TestQueue();
    const ids = (await queue.enqueue({}, { priority: 3 }, {}, { priority: -1 })).map(({ id }) => id);
    await queue.api.configure({ concurrency: 3 });
    await queue.api.pause();
    await kill(queue);
    expect(await queue.claim({ count: 4 })).toEqual([]);
    expect((await queue.stats()).paused).toBe(true);
    expect(await queue.api.config()).toMatchObject({ value: { concurrency: 3 } });
    await queue.api.resume();
    expect(await queue.claimAll()).toEqual([ids[1], ids[0], ids[2], ids[3]]);
  });
});

describe('a transaction that fails', () => {
  /** Fails the whole transaction of `run`, after all its operations have run. */
  async function failCommit<T>(queue: TestQueue, run: () => Promise<T>): Promise<void> {
    await queue.inside(({ q }) => {
      vi.spyOn(q.store.archive, 'flush').mockImplementationOnce(() => {
        throw new Error('the disk is full');
      });
    });
    expect((await failureOf(run())).message).toContain('the disk is full');
  }

  /** What is stored, and what memory makes of it, must not change; nor by forgetting memory. */
  async function untouched(queue: TestQueue, run: () => Promise<void>): Promise<void> {
    const look = async () => ({
      jobs: await queue.listAll(),
      counts: await queue.counts(),
      armed: await queue.armedAt(),
    });
    const before = await look();
    await run();
    expect(await look()).toEqual(before);
    await abortAllDurableObjects();
    expect(await look()).toEqual(before);
  }

  it('answers an error to an enqueue, leaves nothing, and the queue continues', async () => {
    const queue = new TestQueue();
    const kept = await queue.add();
    await untouched(queue, () => failCommit(queue, () => queue.enqueue({}, { priority: 2 }, { scheduledAt: T0 + 9 })));
    const next = await queue.add();
    expect(await queue.claimAll()).toEqual([kept, next]);
  });

  it('leaves jobs to be claimed that it had claimed', async () => {
    const queue = new TestQueue();
    const jobs = await queue.enqueue({}, {}, { priority: 5 });
    await untouched(queue, () => failCommit(queue, () => queue.claim({ count: 3 })));
    await failCommit(queue, () => queue.claim({ count: 3 }));
    // A later claim must not put on record that the line was taken further than it was.
    const later = await queue.add({ priority: 9 });
    expect(await queue.claim()).toMatchObject([{ id: later, attempt: 1 }]);
    await abortAllDurableObjects();
    expect(await queue.claimAll()).toEqual([jobs[2]?.id, jobs[0]?.id, jobs[1]?.id]);
  });

  it('gives no sequence number twice, even when the jobs that had it were deleted', async () => {
    const queue = new TestQueue();
    const first = await queue.add();
    await failCommit(queue, () => queue.claim());
    await queue.claim();
    await queue.api.configure({ retention: { completed: 0 } });
    await queue.ack(first);
    await abortAllDurableObjects();
    expect(await queue.add()).not.toBe(first);
  });

  it('leaves an attempt running whose report it lost, and takes the report again', async () => {
    const queue = new TestQueue();
    const id = await queue.add();
    await queue.claim({ worker_id: 'w1' });
    await untouched(queue, () => failCommit(queue, () => queue.ack(id, { result: '1' })));
    await untouched(queue, () => failCommit(queue, () => queue.nack(id)));
    await untouched(queue, () => failCommit(queue, () => queue.cancel(id)));
    expect(await queue.ack(id, { result: '1', attempt: 1 })).toMatchObject({ state: 'completed', result: '1' });
  });

  it('leaves the alarm where it was, so that what is due earlier still wakes the queue', async () => {
    const queue = new TestQueue();
    const now = Date.now();
    await queue.enqueue({ scheduledAt: now + 60_000 });
    await failCommit(queue, () => queue.enqueue({ scheduledAt: now + 10_000 }));
    expect(await queue.armedAt()).toBe(now + 60_000);
    await queue.enqueue({ scheduledAt: now + 90_000 });
    expect(await queue.armedAt()).toBe(now + 60_000);
  });

  it('tells everyone who shared it', async () => {
    const queue = new TestQueue();
    await queue.add();
    await queue.inside(({ q }) => {
      vi.spyOn(q.store.archive, 'flush').mockImplementationOnce(() => {
        throw new Error('the disk is full');
      });
    });
    const answers = await Promise.allSettled([queue.add(), queue.add(), queue.claim()]);
    expect(answers.some(({ status }) => status === 'rejected')).toBe(true);
    const accepted = answers.filter(({ status }) => status === 'fulfilled').length;
    const { available = 0, active = 0 } = await queue.counts();
    const claimed = answers[2]?.status === 'fulfilled' ? 1 : 0;
    expect({ available: available + active, active }).toEqual({ available: 1 + accepted - claimed, active: claimed });
  });

  it('answers even when storage cannot be read afterwards, and recovers when it can', async () => {
    const queue = new TestQueue();
    const id = await queue.add();
    await queue.inside(({ q, sql }) => {
      vi.spyOn(q.store.archive, 'flush').mockImplementationOnce(() => {
        failOnce(sql, /FROM leases/);
        throw new Error('the disk is full');
      });
    });
    expect((await failureOf(queue.claim())).message).toContain('the disk is full');
    expect(await queue.claim()).toMatchObject([{ id, attempt: 1 }]);
  });
});

describe('an operation that fails inside a shared transaction', () => {
  it('spares its neighbours, and they do not build on what it left in memory', async () => {
    const queue = new TestQueue();
    const jobs = await queue.enqueue({}, {}, {});
    const [first, second, third] = jobs.map(({ id }) => id) as [string, string, string];
    await queue.claim({ worker_id: 'w1' });
    // The failing acknowledgement frees its lease in memory; the claim beside it must not overwrite the lease's row.
    const outcomes = await queue.inside(async ({ instance, q }) => {
      failLast(q);
      return Promise.allSettled([
        instance.settle({ kind: 'completed', job_id: first }),
        instance.claim({ count: 1, worker_id: 'w2' }),
      ]);
    });
    expect(outcomes.map(({ status }) => status)).toEqual(['rejected', 'fulfilled']);
    await abortAllDurableObjects();
    expect(await queue.get(first)).toMatchObject({ state: 'active', worker_id: 'w1', attempt: 1 });
    expect(await queue.get(second)).toMatchObject({ state: 'active', worker_id: 'w2', attempt: 1 });
    expect(await queue.claimAll()).toEqual([third]);
  });

  it.each([
    ['a key', { key: 'k', rate: 1, period: 'minute' }, {}],
    ['the queue', undefined, { rate_limit: { rate: { limit: 2, period_ms: 60_000 } } }],
  ])('leaves the starts that its neighbours have used of %s', async (_, limit, settings) => {
    const queue = new TestQueue();
    await queue.api.configure(settings);
    const free = await addTo(queue);
    expect(await queue.claim()).toMatchObject([{ id: free }]);
    const [first] = [await addTo(queue, limit), await addTo(queue, limit)];
    const outcomes = await queue.inside(async ({ instance, q }) => {
      failLast(q);
      return Promise.allSettled([
        instance.claim({ count: 1 }),
        instance.settle({ kind: 'completed', job_id: free }),
        instance.claim({ count: 2 }),
      ]);
    });
    expect(outcomes).toMatchObject([
      { value: { ok: true, value: [{ record: { id: first } }] } },
      { status: 'rejected' },
      { value: { ok: true, value: [] } },
    ]);
    expect(await queue.claim()).toEqual([]);
    clock.at(60_000);
    expect(await queue.claim({ count: 2 })).toHaveLength(1);
  });

  it('leaves nothing in memory either when it is refused after it has begun to write', async () => {
    const queue = new TestQueue();
    const ids = (await queue.enqueue({}, {})).map(({ id }) => id) as [string, string];
    await queue.claim({ count: 2 });
    await queue.inside(({ q }) => {
      vi.spyOn(q.store.archive, 'add').mockImplementationOnce(() => {
        throw new ApiError({ status: 503, code: 'unavailable', message: 'not now', retryable: true });
      });
    });
    expect(refusal(await queue.api.settle({ kind: 'completed', job_id: ids[0] }))).toMatchObject({
      message: 'not now',
    });
    expect(await queue.counts()).toEqual({ active: 2 });
    for (const id of ids) expect(await queue.ack(id)).toMatchObject({ state: 'completed' });
  });

  it('leaves half an enqueue nowhere', async () => {
    const queue = new TestQueue();
    await queue.add();
    await queue.inside(({ sql }) => failOnce(sql, /^INSERT INTO jobs/, 1));
    await failureOf(queue.enqueue({}, { expiresAt: T0 + DAY }, {}, { expiresAt: T0 + DAY }));
    expect(await queue.counts()).toEqual({ available: 1 });
    expect(await queue.enqueue({}, {})).toHaveLength(2);
    expect(await queue.counts()).toEqual({ available: 3 });
  });

  it('takes nothing with it of what the others enqueue, whether that was written in between or not', async () => {
    const queue = new TestQueue();
    await queue.add();
    const outcomes = await queue.inside(async ({ instance, sql }) => {
      failOnce(sql, /^INSERT INTO jobs/);
      const enqueue = (change: JobChange) => instance.enqueue([newJob(change)]);
      return Promise.allSettled([
        enqueue({ type: 'first' }),
        enqueue({ priority: 1 }),
        instance.claim({ count: 1 }),
        enqueue({ type: 'second' }),
      ]);
    });
    expect(outcomes.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled', 'fulfilled']);
    const expected = { available: 2, active: 1 };
    expect(await queue.counts()).toEqual(expected);
    await abortAllDurableObjects();
    expect(await queue.counts()).toEqual(expected);
    expect((await queue.claim({ count: 9 })).map(({ type }) => type)).toEqual(['first', 'second']);
  });

  it.each<[RegExp, number, JobChange | undefined]>([
    [/^INSERT INTO blocks/, 2, {}],
    [/^INSERT INTO due_blocks/, 2, { priority: -1 }],
    [/^UPDATE blocks SET gone/, 2, {}],
    [/^UPDATE blocks SET first/, 3, {}],
    [/^DELETE FROM blocks/, 3, undefined],
  ])(
    'fails for all when the block cannot be written, and leaves everything as it was: %s',
    async (pattern, acked, change) => {
      const queue = new TestQueue();
      await queue.api.configure({ retention: { completed: 0 } });
      const ids = (await queue.enqueue({}, {}, {})).map(({ id }) => id);
      await queue.claim({ count: 3 });
      await queue.inside(({ sql }) => failOnce(sql, pattern));
      const jobs = change ? Array(100).fill(newJob({ ...change, body: { args: ['x'.repeat(100)] } })) : [];
      const act = () =>
        queue.inside(({ instance }) =>
          Promise.allSettled([
            ...(jobs.length > 0 ? [instance.enqueue(jobs)] : []),
            ...ids.slice(0, acked).map((id) => instance.settle({ kind: 'completed', job_id: id })),
          ]),
        );
      expect((await act()).map(({ status }) => status)).not.toContain('fulfilled');
      expect(await queue.counts()).toEqual({ active: 3 });
      expect((await act()).map(({ status }) => status)).not.toContain('rejected');
      const expected = { ...(change && { available: 100 }), ...(acked < 3 && { active: 1 }) };
      expect(await queue.counts()).toEqual(expected);
      await abortAllDurableObjects();
      expect(await queue.counts()).toEqual(expected);
    },
  );

  it('does not announce events of what did not happen', async () => {
    const queue = new TestQueue();
    await queue.add();
    const before = await queue.api.events({ limit: 100 });
    await queue.inside(({ sql }) => failOnce(sql, /^INSERT OR REPLACE INTO leases/));
    await failureOf(queue.claim());
    expect(await queue.api.events({ limit: 100 })).toEqual(before);
  });
});
