/** A worker that pulls through the client, and operators who direct it, against the queue itself. */

import { beforeEach, describe, expect, expectTypeOf, it } from 'vitest';
import { ConflictError, NotFoundError, TocsinClient } from '../../src/client';
import { snooze } from '../../src/handler';
import { freshName } from '../support/queue';
import { server } from '../support/server';

import { fakeQueue } from './fake-queue';
import { all, liveClient } from './live-client';

server.emptyBeforeEach();
const client = liveClient();
const { workers } = client;
let queue: string;
beforeEach(() => {
  queue = freshName('pull');
});

describe('a worker', () => {
  it('fetches, keeps its leases, and reports what became of its jobs', async () => {
    const retry = { initialInterval: '1h' as const };
    await client.enqueueMany(['a', 'b', 'c'].map((n) => ({ type: 'test.step', args: [n], options: { queue, retry } })));
    const worker = client.worker('w1', { queues: [queue], visibilityTimeoutMs: 30_000, version: '1', labels: ['gpu'] });
    const [first, second, third] = await worker.fetch({ count: 10 });
    if (!first || !second || !third) throw new Error('three jobs were enqueued');
    expect(first).toMatchObject({ args: ['a'], attempt: 1, workerId: 'w1' });
    const told = await worker.heartbeat([first, second.id]);
    expect(told).toMatchObject({ state: 'running', jobsExtended: [first.id, second.id] });
    expect(await worker.ack(first, { done: true })).toMatchObject({ state: 'completed', result: { done: true } });
    expect(await worker.nack(second, new RangeError('too far'))).toMatchObject({
      state: 'retryable',
      error: { type: 'RangeError', message: 'too far' },
    });
    expect(await worker.release(third)).not.toHaveProperty('error');
    // The same report again is answered with what is on record.
    expect(await worker.ack(first, { done: true })).toMatchObject({ state: 'completed' });
    await expect(worker.ack(second)).rejects.toThrow(ConflictError);
  });

  it('reports many at once, and fetches with that, each with an outcome of its own', async () => {
    const retry = { initialInterval: '1h' as const };
    await client.enqueueMany([1, 2, 3, 4].map((n) => ({ type: 'test.step', args: [n], options: { queue, retry } })));
    const worker = client.worker('w1', { queues: [queue] });
    const [first, second, third] = await worker.fetch({ count: 3 });
    if (!first || !second || !third) throw new Error('three jobs were enqueued');
    const outcomes = await worker.report([
      { job: second, error: snooze('1h') },
      { job: first, result: { own_name: 1 } },
      { job: { ...third, attempt: 7 } },
    ]);
    expect(outcomes).toMatchObject([
      { jobId: second.id, status: 'done', state: 'scheduled', scheduledAt: expect.any(String) },
      { jobId: first.id, status: 'done', state: 'completed' },
      { jobId: third.id, status: 'failed', error: { code: 'conflict', details: { currentAttempt: 1 } } },
    ]);
    expect(outcomes[2]?.error).toBeInstanceOf(ConflictError);
    expect((await client.get(first.id)).result).toEqual({ own_name: 1 });
    const written = worker.writeReport(third, { status: 'failed', error: { code: 'c', type: 'T', message: 'm' } });
    const { jobs, outcomes: told } = await worker.exchange([written], { count: 5 });
    expect(jobs.map(({ args }) => args)).toEqual([[4]]);
    expect(told).toMatchObject([{ jobId: third.id, state: 'retryable', nextAttemptAt: expect.any(String) }]);
    expect(await worker.report([])).toEqual([]);
  });

  it('reports a result that cannot be sent as the failure of its own job', async () => {
    await client.enqueueMany([1, 2, 3].map((n) => ({ type: 'test.step', args: [n], options: { queue } })));
    const worker = client.worker('w1', { queues: [queue] });
    const [first, second, third] = await worker.fetch({ count: 3 });
    if (!first || !second || !third) throw new Error('three jobs were enqueued');
    const outcomes = await worker.report([
      { job: first, result: '\ud83d' },
      { job: second, result: 1n },
      { job: third, result: 'fine' },
    ]);
    expect(outcomes.map(({ status }) => status)).toEqual(['done', 'done', 'done']);
    expect(await client.get(first.id)).toMatchObject({ state: 'discarded', error: { code: 'result_not_text' } });
    expect(await client.get(second.id)).toMatchObject({ state: 'retryable', error: { type: 'UnserialisableResult' } });
    expect(await client.get(third.id)).toMatchObject({ state: 'completed', result: 'fine' });
  });

  it('says when to try again in its own words', async () => {
    const { client, requests } = fakeQueue(() => Response.json({ job: { id: 'x' } }));
    const worker = client.worker('w', { queues: ['a'] });
    await worker.nack({ id: 'x', attempt: 2 }, { code: 'busy', retryIn: '30s', retryAt: new Date(0), kill: false });
    expect(requests[0]?.body).toEqual({
      job_id: 'x',
      attempt: 2,
      worker_id: 'w',
      error: { code: 'busy', retry_in: '30s', retry_at: '1970-01-01T00:00:00.000Z', kill: false },
    });
  });

  it('reports again when there was no answer, but does not fetch again', async () => {
    const { client, requests } = fakeQueue((_, index) => {
      if (index !== 1) throw new Error('connection lost');
      return Response.json({ job: { id: 'x' } });
    });
    const worker = client.worker('w', { queues: ['a'] });
    await worker.ack({ id: 'x', attempt: 1 });
    await expect(worker.fetch()).rejects.toMatchObject({ outcomeUnknown: true });
    expect(requests.map(({ path }) => path)).toEqual(['/workers/ack', '/workers/ack', '/workers/fetch']);
  });

  it('waits for work no longer than half of the time that the client waits for an answer', async () => {
    const { client, requests } = fakeQueue(() => Response.json({ jobs: [] }), { timeoutMs: 5000 });
    await client.worker('w', { queues: ['a'] }).fetch({ waitMs: 10_000 });
    expect(requests[0]?.body).toMatchObject({ wait_ms: 2500 });
  });

  it('tells its jobs apart by their types', () => {
    const typed = new TocsinClient<{ 'a.b': [string]; 'c.d': [number, boolean] }>({ url: 'http://localhost' });
    const worker = typed.worker('w', { queues: ['a'] });
    type Fetched = Awaited<ReturnType<typeof worker.fetch>>[number];
    expectTypeOf<Extract<Fetched, { type: 'c.d' }>['args']>().toEqualTypeOf<[number, boolean]>();
    expectTypeOf<Fetched['type']>().toEqualTypeOf<'a.b' | 'c.d'>();
  });
});

