/** Dead letters and operations on many jobs through the client, scripted and against the queue itself. */

import { beforeEach, describe, expect, it } from 'vitest';
import { type BulkQuery, InvalidJobError, type Job, NotFoundError, TocsinClient } from '../../src/client';
import { freshName } from '../support/queue';
import { server } from '../support/server';

import { errorAnswer, fakeQueue } from './fake-queue';

const lost = () => {
  throw new Error('connection lost');
};

describe('an operation on many jobs', () => {
  it('writes every condition under its wire name', async () => {
    const counts = { total_matched: 3, cancelled: 2, skipped: 0, failed: 1, items: [] };
    const { client, requests } = fakeQueue(() => Response.json({ ...counts, operation_id: 'o', completed: false }));
    const result = await client.bulk.cancel({
      queue: ['a', 'b'],
      type: 'mail.*',
      state: 'available',
      priority: { min: 1 },
      createdAfter: new Date(0),
      errorType: 'Boom',
      where: { 'args.0.id': 42 },
    });
    expect(result).toEqual({
      operationId: 'o',
      completed: false,
      matched: 3,
      succeeded: 2,
      skipped: 0,
      failed: 1,
      items: [],
    });
    expect(requests).toMatchObject([{ method: 'POST', path: '/jobs/bulk/cancel' }]);
    expect(requests[0]?.body).toEqual({
      filter: {
        queue: ['a', 'b'],
        type: 'mail.*',
        state: 'available',
        priority: { min: 1 },
        created_after: '1970-01-01T00:00:00.000Z',
        error_type: 'Boom',
        where: { 'args.0.id': 42 },
      },
    });
  });

  it.each<[string, Record<string, unknown>]>([
    ['no condition', {}],
    ['conditions that are all undefined', { queue: undefined }],
    ['a misspelt condition', { queue: 'a', tipe: 'b' }],
    ['a condition that is null', { queue: 'a', type: null }],
    ['a number that is none', { queue: 'a', priority: Number.NaN }],
    ['a date that is none', { queue: 'a', endedBefore: new Date(Number.NaN) }],
  ])('with %s is not sent, because it would mean more jobs', async (_, query) => {
    const { client, requests } = fakeQueue();
    await expect(client.bulk.delete(query as BulkQuery)).rejects.toThrow(InvalidJobError);
    expect(requests).toEqual([]);
  });

  it('on no ids does nothing', async () => {
    const { client, requests } = fakeQueue();
    expect(await client.bulk.retry([])).toMatchObject({ completed: true, matched: 0, items: [] });
    expect(requests).toEqual([]);
  });

  it('is not sent again when there was no answer, but asking how far it is, is', async () => {
    const { client, requests } = fakeQueue((request, index) =>
      request.method === 'POST' || index === 1
        ? lost()
        : Response.json({
            operation_id: 'o',
            completed: true,
            matched: 1,
            succeeded: 0,
            skipped: 0,
            failed: 1,
            errors: [{ job_id: 'x', error: 'conflict' }],
          }),
    );
    await expect(client.bulk.cancel({ queue: 'a' })).rejects.toMatchObject({ outcomeUnknown: true });
    expect(requests).toHaveLength(1);
    expect(await client.bulk.get('o')).toMatchObject({
      completed: true,
      items: [{ jobId: 'x', status: 'failed', reason: 'conflict' }],
    });
    expect(requests).toHaveLength(3);
  });
});

describe('a dead letter', () => {
  it('is not given another life twice when there was no answer', async () => {
    const { client, requests } = fakeQueue(lost);
    await expect(client.deadLetters.retry('x')).rejects.toMatchObject({ outcomeUnknown: true });
    expect(requests).toHaveLength(1);
  });

  it('that was deleted by a try without an answer counts as deleted', async () => {
    const { client } = fakeQueue((_, index) => (index === 0 ? lost() : errorAnswer(404, 'not_found')));
    await expect(client.deadLetters.delete('x')).resolves.toBeUndefined();
    await expect(client.deadLetters.delete('x')).rejects.toThrow(NotFoundError);
  });
});

