/**
 * Invariants "nothing due without a wake" and "time is a comparison": the alarm is armed for whatever is due next, and
 * nothing is wrong when it fires late, twice, early, or never.
 */

import { abortAllDurableObjects } from 'cloudflare:test';
import { describe, expect, it, vi } from 'vitest';
import { clock, DAY, T0, until } from '../support/clock';
import { steady, TestQueue } from '../support/queue';

clock.startAtT0();

/** Every alarm set from now on, with the object's time at that moment. */
async function spyAlarms(queue: TestQueue): Promise<{ set: { at: number; now: number }[] }> {
  const seen: { set: { at: number; now: number }[] } = { set: [] };
  await queue.inside(({ storage }) => {
    const { setAlarm } = storage;
    storage.setAlarm = (time, options) => {
      seen.set.push({ at: Number(time), now: Date.now() });
      return setAlarm.call(storage, time, options);
    };
  });
  return seen;
}

/** Makes something due at a time, and answers that time. */
const due: [string, (queue: TestQueue) => Promise<number>][] = [
  [
    'a delayed job',
    async (queue) => {
      await queue.add({ scheduledAt: T0 + 5000 });
      return T0 + 5000;
    },
  ],
  [
    'the lease of a claimed job',
    async (queue) => {
      await queue.add();
      await queue.claim({ visibility_timeout_ms: 7000 });
      return T0 + 7000;
    },
  ],
  [
    'the execution limit of a claimed job',
    async (queue) => {
      await queue.add({ body: { timeout_ms: 3000 } });
      await queue.claim();
      return T0 + 3000;
    },
  ],
  [
    'a lease that a heartbeat made shorter',
    async (queue) => {
      await queue.add();
      await queue.claim({ worker_id: 'w', visibility_timeout_ms: 100_000 });
      await queue.api.heartbeat({ worker_id: 'w', visibility_timeout_ms: 2000 });
      return T0 + 2000;
    },
  ],
  [
    'a retry',
    async (queue) => {
      const id = await queue.add({ retry: steady(3, 4000) });
      await queue.claim();
      await queue.nack(id);
      return T0 + 4000;
    },
  ],
  [
    'the expiry of a waiting job',
    async (queue) => {
      await queue.add({ expiresAt: T0 + 6000 });
      return T0 + 6000;
    },
  ],
  [
    'the expiry of a pending job',
    async (queue) => {
      await queue.add({ pending: true, expiresAt: T0 + 6000 });
      return T0 + 6000;
    },
  ],
  [
    'the expiry of a job that was given back',
    async (queue) => {
      const id = await queue.add({ expiresAt: T0 + 6000 });
      await queue.claim();
      await queue.nack(id, {}, { requeue: true });
      return T0 + 6000;
    },
  ],
  [
    'the removal of a completed job',
    async (queue) => {
      const id = await queue.add();
      await queue.claim();
      await queue.ack(id);
      return T0 + 8 * DAY;
    },
  ],
  [
    'the removal of a cancelled job',
    async (queue) => {
      await queue.cancel(await queue.add());
      return T0 + 8 * DAY;
    },
  ],
  [
    'the removal of a discarded job',
    async (queue) => {
      const id = await queue.add({ retry: steady(1) });
      await queue.claim();
      await queue.nack(id);
      return T0 + 31 * DAY;
    },
  ],
  [
    'a job held for a batch over several queues',
    async (queue) => {
      await queue.api.prepareBatch('b1', 'elsewhere', []);
      return T0 + 10_000;
    },
  ],
  [
    'a job for a handler that must be pushed',
    async (queue) => {
      await queue.api.pause();
      await queue.add({ type: 'down.job' });
      await queue.api.resume();
      return T0 + 1000;
    },
  ],
];

