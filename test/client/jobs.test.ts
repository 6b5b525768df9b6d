/** Single jobs through the client, against the queue itself: waiting, results, progress, checkpoints, operators' view. */

import { beforeEach, describe, expect, it } from 'vitest';
import { ConflictError, NotFoundError, WaitTimeoutError } from '../../src/client';
import { freshName } from '../support/queue';
import { server, UNKNOWN_ID, V1 } from '../support/server';

import { fakeQueue } from './fake-queue';
import { all, deadLetter, liveClient, running } from './live-client';

server.emptyBeforeEach();
const client = liveClient();
let queue: string;
beforeEach(() => {
  queue = freshName('jobs');
});

describe('a pending job', () => {
  it('runs once it is activated', async () => {
    const { id } = await client.enqueue('a.b', [], { queue, pending: true });
    expect(await client.jobs.activate(id)).toMatchObject({ state: 'available' });
    await expect(client.jobs.activate(id)).rejects.toThrow(ConflictError);
  });

  it('that was activated by a try without an answer counts as activated', async () => {
    const { client, requests } = fakeQueue(({ method }, index) => {
      if (index === 0) throw new Error('connection lost');
      if (method === 'POST') return Response.json({ error: { code: 'conflict', message: 'm' } }, { status: 409 });
      return Response.json({ job: { id: 'x', state: 'active' } });
    });
    expect(await client.jobs.activate('x')).toMatchObject({ state: 'active' });
    expect(requests).toHaveLength(3);
  });
});

describe('waiting for a job', () => {
  it('gives its result as soon as it has ended', async () => {
    const job = await running(client, queue);
    const waiting = client.jobs.wait<{ sum: number }>(job.id);
    await client.worker('runner', { queues: [queue] }).ack(job, { sum: 3 });
    const outcome = await waiting;
    expect(outcome).toMatchObject({ jobId: job.id, state: 'completed', result: { sum: 3 } });
    expect(outcome.state === 'completed' && outcome.result.sum).toBe(3);
  });

  it('gives the error of one that failed for good', async () => {
    const { id } = await deadLetter(client, queue);
    expect(await client.jobs.wait(id)).toMatchObject({ state: 'discarded', result: null, error: { type: 'Boom' } });
  });

  it('ends when the time given is up', async () => {
    const { id } = await client.enqueue('a.b', [], { queue });
    await expect(client.jobs.wait(id, { timeoutMs: 50 })).rejects.toThrow(WaitTimeoutError);
    expect(await client.jobs.result(id)).toMatchObject({ state: 'available', result: null });
  });

  it('that does not exist is an error at once', async () => {
    await expect(client.jobs.wait(UNKNOWN_ID)).rejects.toThrow(NotFoundError);
  });

  it('asks a server that does not wait only after a pause', async () => {
    const { client, requests, waits } = fakeQueue((_, index) =>
      Response.json({ job_id: 'x', state: index < 3 ? 'active' : 'completed', result: 1 }),
    );
    expect(await client.jobs.wait('x')).toMatchObject({ result: 1 });
    expect(requests).toHaveLength(4);
    expect(waits.length).toBe(3);
  });
});

it('results of many jobs come by id, including unknown ids', async () => {
  const job = await running(client, queue);
  await client.worker('runner', { queues: [queue] }).ack(job, 'done');
  const { results, missing } = await client.jobs.results<string>([job.id, UNKNOWN_ID]);
  expect(results[job.id]).toMatchObject({ state: 'completed', result: 'done' });
  expect(missing).toEqual([UNKNOWN_ID]);
});

it('results that had no room in an answer are asked for again', async () => {
  const { client, requests } = fakeQueue(({ body }) => {
    const [first, ...omitted] = (body?.ids ?? []) as string[];
    return Response.json({ results: { [String(first)]: { state: 'completed' } }, missing: [], omitted });
  });
  expect(Object.keys((await client.jobs.results(['a', 'b', 'c'])).results)).toEqual(['a', 'b', 'c']);
  expect(requests).toHaveLength(3);
});

it('progress and checkpoints of a running job can be read', async () => {
  const job = await running(client, queue);
  expect(await client.jobs.progress(job.id)).toMatchObject({ state: 'active', progress: null });
  expect(await client.jobs.checkpoint(job.id)).toBeUndefined();
  const runner = client.worker('runner', { queues: [queue] });
  expect(await runner.progress(job, { progress: 0.5, message: 'half', data: { n: 1 } })).toMatchObject({
    progress: 0.5,
  });
  expect(await runner.saveCheckpoint(job, { at: 7 })).toMatchObject({ state: { at: 7 }, sequence: 1 });
  expect(await client.jobs.progress(job.id)).toMatchObject({ progress: 0.5, message: 'half', data: { n: 1 } });
  expect((await client.jobs.checkpoint<{ at: number }>(job.id))?.state.at).toBe(7);
  await runner.deleteCheckpoint(job);
  expect(await client.jobs.checkpoint(job.id)).toBeUndefined();
  await expect(client.jobs.checkpoint(UNKNOWN_ID)).rejects.toThrow(NotFoundError);
});

