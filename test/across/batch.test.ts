/** Batches over several queues: all or nothing, whatever is refused, dies or comes late in the middle. */

import { abortAllDurableObjects } from 'cloudflare:test';
import { env } from 'cloudflare:workers';
import { v7 as uuidv7 } from 'uuid';
import { describe, expect, it } from 'vitest';
import { enqueueAcross } from '../../src/across/batch';
import { knownQueues } from '../../src/across/queues';
import { eventualOutcomeOf, unwrap } from '../../src/job/errors';
import { unpackReceipt } from '../../src/rpc/receipts';
import { clock, T0, until } from '../support/clock';
import { type JobChange, newJob, refusal, TestQueue } from '../support/queue';

clock.startAtT0();

/** A batch over a coordinator and other queues, driven by hand. */
class Batch {
  readonly id = uuidv7({ msecs: T0 });
  readonly queues: TestQueue[];

  constructor(size = 2) {
    this.queues = Array.from({ length: size }, () => new TestQueue());
  }

  get coordinator(): TestQueue {
    return this.queues[0] as TestQueue;
  }

  get others(): TestQueue[] {
    return this.queues.slice(1);
  }

  async prepare(change: JobChange = {}): Promise<string[]> {
    const receipts = await Promise.all(
      this.queues.map(({ api }) => api.prepareBatch(this.id, this.coordinator.name, [newJob(change), newJob(change)])),
    );
    return receipts.flatMap((receipt) => unwrap(receipt).jobs.map(({ record }) => record.id));
  }

  decide() {
    const { api } = this.coordinator;
    return api.decideBatch(
      this.id,
      this.others.map((queue) => queue.name),
    );
  }

  async counts() {
    return Promise.all(this.queues.map((queue) => queue.counts()));
  }

  /** Nothing is left anywhere: no rows, no stats, nothing listed, nothing to claim. */
  async expectNothing(): Promise<void> {
    for (const queue of this.queues) {
      expect(await queue.counts()).toEqual({});
      expect(await queue.listAll()).toEqual([]);
      expect(await queue.claim()).toEqual([]);
      expect(await queue.rows('SELECT key FROM jobs')).toEqual([]);
      expect(await queue.rows('SELECT id FROM aliases')).toEqual([]);
    }
  }

  /** Everything is there once, and the bookkeeping is gone. */
  async expectAll(ids: string[]): Promise<void> {
    const claimed = (await Promise.all(this.queues.map((queue) => queue.claimAll()))).flat();
    expect(claimed).toEqual(ids);
    for (const queue of this.queues) expect(await queue.counts()).toEqual({ active: 2 });
  }

  async bookkeeping(): Promise<number> {
    const rows = await Promise.all(this.queues.map((queue) => queue.rows('SELECT address FROM outbox')));
    return rows.flat().length;
  }

  /** The coordinator cannot reach these queues, until it is constructed anew. */
  cutOff(...names: string[]): Promise<void> {
    return this.coordinator.cutOff(...names);
  }
}

describe('a job that is held for a batch', () => {
  it('is invisible before the decision', async () => {
    const batch = new Batch();
    const ids = await batch.prepare();
    for (const queue of batch.queues) {
      expect(await queue.counts()).toEqual({});
      expect(await queue.listAll()).toEqual([]);
      expect(await queue.claim()).toEqual([]);
      for (const id of ids) {
        expect(await queue.state(id)).toBe('404');
        expect(refusal(await queue.api.cancel(id))).toMatchObject({ status: 404 });
      }
    }
  });

  it('keeps its id from being taken', async () => {
    const id = uuidv7();
    const batch = new Batch();
    const { api, name } = batch.coordinator;
    unwrap(await api.prepareBatch(batch.id, name, [newJob({ id })]));
    expect(refusal(await api.enqueue([newJob({ id })]))).toMatchObject({ status: 409, code: 'duplicate' });
    unwrap(await api.abortBatch(batch.id));
    expect(unpackReceipt(unwrap(await api.enqueue([newJob({ id })]))).jobs).toHaveLength(1);
  });

  it('does not expire before the decision, and does at once if its time has passed by then', async () => {
    const batch = new Batch();
    const ids = await batch.prepare({ expiresAt: T0 + 1000 });
    clock.set(T0 + 2000);
    expect(await batch.counts()).toEqual([{}, {}]);
    unwrap(await batch.decide());
    expect(await batch.coordinator.counts()).toEqual({ discarded: 2 });
    expect(await batch.coordinator.get(ids[0] as string)).toMatchObject({ history: { reason: 'expired' } });
  });
});