describe.each(due)('%s', (_, make) => {
  it('has an alarm at or before its time', async () => {
    const queue = new TestQueue();
    const at = await make(queue);
    expect(await queue.armedAt()).toBeGreaterThan(T0);
    expect(await queue.armedAt()).toBeLessThanOrEqual(at);
  });

  it('has one even when an alarm for much later was armed before', async () => {
    const queue = new TestQueue();
    await queue.add({ scheduledAt: T0 + 100 * DAY });
    const at = await make(queue);
    expect(await queue.armedAt()).toBeLessThanOrEqual(at);
  });

  it('has one again when the object wakes up without any', async () => {
    const queue = new TestQueue();
    const at = await make(queue);
    await queue.inside(({ storage }) => storage.deleteAlarm());
    await abortAllDurableObjects();
    expect(await queue.armedAt()).toBeLessThanOrEqual(at);
    expect(await queue.armedAt()).not.toBeNull();
  });

  it('is looked after soon once its alarm was lost, by whichever request comes first', async () => {
    for (const touch of [(queue: TestQueue) => queue.stats(), (queue: TestQueue) => queue.add({ pending: true })]) {
      const queue = new TestQueue();
      const at = await make(queue);
      await queue.inside(({ storage }) => storage.deleteAlarm());
      clock.set(at + 6000);
      await touch(queue);
      const armed = await queue.armedAt();
      // Touching it may itself have done all that was due; then there may be nothing to wake for.
      if (armed !== null) expect(armed).toBeGreaterThan(at + 6000);
      await queue.alarm();
      clock.set(T0);
    }
  });
});

describe('an alarm', () => {
  it('is never set for now or the past, and never later than the one that is armed', async () => {
    const queue = new TestQueue();
    await queue.add();
    const seen = await spyAlarms(queue);
    const ids = (await queue.enqueue({ retry: steady(5, 0) }, { scheduledAt: T0 + 50 }, { expiresAt: T0 + 60 })).map(
      ({ id }) => id,
    ) as [string, string, string];
    await queue.claim({ count: 2, visibility_timeout_ms: 20 });
    await queue.nack(ids[0], { retry_in: 0 });
    await queue.cancel(ids[2]);
    await queue.api.configure({ retention: { completed: 0, cancelled: 0, discarded: 0 } });
    for (const time of [T0 + 20, T0 + 20, T0 + 50, T0 + 61, T0 + 5000]) {
      clock.set(time);
      await queue.alarm();
      await queue.claim({ visibility_timeout_ms: 1 });
    }
    expect(seen.set.length).toBeGreaterThan(3);
    for (const { at, now } of seen.set) expect(at).toBeGreaterThan(now);
  });

  it('is not set again by operations whose due times lie behind it', async () => {
    const queue = new TestQueue();
    await queue.add({ scheduledAt: T0 + 1000 });
    const seen = await spyAlarms(queue);
    await queue.enqueue({}, { scheduledAt: T0 + 2000 }, { expiresAt: T0 + 3000 });
    const [job] = await queue.claim();
    await queue.api.heartbeat({ worker_id: 'w' });
    await queue.ack(job?.id as string);
    await queue.stats();
    await queue.listAll();
    expect(seen.set).toEqual([]);
  });

  it('that fires late does everything that was due meanwhile', async () => {
    const queue = new TestQueue();
    const [expiring, delayed] = (await queue.enqueue({ expiresAt: T0 + 1000 }, { scheduledAt: T0 + 2000 })).map(
      ({ id }) => id,
    ) as [string, string];
    clock.set(T0 + 3_600_000);
    await queue.alarm();
    expect(await queue.rows('SELECT state FROM jobs ORDER BY key')).toEqual([{ state: 3 }, { state: 0 }]);
    expect(await queue.state(expiring)).toBe('discarded');
    expect(await queue.state(delayed)).toBe('available');
  });

  it('that fires twice, early, or when nothing is due changes nothing and comes again in time', async () => {
    const queue = new TestQueue();
    await queue.enqueue({ scheduledAt: T0 + 9000 }, {}, { priority: 3 });
    await queue.claim({ visibility_timeout_ms: 5000 });
    const before = { jobs: await queue.listAll(), counts: await queue.counts() };
    for (let n = 0; n < 3; n++) {
      await queue.inside(({ instance }) => instance.alarm());
      expect(await queue.armedAt()).toBe(T0 + 5000);
    }
    expect({ jobs: await queue.listAll(), counts: await queue.counts() }).toEqual(before);
  });

  it('is not set for a queue with nothing due, nor for a queue that was never used', async () => {
    const queue = new TestQueue();
    await queue.inside(({ instance }) => instance.alarm());
    expect(await queue.armedAt()).toBeNull();
    await queue.add();
    // It stands by for a moment, in case the job must be pushed.
    await queue.alarm();
    expect(await queue.armedAt()).toBeNull();
  });

  it('sleeps until a lease ends while jobs wait only for capacity', async () => {
    const queue = new TestQueue();
    await queue.api.configure({ concurrency: 1 });
    await queue.enqueue({ type: 'work.do', body: { args: [{ do: 'hang' }] } }, { type: 'work.do' });
    await until(async () => (await queue.stats()).counts.active === 1, 'the push');
    clock.set(T0 + 1000);
    await queue.alarm();
    expect(await queue.armedAt()).toBeGreaterThanOrEqual(T0 + 30_000);
    await queue.alarm();
    expect(await queue.armedAt()).toBeGreaterThanOrEqual(T0 + 30_000);
  });
});

