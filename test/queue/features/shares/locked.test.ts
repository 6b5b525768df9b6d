/** All or none over several queues: locked, decided, done; whatever is refused, dies or comes late in the middle. */

import fc from 'fast-check';
import { v7 as uuidv7 } from 'uuid';
import { describe, expect, it } from 'vitest';
import { unwrap } from '../../../../src/job/errors';
import type { JobState } from '../../../../src/job/states';
import type { BulkAction } from '../../../../src/rpc/operations';
import { clock, T0, until } from '../../../support/clock';
import { histories } from '../../../support/long';
import { type JobChange, newJob, refusal, steady, TestQueue } from '../../../support/queue';

clock.startAtT0();

/** An operation over a coordinator and another queue, driven by hand. */
class Operation {
  readonly id = uuidv7({ msecs: T0 });
  readonly queues = [new TestQueue(), new TestQueue()] as const;
  ids: string[][] = [[], []];

  constructor(readonly action: BulkAction) {}

  get 0(): TestQueue {
    return this.queues[0];
  }

  get 1(): TestQueue {
    return this.queues[1];
  }

  async add(...changes: JobChange[]): Promise<this> {
    for (const [at, queue] of this.queues.entries()) {
      this.ids[at]?.push(...(await queue.enqueue(...changes)).map(({ id }) => id));
    }
    return this;
  }

  prepare(at: number) {
    const { api } = this.queues[at] as TestQueue;
    return api.prepareBulk(this.id, this[0].name, { action: this.action, ids: this.ids[at] ?? [] });
  }

  async prepareAll(): Promise<void> {
    for (const at of [0, 1]) expect(unwrap(await this.prepare(at)).applied).toBe(true);
  }

  decide() {
    return this[0].api.decideBatch(this.id, [this[1].name]);
  }

  async commit(): Promise<void> {
    unwrap(await this.decide());
    unwrap(await this[1].api.commitBatch(this.id));
  }

  async abort(): Promise<void> {
    expect(unwrap(await this[0].api.batchDecision(this.id))).toBe('aborted');
    unwrap(await this[1].api.abortBatch(this.id));
  }

  states(): Promise<string[]> {
    return Promise.all(this.queues.flatMap((queue, at) => (this.ids[at] ?? []).map((id) => queue.state(id))));
  }

  counts() {
    return Promise.all(this.queues.map((queue) => queue.counts()));
  }
}

/** Everything that is seen of a queue from outside. */
async function seen(queue: TestQueue) {
  const jobs = await queue.listAll();
  return { counts: await queue.counts(), jobs, dead: (await queue.stats()).dead };
}

/** Jobs of every kind that can be cancelled. */
const WAITING: JobChange[] = [
  {},
  { priority: 7 },
  { scheduledAt: T0 + 60_000 },
  { pending: true },
  { expiresAt: T0 + 50_000 },
];

