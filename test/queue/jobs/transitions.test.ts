/** Invariants "legal moves only" and "fenced": every state × operation, and every report that comes too late. */

import { describe, expect, it } from 'vitest';
import type { JobState } from '../../../src/job/states';
import { clock, T0 } from '../../support/clock';
import { refusal, steady, TestQueue } from '../../support/queue';

clock.startAtT0();

/** Brings a new job into a state. Jobs carry no chance: three attempts, 60 s apart. */
const reach: Record<string, (queue: TestQueue) => Promise<string>> = {
  scheduled: (queue) => queue.add({ scheduledAt: T0 + 60_000, retry: steady(3, 60_000) }),
  available: (queue) => queue.add({ retry: steady(3, 60_000) }),
  'available by priority': (queue) => queue.add({ retry: steady(3, 60_000), priority: 4 }),
  'available, requeued': async (queue) => {
    const id = await reach.active?.(queue);
    await queue.nack(id as string, {}, { requeue: true });
    return id as string;
  },
  pending: (queue) => queue.add({ pending: true, retry: steady(3, 60_000) }),
  active: async (queue) => {
    const id = await queue.add({ retry: steady(3, 60_000) });
    await queue.claim({ worker_id: 'w1' });
    return id;
  },
  retryable: async (queue) => {
    const id = (await reach.active?.(queue)) as string;
    await queue.nack(id);
    return id;
  },
  completed: async (queue) => {
    const id = (await reach.active?.(queue)) as string;
    await queue.ack(id, { result: '"done"' });
    return id;
  },
  cancelled: async (queue) => {
    const id = (await reach.active?.(queue)) as string;
    await queue.cancel(id);
    return id;
  },
  discarded: async (queue) => {
    const id = (await reach.active?.(queue)) as string;
    await queue.nack(id, { code: 'DISCARD' });
    return id;
  },
  'discarded as a dead letter': async (queue) => {
    const id = (await reach.active?.(queue)) as string;
    await queue.nack(id, { code: 'DEAD_LETTER' });
    return id;
  },
};

type Operation =
  | 'ack'
  | 'nack'
  | 'requeue'
  | 'cancel'
  | 'activate'
  | 'retry'
  | 'retry dead letter'
  | 'delete dead letter';

const operate: Record<Operation, (queue: TestQueue, id: string) => Promise<unknown>> = {
  ack: ({ api }, job_id) => api.settle({ kind: 'completed', job_id }),
  nack: ({ api }, job_id) => api.settle({ kind: 'failed', job_id, error: { message: 'm' } }),
  requeue: ({ api }, job_id) => api.settle({ job_id, kind: 'released', release: { attempt: 'used', error: {} } }),
  cancel: ({ api }, id) => api.cancel(id),
  activate: ({ api }, id) => api.activate(id),
  retry: ({ api }, id) => api.redrive(id, { deadLetterOnly: false }),
  'retry dead letter': ({ api }, id) => api.redrive(id, { deadLetterOnly: true }),
  'delete dead letter': ({ api }, id) => api.deleteDeadLetter(id),
};

/** Where each legal move leads. Everything else is refused. */
const LEGAL: Partial<Record<Operation, Record<string, JobState | 'gone'>>> = {
  ack: { active: 'completed' },
  nack: { active: 'retryable' },
  requeue: { active: 'available' },
  cancel: {
    scheduled: 'cancelled',
    available: 'cancelled',
    'available by priority': 'cancelled',
    'available, requeued': 'cancelled',
    pending: 'cancelled',
    active: 'cancelled',
    retryable: 'cancelled',
  },
  activate: { pending: 'available' },
  retry: {
    discarded: 'available',
    'discarded as a dead letter': 'available',
    cancelled: 'available',
    retryable: 'available',
  },
  'retry dead letter': { 'discarded as a dead letter': 'available' },
  'delete dead letter': { 'discarded as a dead letter': 'gone' },
};

const pairs = Object.keys(reach).flatMap((state) => (Object.keys(operate) as Operation[]).map((op) => ({ state, op })));
const legal = pairs.filter(({ state, op }) => LEGAL[op]?.[state]);
const illegal = pairs.filter(({ state, op }) => !LEGAL[op]?.[state]);