describe('against the queue', () => {
  server.emptyBeforeEach();
  const client = new TocsinClient({
    service: { fetch: async (input, init) => server.send(new Request(input, init as RequestInit)) },
  });
  let queue: string;
  beforeEach(() => {
    queue = freshName('bulk');
  });

  const enqueue = (count: number) =>
    client.enqueueMany(Array.from({ length: count }, (_, n) => ({ type: 'a.b', args: [n], options: { queue } })));

  /** Jobs that have failed for good. */
  async function discard(count: number): Promise<string[]> {
    const jobs = Array.from({ length: count }, (_, n) => ({
      type: 'a.b',
      args: [n],
      options: { queue, retry: { maxAttempts: 1, onExhaustion: 'dead_letter' as const } },
    }));
    const ids = (await client.enqueueMany(jobs)).map(({ id }) => id);
    await server.call('POST', '/ojs/v1/workers/fetch', { queues: [queue], count, worker_id: 'w' });
    for (const id of ids) {
      const error = { code: 'handler_error', type: 'Boom', message: 'boom' };
      await server.call('POST', '/ojs/v1/workers/nack', { job_id: id, worker_id: 'w', error });
    }
    return ids;
  }

  const listed = async (...args: Parameters<typeof client.deadLetters.list>): Promise<string[]> => {
    const jobs: Job[] = [];
    for await (const job of client.deadLetters.list(...args)) jobs.push(job);
    return jobs.map(({ id }) => id).sort();
  };

  it('dead outbox messages are listed over pages, read, retried and deleted', async () => {
    const ids = await discard(5);
    const { deadLetters } = client;
    expect(await listed({ queue }, { pageSize: 2 })).toEqual([...ids].sort());
    expect(await listed({ queue, errorType: 'Other' })).toEqual([]);
    expect(await listed({ queue, until: new Date(0) })).toEqual([]);
    const [first = '', second = ''] = ids;
    expect(await deadLetters.get(first)).toMatchObject({ id: first, state: 'discarded' });
    expect(await deadLetters.retry(first, { meta: { again: true } })).toMatchObject({
      state: 'available',
      meta: { again: true },
    });
    await deadLetters.delete(second);
    expect(await listed({ queue })).toEqual(ids.slice(2).sort());
    await expect(deadLetters.get(second)).rejects.toThrow(NotFoundError);
  });

  it('jobs are cancelled, retried and deleted by ids, each with its outcome', async () => {
    const ids = (await enqueue(2)).map(({ id }) => id);
    const unknown = '01962222-bbbb-7ccc-8ddd-eeeeeeeeeeee';
    const cancelled = await client.bulk.cancel([...ids, unknown]);
    expect(cancelled).toMatchObject({ completed: true, matched: 3, succeeded: 2, failed: 1 });
    expect(cancelled.items.map(({ jobId, status }) => [jobId, status])).toEqual([
      [ids[0], 'cancelled'],
      [ids[1], 'cancelled'],
      [unknown, 'failed'],
    ]);
    expect(await client.bulk.retry(ids.slice(0, 1))).toMatchObject({ succeeded: 1, items: [{ status: 'retried' }] });
    expect(await client.bulk.delete(ids.slice(1))).toMatchObject({ succeeded: 1, items: [{ status: 'deleted' }] });
    expect(await client.count({ queue })).toBe(1);
  });

  it('jobs are cancelled, retried and deleted by query, and the operation can be followed', async () => {
    await enqueue(5);
    const result = await client.bulk.cancel({ queue, where: { 'args.0': 3 } });
    expect(result).toMatchObject({ completed: true, matched: 1, succeeded: 1, items: [{ status: 'cancelled' }] });
    expect(await client.bulk.get(result.operationId ?? '')).toEqual(result);
    expect(await client.bulk.retry({ queue, state: 'cancelled' })).toMatchObject({ succeeded: 1 });
    expect(await client.bulk.cancel({ queue })).toMatchObject({ succeeded: 5 });
    expect(await client.bulk.delete({ queue, endedBefore: new Date(0) })).toMatchObject({ succeeded: 0 });
    expect(await client.bulk.delete({ queue, state: 'cancelled' })).toMatchObject({ succeeded: 5 });
    expect(await client.count({ queue })).toBe(0);
  });
});