describe('a batch', () => {
  it.each<[string, JobChange, string]>([
    ['at once', {}, 'available'],
    ['later', { scheduledAt: T0 + 60_000 }, 'scheduled'],
    ['when activated', { pending: true }, 'pending'],
  ])('of jobs to run %s becomes real in every queue', async (_, change, state) => {
    const batch = new Batch();
    const ids = await batch.prepare(change);
    unwrap(await batch.decide());
    const [, other] = batch.queues as [TestQueue, TestQueue];
    unwrap(await other.api.commitBatch(batch.id));
    expect(await batch.counts()).toEqual([{ [state]: 2 }, { [state]: 2 }]);
    await other.evict();
    expect(await other.state(ids[2] as string)).toBe(state);
  });

  it('decided and committed twice is there once', async () => {
    const batch = new Batch();
    const ids = await batch.prepare();
    await batch.cutOff(...batch.others.map(({ name }) => name));
    for (let n = 0; n < 2; n++) {
      unwrap(await batch.decide());
      for (const { api } of batch.queues) unwrap(await api.commitBatch(batch.id));
    }
    for (const { api } of batch.queues) unwrap(await api.abortBatch(batch.id));
    await batch.expectAll(ids);
  });

  it('whose driver dies before the decision is given up after a while, and nothing is left', async () => {
    const batch = new Batch(3);
    await batch.prepare();
    await abortAllDurableObjects();
    clock.set(T0 + 10_000);
    for (const queue of batch.queues) expect(await queue.alarm()).toBe(true);
    await until(async () => (await batch.bookkeeping()) === 0, 'the batch to be forgotten');
    await batch.expectNothing();
    expect(refusal(await batch.decide())).toMatchObject({ status: 503, code: 'unavailable' });
    await batch.expectNothing();
  });

  it('decided after it was abandoned is refused, and nothing is left', async () => {
    const batch = new Batch();
    await batch.prepare();
    const { api } = batch.coordinator;
    expect(unwrap(await api.batchDecision(batch.id))).toBe('aborted');
    await batch.coordinator.evict();
    expect(refusal(await batch.decide())).toMatchObject({ status: 503, code: 'unavailable' });
    clock.set(T0 + 10_000);
    await batch.others[0]?.alarm();
    await until(
      async () => (await batch.others[0]?.rows('SELECT address FROM outbox'))?.length === 0,
      'the other queue',
    );
    await batch.expectNothing();
  });

  it.each(['coordinator', 'participant'] as const)(
    'whose driver dies after the decision is finished by the %s, once',
    async (who) => {
      const batch = new Batch(3);
      const ids = await batch.prepare();
      await batch.cutOff(...batch.others.map(({ name }) => name));
      unwrap(await batch.decide());
      expect(await batch.counts()).toEqual([{ available: 2 }, {}, {}]);
      await abortAllDurableObjects();
      clock.set(T0 + 10_000);
      for (const queue of who === 'coordinator' ? [batch.coordinator] : batch.others) await queue.alarm();
      await until(async () => (await batch.counts()).every(({ available }) => available === 2), 'the commit');
      // Whatever comes late now changes nothing.
      for (const { api } of batch.others) {
        unwrap(await api.commitBatch(batch.id));
        unwrap(await api.abortBatch(batch.id));
      }
      expect(await batch.coordinator.api.batchDecision(batch.id)).toBeDefined();
      await batch.expectAll(ids);
    },
  );

  it('forgets its bookkeeping when every queue has heard, and not before', async () => {
    const batch = new Batch(3);
    await batch.prepare();
    const [, second] = batch.others as [TestQueue, TestQueue];
    await batch.cutOff(second.name);
    unwrap(await batch.decide());
    expect(unwrap(await batch.coordinator.api.batchDecision(batch.id))).toBe('committed');
    expect(await batch.counts()).toEqual([{ available: 2 }, { available: 2 }, {}]);
    expect(await batch.bookkeeping()).toBe(2);
    await batch.coordinator.evict();
    await batch.coordinator.alarm();
    await until(async () => (await batch.bookkeeping()) === 0, 'every queue to hear');
    expect(await batch.counts()).toEqual([{ available: 2 }, { available: 2 }, { available: 2 }]);
  });

  it('continues although another one cannot be finished', async () => {
    const stuck = new TestQueue();
    unwrap(await stuck.api.prepareBatch('a-batch', '', [newJob()]));
    unwrap(await stuck.api.prepareBatch('b-batch', stuck.name, [newJob()]));
    await stuck.cutOff('');
    clock.set(T0 + 10_000);
    await stuck.alarm();
    const left = () => stuck.rows("SELECT address AS batch FROM outbox WHERE kind = 'share'");
    await until(async () => (await left()).length === 1, 'the second batch');
    expect(await left()).toEqual([{ batch: 'a-batch' }]);
    expect(await stuck.armedAt()).toBe(T0 + 11_000);
  });
});