describe('a job that is locked', () => {
  it('is seen as it was, given to no one and changed by no one', async () => {
    const operation = await new Operation('cancel').add(...WAITING);
    const [queue] = operation.queues;
    const before = await seen(queue);
    unwrap(await operation.prepare(0));
    expect(await seen(queue)).toEqual(before);
    await queue.evict();
    expect(await seen(queue)).toEqual(before);
    expect(await queue.claimAll()).toEqual([]);
    const { api, name } = queue;
    for (const id of operation.ids[0] ?? []) {
      for (const outcome of [
        await api.cancel(id),
        await api.activate(id),
        await api.redrive(id, { deadLetterOnly: false }),
        await api.patch({ id, priority: 3 }),
        await api.bulk({ action: 'cancel', ids: [id], atomic: true }),
        await api.prepareBulk(uuidv7({ msecs: T0 }), name, { action: 'cancel', ids: [id] }),
      ]) {
        expect(refusal(outcome)).toMatchObject({ status: 503, retryable: true, details: { reason: 'locked' } });
      }
    }
    const ids = operation.ids[0] ?? [];
    const partial = unwrap(await api.bulk({ action: 'cancel', ids, atomic: false }));
    expect(partial.items).toEqual(ids.map((job_id) => ({ job_id, status: 'failed', reason: 'locked' })));
    const filtered = unwrap(await api.operate({ id: uuidv7(), action: 'cancel', filter: {} }, 5_000));
    expect(filtered).toMatchObject({ done: true, matched: 5, succeeded: 0, failed: 5 });
    expect(await seen(queue)).toEqual(before);
  });

  it('leaves the way free for the others', async () => {
    const operation = await new Operation('cancel').add({}, { priority: 7 });
    const [queue] = operation.queues;
    unwrap(await operation.prepare(0));
    const later = [await queue.add(), await queue.add({ priority: 7 })];
    expect(await queue.claimAll()).toEqual(later.reverse());
  });

  it('does not expire, and is not pruned, before the decision', async () => {
    const cancel = await new Operation('cancel').add({ expiresAt: T0 + 1000 });
    const retry = await new Operation('retry').add({});
    for (const [at, { api }] of retry.queues.entries()) {
      unwrap(await api.configure({ retention: { cancelled: 1000 } }));
      unwrap(await api.cancel(retry.ids[at]?.[0] as string));
    }
    await cancel.prepareAll();
    await retry.prepareAll();
    clock.set(T0 + 9_000);
    for (const queue of [...cancel.queues, ...retry.queues]) await queue.alarm();
    expect(await cancel.states()).toEqual(['available', 'available']);
    unwrap(await cancel.decide());
    unwrap(await retry.decide());
    expect(await cancel[0].state(cancel.ids[0]?.[0] as string)).toBe('cancelled');
    expect(await retry[0].state(retry.ids[0]?.[0] as string)).toBe('available');
  });

  it('is cancelled by a newer unique job that was to replace it before it was locked', async () => {
    const fingerprint = 'f'.repeat(64);
    const states: JobState[] = ['available'];
    const unique = { fingerprint, scope: 'queue', states, on_conflict: 'replace' } as const;
    const operation = await new Operation('cancel').add({ unique, body: { fingerprint } });
    const [{ api, name }] = operation.queues;
    const batch = uuidv7({ msecs: T0 });
    unwrap(await api.prepareBatch(batch, name, [newJob({ unique, body: { fingerprint } })]));
    await operation.prepareAll();
    unwrap(await api.decideBatch(batch, []));
    expect(await operation[0].counts()).toEqual({ available: 1, cancelled: 1 });
    await operation[0].evict();
    // It is counted no more.
    unwrap(await api.configure({ max_depth: 1, max_bytes: 1_000_000 }));
    expect(refusal(await api.enqueue([newJob()]))).toMatchObject({ details: { depth: 1 } });
    await operation.abort();
    expect(await operation.states()).toEqual(['cancelled', 'available']);
    expect(await operation[0].counts()).toEqual({ available: 1, cancelled: 1 });
    // While a job is locked it is not known whether a newcomer is a duplicate.
    const other = await new Operation('cancel').add({ unique, body: { fingerprint } });
    await other.prepareAll();
    const newcomer = newJob({ unique, body: { fingerprint } });
    expect(refusal(await other[0].api.enqueue([newcomer]))).toMatchObject({ status: 503 });
  });

  it('may be locked again when it was cancelled despite its lock, and is, whatever becomes of the first', async () => {
    const first = await new Operation('cancel').add({});
    await first.prepareAll();
    const [{ api, name }] = first.queues;
    const [id] = first.ids[0] as [string];
    await api.cancelSteps([id]);
    const second = uuidv7({ msecs: T0 });
    expect(unwrap(await api.prepareBulk(second, name, { action: 'purge', ids: [id] })).applied).toBe(true);
    await first.abort();
    for (const _ of ['before an eviction', 'after one']) {
      expect(refusal(await api.redrive(id, { deadLetterOnly: false }))).toMatchObject({ status: 503 });
      await first[0].evict();
    }
    unwrap(await api.decideBatch(second, []));
    expect(await first[0].counts()).toEqual({});
  });
});