describe('an alarm after work that failed', () => {
  /** What features do after each commit, or in each alarm, fails. */
  const breakWork = (queue: TestQueue, work: 'start' | 'tidy') =>
    queue.inside(({ engine }) => {
      const { features } = engine as unknown as { features: Partial<Record<'start' | 'tidy', () => void>>[] };
      for (const feature of features.filter((one) => one[work])) {
        feature[work] = () => {
          throw new Error('storage failed');
        };
      }
    });

  it('comes within a second, and not later than what was due before', async () => {
    const fails = vi.spyOn(console, 'error').mockImplementation(() => undefined);
    const queue = new TestQueue();
    await queue.add({ pending: true });
    await queue.alarm();
    await breakWork(queue, 'start');
    await queue.add({ pending: true });
    expect(await queue.armedAt()).toBe(T0 + 1000);
    await queue.add({ scheduledAt: T0 + 500 });
    await queue.add({ pending: true });
    expect(await queue.armedAt()).toBe(T0 + 500);
    expect(fails).toHaveBeenCalled();
  });

  it('comes after a second, again and again, as long as what is due fails', async () => {
    vi.spyOn(console, 'error').mockImplementation(() => undefined);
    const queue = new TestQueue();
    await queue.cancel(await queue.add());
    const at = (await queue.armedAt()) as number;
    await breakWork(queue, 'tidy');
    for (let now = at; now <= at + 2000; now += 1000) {
      clock.set(now);
      await queue.inside(({ instance }) => instance.alarm());
      expect(await queue.armedAt()).toBe(now + 1000);
    }
  });
});