describe('enqueueing across queues', () => {
  const group = (queue: TestQueue, jobs: JobChange[], first: number) => ({
    queue: queue.name,
    jobs: jobs.map(newJob),
    indexes: jobs.map((_, n) => first + n),
  });

  it('answers the jobs in the order of the request, and leaves no bookkeeping', async () => {
    const [a, b] = [new TestQueue(), new TestQueue()];
    const views = await enqueueAcross(env, [group(a, [{}, {}], 0), group(b, [{}], 2)]);
    expect(views.map(({ record }) => record.queue)).toEqual([a.name, a.name, b.name]);
    expect([await a.counts(), await b.counts()]).toEqual([{ available: 2 }, { available: 1 }]);
    for (const queue of [a, b]) expect(await queue.rows('SELECT address FROM outbox')).toEqual([]);
  });

  it.each([0, 1])('leaves nothing anywhere when queue %i refuses', async (at) => {
    const id = uuidv7();
    const queues = [new TestQueue(), new TestQueue()] as const;
    for (const { api } of queues) unwrap(await api.resume());
    await queues[at]?.add({ id });
    const groups = queues.map((queue, n) => group(queue, n === at ? [{}, { id }] : [{}, {}], 2 * n));
    const error = refusal(await eventualOutcomeOf(() => enqueueAcross(env, groups)));
    expect(error).toMatchObject({ status: 409, code: 'duplicate', details: { index: 2 * at + 1 } });
    for (const [n, queue] of queues.entries()) {
      expect(await queue.counts()).toEqual(n === at ? { available: 1 } : {});
      expect(await queue.rows('SELECT key FROM jobs')).toEqual([]);
      expect(await queue.rows('SELECT jobs FROM blocks')).toEqual(n === at ? [{ jobs: 1 }] : []);
      expect(await queue.listAll()).toHaveLength(n === at ? 1 : 0);
    }
  });

  it('gives the batch up at once when its decision is refused', async () => {
    const queues = [new TestQueue(), new TestQueue()] as const;
    const [{ api }] = queues;
    unwrap(await api.enqueue([newJob()], undefined, { key: 'k', hash: 'another request' }));
    const groups = queues.map((queue, n) => group(queue, [{}], n));
    const idempotency = { key: 'k', hash: 'this request' };
    const refused = await eventualOutcomeOf(() => enqueueAcross(env, groups, { idempotency }));
    expect(refusal(refused)).toMatchObject({ status: 409, details: { idempotency_key: 'k' } });
    expect(await Promise.all(queues.map((queue) => queue.rows('SELECT key FROM jobs')))).toEqual([[], []]);
    expect(await Promise.all(queues.map((queue) => queue.counts()))).toEqual([{ available: 1 }, {}]);
    const shares = "SELECT address FROM outbox WHERE kind = 'share'";
    expect(await Promise.all(queues.map((queue) => queue.rows(shares)))).toEqual([[], []]);
  });

  const unique = {
    fingerprint: 'f',
    states: ['available' as const],
    on_conflict: 'reject' as const,
    scope: 'queue' as const,
  };
  it.each<[string, JobChange[], boolean]>([
    ['that exists', [{ retry: { backoff_coefficient: 0 } }], true],
    ['that is new as well', [{ retry: { backoff_coefficient: 0 } }], false],
    ['that is new and was given duplicates', [{ unique }, { unique }], false],
  ])('creates no queue when one refuses %s', async (_, wrong, exists) => {
    const queues = [new TestQueue(), new TestQueue(), new TestQueue()] as const;
    const culprit = queues[1];
    if (exists) unwrap(await culprit.api.resume());
    const known = async () => {
      const names = await knownQueues(env);
      return queues.filter(({ name }) => names.includes(name));
    };
    const before = await known();
    const groups = queues.map((queue, n) => group(queue, queue === culprit ? wrong : [{}], 2 * n));
    expect(refusal(await eventualOutcomeOf(() => enqueueAcross(env, groups)))).toMatchObject({
      status: expect.any(Number),
    });
    expect(await known()).toEqual(before);
    // What was refused stands in nobody's way.
    const good = queues.map((queue, n) => group(queue, [{}], n));
    expect(await enqueueAcross(env, good)).toHaveLength(3);
    for (const queue of queues) expect(await queue.counts()).toEqual({ available: 1 });
  });
});