describe('decided for', () => {
  it('every waiting job is cancelled, in both queues', async () => {
    const operation = await new Operation('cancel').add(...WAITING);
    await operation.prepareAll();
    await operation.commit();
    expect(await operation.states()).toEqual(Array(10).fill('cancelled'));
    expect(await operation.counts()).toEqual([{ cancelled: 5 }, { cancelled: 5 }]);
    for (const queue of operation.queues) {
      expect(await queue.claimAll()).toEqual([]);
      await queue.evict();
      expect(await queue.counts()).toEqual({ cancelled: 5 });
    }
  });

  it('every ended or failed job gets another life', async () => {
    const operation = await new Operation('retry').add(
      { type: 'a.cancelled' },
      { type: 'b.dead', retry: { max_attempts: 1, on_exhaustion: 'dead_letter' } },
      { type: 'c.discarded', retry: { max_attempts: 1 } },
      { type: 'd.retryable', retry: steady(5, 30_000) },
    );
    for (const [at, queue] of operation.queues.entries()) {
      const [cancelled = ''] = operation.ids[at] ?? [];
      await queue.cancel(cancelled);
      for (const { id } of await queue.claim({ count: 3 })) await queue.nack(id);
      expect((await queue.stats()).dead).toBe(1);
    }
    const before = await seen(operation[0]);
    await operation.prepareAll();
    expect(await seen(operation[0])).toEqual(before);
    // The retry that comes due meanwhile is still the one that was judged.
    clock.set(T0 + 31_000);
    await operation.commit();
    expect(await operation.states()).toEqual(Array(8).fill('available'));
    expect((await operation[0].stats()).dead).toBe(0);
    for (const job of await operation[0].claim({ count: 9 })) expect(job.attempt).toBe(1);
  });

  it('every ended job is deleted, also completed ones', async () => {
    const operation = await new Operation('delete').add({}, {});
    for (const [at, queue] of operation.queues.entries()) {
      const [completed = '', cancelled = ''] = operation.ids[at] ?? [];
      await queue.claim();
      await queue.ack(completed);
      await queue.cancel(cancelled);
    }
    await operation.prepareAll();
    expect(await operation.states()).toEqual(['completed', 'cancelled', 'completed', 'cancelled']);
    await operation.commit();
    expect(await operation.states()).toEqual(Array(4).fill('404'));
    expect(await operation.counts()).toEqual([{}, {}]);
  });

  it('twice it is done once', async () => {
    const operation = await new Operation('cancel').add({});
    await operation.prepareAll();
    await operation[0].cutOff(operation[1].name);
    await operation.commit();
    for (const [at, queue] of operation.queues.entries()) await queue.redrive(operation.ids[at]?.[0] as string);
    await operation.commit();
    await operation[1].api.abortBatch(operation.id);
    expect(await operation.states()).toEqual(['available', 'available']);
  });

  it('a queue that was not notified asks, or is notified by the one that decided', async () => {
    for (const who of [0, 1]) {
      clock.set(T0);
      const operation = await new Operation('cancel').add({});
      await operation.prepareAll();
      await operation[0].cutOff(operation[1].name);
      unwrap(await operation.decide());
      for (const queue of operation.queues) await queue.evict();
      expect(await operation.states()).toEqual(['cancelled', 'available']);
      clock.set(T0 + 11_000);
      await (operation.queues[who] as TestQueue).alarm();
      await until(async () => (await operation.states())[1] === 'cancelled', 'the other queue to hear of it');
    }
  });
});

describe('decided against', () => {
  it('every job is where it was, in its old order', async () => {
    const operation = new Operation('cancel');
    const [queue] = operation.queues;
    const first = await queue.add();
    await operation.add(...WAITING);
    const last = [await queue.add(), await queue.add({ priority: 7 })];
    await operation.prepareAll();
    // Somebody reads past them meanwhile.
    await queue.claim({ count: 1 });
    await operation.abort();
    const [plain, urgent, later, pending, expiring] = operation.ids[0] ?? [];
    expect(await queue.counts()).toMatchObject({ scheduled: 1, pending: 1, active: 1 });
    expect(await queue.claimAll()).toEqual([urgent, first, plain, expiring, last[0]]);
    clock.set(T0 + 60_000);
    expect(await queue.claimAll()).toEqual([later]);
    expect(await queue.activate(pending as string)).toMatchObject({ state: 'available' });
    expect(await queue.rows('SELECT count(*) AS n FROM jobs WHERE state = 5')).toEqual([{ n: 0 }]);
  });

  it('a job that expired meanwhile does so at once, and one that has ended is pruned in time', async () => {
    const operation = await new Operation('cancel').add({ expiresAt: T0 + 1000 });
    await operation.prepareAll();
    clock.set(T0 + 2000);
    await operation.abort();
    expect(await operation.states()).toEqual(['discarded', 'discarded']);
    const retry = await new Operation('retry').add({});
    for (const [at, queue] of retry.queues.entries()) await queue.cancel(retry.ids[at]?.[0] as string);
    await retry.prepareAll();
    await retry.abort();
    expect(await retry.states()).toEqual(['cancelled', 'cancelled']);
    clock.set(T0 + 9 * 86_400_000);
    await retry[0].alarm();
    expect(await retry[0].counts()).toEqual({});
  });

  it('a coordinator that died holds the jobs no longer than some seconds', async () => {
    const operation = await new Operation('cancel').add({}, { priority: 3 });
    await operation.prepareAll();
    for (const queue of operation.queues) await queue.evict();
    clock.set(T0 + 10_000);
    await operation[1].alarm();
    await until(async () => (await operation[1].claim()).length === 1, 'the jobs to be given out again');
    await operation[0].alarm();
    expect(await operation[0].claimAll()).toHaveLength(2);
    expect(refusal(await operation.decide())).toMatchObject({ status: 503 });
  });

  it('one job that cannot, or runs, is reason enough to lock none', async () => {
    const operation = await new Operation('cancel').add({}, {});
    const [queue] = operation.queues;
    const [running, waiting] = operation.ids[0] ?? [];
    await queue.claim();
    expect(unwrap(await operation.prepare(0))).toEqual({
      applied: false,
      items: [
        { job_id: running, status: 'skipped', reason: 'active' },
        { job_id: waiting, status: 'done' },
      ],
    });
    expect(await queue.claimAll()).toEqual([waiting]);
    expect(await queue.rows('SELECT * FROM outbox')).toEqual([]);
  });
});