describe('without any alarm ever', () => {
  const silent = async (queue: TestQueue): Promise<void> => {
    await queue.inside(({ storage }) => storage.deleteAlarm());
  };

  it('a delayed job is handed out once its time has come, not a millisecond before', async () => {
    const queue = new TestQueue();
    const id = await queue.add({ scheduledAt: T0 + 5000 });
    await silent(queue);
    clock.set(T0 + 4999);
    expect(await queue.state(id)).toBe('scheduled');
    expect(await queue.claim()).toEqual([]);
    clock.set(T0 + 5000);
    const record = await queue.get(id);
    expect(record).toMatchObject({ state: 'available', enqueued_at: T0 + 5000 });
    expect(record.due_at).toBeUndefined();
    expect(await queue.claim()).toMatchObject([{ id, attempt: 1 }]);
  });

  it('a retry is handed out after its delay', async () => {
    const queue = new TestQueue();
    const id = await queue.add({ retry: steady(3, 4000) });
    await queue.claim();
    expect(await queue.nack(id)).toMatchObject({ state: 'retryable', due_at: T0 + 4000 });
    await silent(queue);
    clock.set(T0 + 3999);
    expect(await queue.claim()).toEqual([]);
    clock.set(T0 + 4000);
    expect(await queue.state(id)).toBe('available');
    expect(await queue.claim()).toMatchObject([{ id, attempt: 2 }]);
  });

  it('a lease that ran out shows in every read and every report', async () => {
    const queue = new TestQueue();
    const id = await queue.add();
    await queue.claim({ worker_id: 'w', visibility_timeout_ms: 1000 });
    await silent(queue);
    clock.set(T0 + 999);
    expect(await queue.counts()).toEqual({ active: 1 });
    clock.set(T0 + 1000);
    expect(await queue.counts()).toEqual({ available: 1 });
    const record = await queue.get(id);
    expect(record).toMatchObject({ state: 'available', attempt: 1 });
    expect(record.worker_id).toBeUndefined();
    expect(record.history.errors).toMatchObject([
      { attempt: 1, code: 'visibility_timeout', type: 'tocsin.visibility_timeout' },
    ]);
    expect(await queue.api.settle({ kind: 'completed', job_id: id, attempt: 1 })).toMatchObject({
      error: { status: 409 },
    });
    expect(await queue.api.heartbeat({ worker_id: 'w' })).toMatchObject({ ok: true, value: { extended: [] } });
  });

  it('an execution limit ends the attempt like a failure, whatever heartbeats say', async () => {
    const queue = new TestQueue();
    const id = await queue.add({ retry: steady(3, 2000), body: { timeout_ms: 1500 } });
    await queue.claim({ worker_id: 'w' });
    clock.set(T0 + 1000);
    await queue.api.heartbeat({ worker_id: 'w' });
    await silent(queue);
    clock.set(T0 + 1500);
    expect(await queue.get(id)).toMatchObject({
      state: 'retryable',
      due_at: T0 + 3500,
      history: { error: { code: 'timeout', type: 'timeout' } },
    });
  });

  it('a job is discarded when it expires, and is not started at that very moment', async () => {
    const queue = new TestQueue();
    const ids = (
      await queue.enqueue(
        { expiresAt: T0 + 1000 },
        { expiresAt: T0 + 1000, priority: 3 },
        { expiresAt: T0 + 1000, pending: true },
        { expiresAt: T0 + 1000, scheduledAt: T0 + 1000 },
      )
    ).map(({ id }) => id);
    await silent(queue);
    clock.set(T0 + 1000);
    expect(await queue.claim({ count: 9 })).toEqual([]);
    for (const id of ids) {
      const { state, history } = await queue.get(id);
      expect({ state, reason: history.reason }).toEqual({ state: 'discarded', reason: 'expired' });
      expect(history).not.toHaveProperty('completed_at');
      expect(history.dead_letter).toBeUndefined();
    }
    expect(await queue.counts()).toEqual({ discarded: 4 });
  });

  it('a job that runs when it expires may end well, and is discarded if it must wait again', async () => {
    const queue = new TestQueue();
    const [good, bad] = (await queue.enqueue({ expiresAt: T0 + 1000 }, { expiresAt: T0 + 1000 })).map(
      ({ id }) => id,
    ) as [string, string];
    await queue.claim({ count: 2 });
    await silent(queue);
    clock.set(T0 + 2000);
    expect(await queue.counts()).toEqual({ active: 2 });
    expect(await queue.ack(good)).toMatchObject({ state: 'completed' });
    await queue.nack(bad);
    expect(await queue.state(bad)).toBe('discarded');
  });
});