async function everything(queue: TestQueue) {
  return {
    jobs: await queue.listAll(),
    stats: await queue.stats(),
    armed: await queue.armedAt(),
    rows: await queue.rows('SELECT * FROM jobs'),
    leases: await queue.rows('SELECT * FROM leases'),
    archive: await queue.rows('SELECT * FROM archive'),
    events: await queue.api.events({ limit: 1000 }),
  };
}

describe.each(legal)('$op of a job that is $state', ({ state, op }) => {
  it(`makes it ${LEGAL[op]?.[state]}, for memory and storage alike`, async () => {
    const queue = new TestQueue();
    const id = (await reach[state]?.(queue)) as string;
    expect(await operate[op](queue, id)).toMatchObject({ ok: true });
    const expected = LEGAL[op]?.[state];
    const check = async () => {
      expect(await queue.state(id)).toBe(expected === 'gone' ? '404' : expected);
      expect(await queue.counts()).toEqual(expected === 'gone' ? {} : { [expected as string]: 1 });
      expect((await queue.stats()).dead).toBe(0);
      expect((await queue.listAll()).map((job) => job.state)).toEqual(expected === 'gone' ? [] : [expected]);
    };
    await check();
    await queue.evict();
    await check();
  });
});

describe.each(illegal)('$op of a job that is $state', ({ state, op }) => {
  it('is refused and changes nothing', async () => {
    const queue = new TestQueue();
    const id = (await reach[state]?.(queue)) as string;
    const before = await everything(queue);
    const error = refusal((await operate[op](queue, id)) as never);
    if (op.endsWith('dead letter')) expect(error).toMatchObject({ status: 404, code: 'not_found' });
    else {
      expect(error).toMatchObject({
        status: 409,
        code: 'conflict',
        details: { job_id: id, current_state: state.split(/[, ]/)[0] },
      });
    }
    expect(await everything(queue)).toEqual(before);
  });
});

describe.each(Object.keys(operate) as Operation[])('%s of a job that does not exist', (op) => {
  it.each([
    ['in a queue with jobs', true],
    ['in a queue that was never used', false],
  ])('is 404 %s', async (_, used) => {
    const queue = new TestQueue();
    if (used) await queue.add();
    for (const id of ['019461a8-1a2b-7c3d-8e4f-5a6b7c8d9e0f', 'no-id-at-all']) {
      expect(refusal((await operate[op](queue, id)) as never)).toMatchObject({ status: 404 });
    }
    expect(await queue.counts()).toEqual(used ? { available: 1 } : {});
  });
});

describe('a second life', () => {
  it.each(['discarded', 'discarded as a dead letter', 'cancelled', 'retryable'])(
    'of a %s job starts at attempt 0 with its history, and has all its attempts again',
    async (state) => {
      const queue = new TestQueue();
      const id = (await reach[state]?.(queue)) as string;
      const { history } = await queue.get(id);
      const again = await queue.redrive(id);
      expect(again).toMatchObject({ id, state: 'available', attempt: 0 });
      expect(again.history.errors).toEqual(history.errors);
      for (const gone of ['error', 'completed_at', 'discarded_at', 'cancelled_at', 'reason', 'dead_letter']) {
        expect(again.history).not.toHaveProperty(gone);
      }
      await queue.evict();
      for (let attempt = 1; attempt <= 3; attempt++) {
        clock.set(T0 + attempt * 100_000);
        expect(await queue.claim()).toMatchObject([{ id, attempt }]);
        await queue.nack(id);
      }
      expect(await queue.get(id)).toMatchObject({ state: 'discarded', attempt: 3 });
    },
  );
});