describe('limits and bounds', () => {
  it('a bounded queue counts a locked job among its jobs', async () => {
    const operation = await new Operation('cancel').add({}, {});
    const [queue] = operation.queues;
    unwrap(await queue.api.configure({ max_depth: 3, max_bytes: 100_000 }));
    unwrap(await operation.prepare(0));
    await queue.evict();
    expect(await queue.enqueue({})).toHaveLength(1);
    expect(refusal(await queue.api.enqueue([newJob()]))).toMatchObject({ code: 'QUEUE_FULL' });
    unwrap(await operation.prepare(1));
    await operation.commit();
    expect(await queue.enqueue({}, {})).toHaveLength(2);
    expect(refusal(await queue.api.enqueue([newJob()]))).toMatchObject({ code: 'QUEUE_FULL' });
  });

  it('a locked job gives its turn under a limit to the next one, and gets in line again', async () => {
    const rate_limit = { key: 'k', concurrency: 1 };
    const limit = { key: 'k', limits: { concurrency: 1 }, on_limit: 'wait' } as const;
    const operation = new Operation('cancel');
    const [queue] = operation.queues;
    const job: JobChange = { limit, body: { rate_limit } };
    const [running] = await queue.enqueue(job);
    await queue.claim();
    await operation.add(job);
    const next = await queue.add(job);
    await operation.prepareAll();
    await queue.ack(running?.id as string);
    expect(await queue.claimAll()).toEqual([next]);
    await operation.abort();
    expect(await queue.claimAll()).toEqual([]);
    await queue.ack(next);
    expect(await queue.claimAll()).toEqual(operation.ids[0]);
  });
});

it('all jobs are cancelled or none, and none that a worker was given, at any interleaving', async () => {
  const events = [
    'decide',
    'tell',
    'claim 0',
    'claim 1',
    'evict 0',
    'evict 1',
    'alarm 0',
    'alarm 1',
    'tick',
    'give up',
  ];
  await fc.assert(
    fc.asyncProperty(fc.array(fc.constantFrom(...events), { maxLength: 10 }), fc.boolean(), async (history, early) => {
      clock.set(T0);
      let now = T0;
      const operation = await new Operation('cancel').add({}, { priority: 2 });
      const given: string[] = [];
      if (early) given.push(...(await operation[1].claim()).map(({ id }) => id));
      const prepared = unwrap(await operation.prepare(0)).applied && unwrap(await operation.prepare(1)).applied;
      expect(prepared).toBe(!early);
      let decided = false;
      for (const event of history) {
        const [what, at] = event.split(' ');
        const queue = operation.queues[Number(at ?? 0)] as TestQueue;
        if (what === 'decide' && prepared) decided ||= (await operation.decide()).ok;
        else if (what === 'tell' && decided) await operation[1].api.commitBatch(operation.id);
        else if (what === 'claim') given.push(...(await queue.claimAll()));
        else if (what === 'evict') {
          // Only what is in memory can be thrown out of it.
          await queue.counts();
          await queue.evict();
        } else if (what === 'alarm') await queue.alarm();
        else if (what === 'give') await operation[0].api.batchDecision(operation.id);
        else if (what === 'tick') {
          now += 6_000;
          clock.set(now);
        }
      }
      await until(async () => {
        now += 11_000;
        clock.set(now);
        for (const queue of operation.queues) await queue.alarm();
        const held = await Promise.all(
          operation.queues.map((queue) => queue.rows("SELECT address FROM outbox WHERE kind = 'share'")),
        );
        return held.flat().length === 0;
      }, 'every queue to know the decision');
      const states = await operation.states();
      const cancelled = states.filter((state) => state === 'cancelled');
      expect(cancelled.length).toBe(decided ? 4 : 0);
      if (decided) expect(given).toEqual([]);
      for (const queue of operation.queues) given.push(...(await queue.claimAll()));
      expect(given.sort()).toEqual(decided ? [] : operation.ids.flat().sort());
    }),
    { numRuns: histories(40) },
  );
});

it('the rows that it costs are bounded by its jobs', async () => {
  const operation = await new Operation('cancel').add(...Array<JobChange>(100).fill({ priority: 1 }));
  await operation[0].startCounting();
  await operation.prepareAll();
  await operation.commit();
  const { read, written } = await operation[0].counted();
  // They leave their block, which goes.
  expect(written).toBeLessThanOrEqual(100 * 5 + 9);
  expect(read).toBeLessThanOrEqual(100 * 25);
});