describe('operators', () => {
  it('see workers and what they hold, and direct them', async () => {
    await client.enqueue('test.step', [], { queue });
    const worker = client.worker('w1', { queues: [queue], hostname: 'here', concurrency: 4 });
    const [job] = await worker.fetch();
    await worker.heartbeat();
    expect(await workers.get('w1')).toMatchObject({
      id: 'w1',
      hostname: 'here',
      state: 'running',
      jobs: [{ id: job?.id }],
    });
    expect((await all(workers.list())).map(({ id }) => id)).toEqual(['w1']);
    expect(await workers.counts()).toMatchObject({ total: 1, running: 1 });
    expect(await workers.health('w1')).toMatchObject({ workerId: 'w1', healthy: true });
    expect(await workers.quiet('w1')).toMatchObject({ directive: 'quiet' });
    expect(await worker.heartbeat()).toMatchObject({ state: 'quiet' });
    expect(await workers.direct('terminate')).toBe(1);
    expect(await worker.heartbeat()).toMatchObject({ state: 'terminate' });
    expect(await workers.direct('running', 'w1')).toBe(1);
    await expect(workers.remove('w1')).rejects.toThrow(ConflictError);
  });

  it('learn that a worker is leaving without an error, and that there is none as one', async () => {
    const worker = client.worker('w2', { queues: [queue] });
    await worker.heartbeat([], 'drain');
    expect(await workers.health('w2')).toMatchObject({ healthy: false, state: 'draining' });
    await expect(workers.health('nobody')).rejects.toThrow(NotFoundError);
  });
});