it('a job tells what happened to it, and which of its attempts failed', async () => {
  const { id } = await deadLetter(client, queue);
  const events = await all(client.jobs.history(id, { pageSize: 2 }));
  expect(events.map(({ eventType }) => eventType)).toEqual([
    'job.created',
    'job.state_changed',
    'job.attempt_started',
    'job.attempt_failed',
    'job.state_changed',
    'job.discarded',
  ]);
  const { retries, policy } = await client.jobs.retries(id);
  expect(retries).toMatchObject([{ attempt: 1, state: 'discarded', nextRetryAt: null }]);
  expect(policy).toMatchObject({ maxAttempts: 1 });
  await expect(client.jobs.retries(UNKNOWN_ID)).rejects.toThrow(NotFoundError);
});

it('operators see why a job ended, and can give it another life', async () => {
  const { id } = await deadLetter(client, queue);
  const inspected = await client.jobs.inspect(id);
  expect(inspected).toMatchObject({ id, discardReason: 'retries_exhausted', retryPolicy: { maxAttempts: 1 } });
  expect(inspected.errors).toHaveLength(1);
  const [summary] = await all(client.jobs.summaries({ queue }));
  expect(summary).toMatchObject({ id, state: 'discarded' });
  expect(summary).not.toHaveProperty('args');
  expect(await client.jobs.retry(id)).toMatchObject({ id, state: 'available', attempt: 0 });
});

it('operators answer for a step, and start a job again from one', async () => {
  const { id } = await client.enqueue('a.b', [], { queue, retry: { maxAttempts: 1 } });
  await server.takeOne(queue);
  for (const name of ['one', 'two']) await server.ok(200, 'PUT', `${V1}/jobs/${id}/steps/${name}`, { result: name });
  await server.nack(id);
  expect(await client.jobs.answerStep(id, 'three', { by: 'hand' })).toMatchObject({ id, state: 'discarded' });
  expect(await client.jobs.steps(id)).toMatchObject({
    two: { result: 'two', seq: 2 },
    three: { result: { by: 'hand' }, seq: 3, at: expect.any(Number) },
  });
  await expect(client.jobs.retry(id, { from: 'four' })).rejects.toThrow(NotFoundError);
  const { id: copy } = await client.jobs.fork(id, { from: 'two' });
  expect(Object.keys(await client.jobs.steps(copy))).toEqual(['one']);
  expect(await client.jobs.retry(id, { from: 'two' })).toMatchObject({ state: 'available' });
  expect(Object.keys(await client.jobs.steps(id))).toEqual(['one']);
});

it('operators list jobs in the order they ask for, over pages', async () => {
  const priorities = [3, 1, 2];
  await client.enqueueMany(priorities.map((priority) => ({ type: 'a.b', args: [], options: { queue, priority } })));
  const listed = await all(client.jobs.summaries({ queue }, { sort: 'priority', order: 'asc', pageSize: 2 }));
  expect(listed.map(({ priority }) => priority)).toEqual([1, 2, 3]);
  const newest = await all(client.jobs.summaries({ queue }, { pageSize: 2 }));
  expect(newest.map(({ priority }) => priority)).toEqual([2, 1, 3]);
});

it('a list can be read a page at a time', async () => {
  await client.enqueueMany([1, 2, 3].map((n) => ({ type: 'a.b', args: [n], options: { queue } })));
  const first = await client.jobs.page({ queue }, { limit: 2 });
  expect(first).toMatchObject({ total: 3, totalIsExact: true, jobs: [{ args: [3] }, { args: [2] }] });
  const second = await client.jobs.page({ queue }, { limit: 2, cursor: first.nextCursor ?? '' });
  expect(second.jobs).toMatchObject([{ args: [1] }]);
  expect(second.nextCursor).toBeUndefined();
});

it('a job keeps its own retention, and a change of it', async () => {
  const { id } = await client.enqueue('a.b', [], { queue, retention: { completed: '1h' } });
  expect(await client.patch(id, { retention: { discarded: '2h' } })).toMatchObject({
    retention: { completed: '1h', discarded: '2h' },
  });
});