describe('a report about an attempt that is over', () => {
  it('that was not reported in time is refused, also when it names the attempt', async () => {
    const queue = new TestQueue();
    const id = await queue.add({ retry: steady(5, 60_000), body: { timeout_ms: 500 } });
    const [{ delivery_id } = {}] = await queue.claim({ worker_id: 'w1' });
    clock.set(T0 + 500);
    expect(await queue.get(id)).toMatchObject({ state: 'retryable', history: { error: { code: 'timeout' } } });
    const named = { job_id: id, attempt: 1, delivery_id: delivery_id as string };
    const late = queue.api.settle({ kind: 'failed', ...named, error: { message: 'late' } });
    expect(refusal(await late).status).toBe(409);
    expect(refusal(await queue.api.settle({ kind: 'completed', ...named })).status).toBe(409);
    expect((await queue.get(id)).history.errors).toHaveLength(1);
  });

  /** A job in its second attempt by w2, after the first by w1 ended as `ended` says. */
  async function second(queue: TestQueue, ended: 'nack' | 'lease' | 'requeue' | 'redrive') {
    const id = await queue.add({ retry: steady(5, 1000) });
    await queue.claim({ worker_id: 'w1', visibility_timeout_ms: 1000 });
    if (ended === 'nack') await queue.nack(id);
    if (ended === 'requeue') await queue.nack(id, {}, { requeue: true });
    if (ended === 'redrive') {
      await queue.cancel(id);
      await queue.redrive(id);
    }
    clock.set(T0 + 1000);
    const [job] = await queue.claim({ worker_id: 'w2' });
    expect(job).toMatchObject({ id, state: 'active' });
    return id;
  }

  it.each(['nack', 'lease', 'requeue', 'redrive'] as const)(
    'ended by %s changes nothing, named by attempt, delivery or worker',
    async (ended) => {
      const queue = new TestQueue();
      const id = await second(queue, ended);
      const names = [
        { delivery_id: `del_${id}_1` },
        { worker_id: 'w1' },
        { delivery_id: `del_${id}_3` },
        { delivery_id: 'x' },
      ];
      const stale =
        ended === 'redrive' ? names : [...names, { attempt: 1 }, { attempt: 3 }, { attempt: 2, worker_id: 'w1' }];
      for (const death of [false, true]) {
        if (death) await queue.evict();
        for (const name of stale) {
          const before = await queue.rows('SELECT * FROM jobs');
          const { api } = queue;
          expect(refusal(await api.settle({ kind: 'completed', job_id: id, ...name }))).toMatchObject({ status: 409 });
          expect(
            refusal(await api.settle({ kind: 'failed', job_id: id, error: { message: 'late' }, ...name })),
          ).toMatchObject({
            status: 409,
          });
          expect(await queue.rows('SELECT * FROM jobs')).toEqual(before);
        }
      }
      expect(await queue.get(id)).toMatchObject({ state: 'active', worker_id: 'w2' });
      expect(await queue.ack(id, { delivery_id: `del_${id}_2`, worker_id: 'w2' })).toMatchObject({
        state: 'completed',
      });
    },
  );

  it('by heartbeat neither extends nor fails', async () => {
    const queue = new TestQueue();
    const id = await second(queue, 'lease');
    expect(await queue.api.heartbeat({ worker_id: 'w1', job_ids: [id] })).toMatchObject({
      value: { extended: [] },
    });
  });

  it('is answered in the transaction in which the job completes as it is after it', async () => {
    const queue = new TestQueue();
    const [id, other] = [await second(queue, 'nack'), await queue.add()];
    await queue.claim({ worker_id: 'w3' });
    const [first, again, late, failed, cancelled] = await queue.inside(({ instance }) => {
      const ack = (job_id: string, attempt: number) => instance.settle({ kind: 'completed', job_id, attempt });
      return Promise.all([
        ack(id, 2),
        ack(id, 2),
        ack(id, 1),
        instance.settle({ kind: 'failed', job_id: id, attempt: 1, error: { message: 'late' } }),
        instance.cancel(id),
        ack(other, 1),
      ]);
    });
    expect(first).toMatchObject({ value: { record: { id, state: 'completed', attempt: 2 } } });
    expect(again).toEqual(first);
    for (const refused of [late, failed, cancelled]) expect(refusal(refused)).toMatchObject({ status: 409 });
  });

  it('repeated is answered with the stored outcome when it names its attempt, and refused when it names none', async () => {
    const queue = new TestQueue();
    const id = await queue.add({ retry: steady(2, 1000) });
    await queue.claim({ worker_id: 'w1' });
    const failed = await queue.nack(id, { message: 'first' }, { attempt: 1 });
    for (const name of [{ attempt: 1 }, { delivery_id: `del_${id}_1` }]) {
      expect(await queue.nack(id, { message: 'again' }, name)).toEqual(failed);
    }
    expect(refusal(await queue.api.settle({ kind: 'failed', job_id: id, error: {} }))).toMatchObject({ status: 409 });
    clock.set(T0 + 1000);
    await queue.claim();
    const done = await queue.ack(id, { result: '"first"', attempt: 2 });
    for (const death of [false, true]) {
      if (death) await queue.evict();
      for (const name of [{ attempt: 2 }, { delivery_id: `del_${id}_2` }]) {
        const again = await queue.ack(id, { result: '"second"', ...name });
        expect(again).toMatchObject({ state: 'completed', result: '"first"', history: { completed_at: T0 + 1000 } });
        expect({ ...again, body: JSON.parse(again.body) }).toEqual({ ...done, body: JSON.parse(done.body) });
      }
      for (const name of [{}, { attempt: 1 }, { worker_id: 'w1' }]) {
        expect(refusal(await queue.api.settle({ kind: 'completed', job_id: id, ...name }))).toMatchObject({
          status: 409,
        });
      }
      expect(refusal(await queue.api.settle({ kind: 'failed', job_id: id, error: {}, attempt: 2 }))).toMatchObject({
        status: 409,
      });
    }
  });

  it('repeated after an exhausted nack is answered with the stored outcome', async () => {
    const queue = new TestQueue();
    const id = await queue.add({ retry: steady(1) });
    await queue.claim();
    const ended = await queue.nack(id, { message: 'last' }, { attempt: 1 });
    expect(ended).toMatchObject({ state: 'discarded' });
    expect(await queue.nack(id, { message: 'again' }, { attempt: 1 })).toEqual(ended);
  });

  it('repeated after the job was given back is answered with the stored outcome', async () => {
    const queue = new TestQueue();
    const id = await queue.add();
    await queue.claim();
    const back = await queue.nack(id, {}, { attempt: 1, requeue: true });
    expect(await queue.nack(id, {}, { attempt: 1, requeue: true })).toEqual(back);
  });

  it('that was cancelled is refused', async () => {
    const queue = new TestQueue();
    const id = await queue.add();
    await queue.claim({ worker_id: 'w1' });
    await queue.cancel(id);
    for (const name of [{}, { attempt: 1 }, { delivery_id: `del_${id}_1` }, { worker_id: 'w1' }]) {
      expect(refusal(await queue.api.settle({ kind: 'completed', job_id: id, ...name }))).toMatchObject({
        status: 409,
      });
      expect(refusal(await queue.api.settle({ kind: 'failed', job_id: id, error: {}, ...name }))).toMatchObject({
        status: 409,
      });
    }
  });
});

describe('attempts', () => {
  it('are never more than max_attempts, however they end', async () => {
    const queue = new TestQueue();
    const id = await queue.add({ retry: steady(4, 0) });
    const ends: (() => Promise<unknown>)[] = [
      () => queue.nack(id, {}, { requeue: true }),
      async () => clock.set(T0 + 60_000),
      () => queue.nack(id),
      () => queue.nack(id, {}, { requeue: true }),
    ];
    for (const [index, end] of ends.entries()) {
      expect(await queue.claim({ visibility_timeout_ms: 30_000 })).toMatchObject([{ id, attempt: index + 1 }]);
      await end();
    }
    const { state, attempt, history } = await queue.get(id);
    expect({ state, attempt, reason: history.reason }).toEqual({
      state: 'discarded',
      attempt: 4,
      reason: 'retries_exhausted',
    });
    expect(history.errors?.map((entry) => entry.attempt)).toEqual([2, 3, 4]);
  });

  it('of a job with max_attempts 0 are one', async () => {
    const queue = new TestQueue();
    const id = await queue.add({ retry: steady(0) });
    await queue.claim();
    expect(await queue.nack(id)).toMatchObject({ state: 'discarded', attempt: 1 });
  });
});
