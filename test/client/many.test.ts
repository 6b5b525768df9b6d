/** Enqueuing many through the client: each on its own, and once only under an idempotency key. */

import { beforeEach, describe, expect, it } from 'vitest';
import { ConflictError } from '../../src/client';
import { freshName } from '../support/queue';
import { server } from '../support/server';

import { errorAnswer, fakeQueue } from './fake-queue';
import { deadLetter, liveClient } from './live-client';

server.emptyBeforeEach();
const client = liveClient();
let queue: string;
beforeEach(() => {
  queue = freshName('many');
});

describe('jobs that are enqueued each on its own', () => {
  it('have an outcome each, whatever becomes of the others', async () => {
    const unique = { key: 'one', onConflict: 'ignore' } as const;
    const { total, succeeded, failed, items } = await client.enqueueEach([
      { type: 'a.b', args: [1], options: { queue, unique } },
      { type: 'NOT A TYPE', args: [] },
      { type: 'a.b', args: [2], options: { queue, unique } },
    ]);
    expect({ total, succeeded, failed }).toEqual({ total: 3, succeeded: 2, failed: 1 });
    expect(items.map(({ status }) => status)).toEqual(['created', 'failed', 'duplicate']);
    expect(items[1]?.error).toMatchObject({ code: 'invalid_request', retryable: false });
    expect(items[2]?.job?.id).toBe(items[0]?.job?.id);
  });

  it('are sent without those that cannot be JSON, and keep their places', async () => {
    const circle: unknown[] = [];
    circle.push(circle);
    const job = (arg: unknown) => ({ type: 'a.b', args: [arg], options: { queue } });
    const args = [1n, 'one', circle, '\ud83d', 'two'];
    const { total, succeeded, failed, items } = await client.enqueueEach(args.map(job));
    expect({ total, succeeded, failed }).toEqual({ total: 5, succeeded: 2, failed: 3 });
    expect(items.map(({ index, status, error }) => [index, status, error?.code])).toEqual([
      [0, 'failed', 'unserialisable'],
      [1, 'created', undefined],
      [2, 'failed', 'unserialisable'],
      [3, 'failed', 'invalid_payload'],
      [4, 'created', undefined],
    ]);
    expect(await client.count({ queue })).toBe(2);
    expect(await client.enqueueEach([job(1n)])).toMatchObject({ total: 1, succeeded: 0, failed: 1 });
    await expect(client.enqueueEach([job(1n)], { atomicity: 'atomic' })).rejects.toThrow('is not JSON');
  });

  it('are all refused with one of them when that is asked for, and that is an answer, not an error', async () => {
    const jobs = [
      { type: 'a.b', args: [], options: { queue } },
      { type: 'NOT A TYPE', args: [] },
    ];
    expect(await client.enqueueEach(jobs, { atomicity: 'atomic' })).toMatchObject({ succeeded: 0, failed: 2 });
    expect(await client.count({ queue })).toBe(0);
  });

  it('of which there are none are not sent', async () => {
    const { client, requests } = fakeQueue();
    expect(await client.enqueueEach([])).toMatchObject({ total: 0, items: [] });
    expect(requests).toEqual([]);
  });

  it('are not sent again without an answer, unless there is a key', async () => {
    const { client, requests } = fakeQueue((_, index) => {
      if (index < 2) throw new Error('connection lost');
      return Response.json({ total: 1, succeeded: 1, failed: 0, items: [{}] }, { status: 201 });
    });
    await expect(client.enqueueEach([{ type: 'a', args: [] }])).rejects.toMatchObject({ outcomeUnknown: true });
    await client.enqueueEach([{ type: 'a', args: [] }], { idempotencyKey: 'k' });
    expect(requests.map(({ headers }) => headers['Idempotency-Key'])).toEqual([undefined, 'k', 'k']);
  });
});

describe('an idempotency key', () => {
  it('makes one job of the same enqueue', async () => {
    const enqueue = (n: number) => client.enqueue('a.b', [n], { queue, idempotencyKey: 'order-17' });
    const [first, second] = await Promise.all([enqueue(1), enqueue(1)]);
    expect(second.id).toBe(first.id);
    await expect(enqueue(2)).rejects.toThrow(ConflictError);
  });

  it('makes one batch of the same batch', async () => {
    const jobs = [1, 2].map((n) => ({ type: 'a.b', args: [n], options: { queue } }));
    const first = await client.enqueueMany(jobs, { idempotencyKey: 'order-18' });
    expect((await client.enqueueMany(jobs, { idempotencyKey: 'order-18' })).map(({ id }) => id)).toEqual(
      first.map(({ id }) => id),
    );
    expect(await client.count({ queue })).toBe(2);
  });

  it('is sent with a request of its own, and repeated when there was no answer', async () => {
    const { client, requests } = fakeQueue(
      (_, index) => {
        if (index === 0) throw new Error('connection lost');
        return undefined;
      },
      { safeRetries: true },
    );
    await Promise.all([
      client.enqueue('a', [], { idempotencyKey: 'k' }),
      client.enqueue('b', []),
      client.enqueue('c', []),
    ]);
    expect(requests.map(({ path, headers }) => [path, headers['Idempotency-Key']]).sort()).toEqual([
      ['/jobs', 'k'],
      ['/jobs', 'k'],
      ['/jobs/batch', undefined],
    ]);
    const keyed = requests.filter(({ path }) => path === '/jobs');
    expect(keyed[0]?.body).toEqual(keyed[1]?.body);
    expect(keyed[0]?.body).not.toHaveProperty('id');
  });
});

describe('an operation on many jobs', () => {
  it('can be awaited, also when the server answers before it is done', async () => {
    const summary = { matched: 2, succeeded: 1, skipped: 0, failed: 0, errors: [], operation_id: 'o' };
    const { client, requests } = fakeQueue(({ method }, index) =>
      method === 'POST'
        ? Response.json({ ...summary, total_matched: 2, cancelled: 1, items: [], completed: false }, { status: 202 })
        : Response.json({ ...summary, succeeded: index, completed: index === 2 }),
    );
    const result = await client.bulk.wait(await client.bulk.cancel({ queue: 'a' }));
    expect(result).toMatchObject({ operationId: 'o', completed: true, succeeded: 2 });
    expect(requests.map(({ path }) => path)).toEqual(['/jobs/bulk/cancel', '/jobs/bulk/o', '/jobs/bulk/o']);
    expect(await client.bulk.wait(result)).toBe(result);
    expect(requests).toHaveLength(3);
  });

  it('changes all or none when that is asked for', async () => {
    const { id } = await client.enqueue('a.b', [], { queue });
    const ended = await client.enqueue('a.b', [], { queue });
    await client.cancel(ended.id);
    const refused = await client.bulk.delete([ended.id, id], { atomic: true });
    expect(refused).toMatchObject({ succeeded: 0, items: [{ status: 'skipped' }, { status: 'skipped' }] });
    expect(await client.count({ queue })).toBe(2);
    expect(await client.bulk.cancel({ queue }, { atomic: true })).toEqual({
      completed: true,
      matched: 1,
      succeeded: 1,
      skipped: 0,
      failed: 0,
      items: [{ jobId: id, status: 'cancelled' }],
    });
  });

  it('is done once under a key', async () => {
    const { id } = await client.enqueue('a.b', [], { queue });
    const first = await client.bulk.cancel({ queue }, { idempotencyKey: 'k-1' });
    expect(first).toMatchObject({ succeeded: 1 });
    await client.bulk.retry([id], { idempotencyKey: 'k-2' });
    expect(await client.bulk.cancel({ queue }, { idempotencyKey: 'k-1' })).toEqual(first);
    expect(await client.get(id)).toMatchObject({ state: 'available' });
    await expect(client.bulk.delete({ queue }, { idempotencyKey: 'k-1' })).rejects.toThrow(ConflictError);
  });

  it('under a key is sent again when there was no answer', async () => {
    const { client, requests } = fakeQueue((_, index) => {
      if (index === 0) throw new Error('connection lost');
      return Response.json({ total_matched: 1, retried: 1, skipped: 0, failed: 0, items: [] });
    });
    expect(await client.bulk.retry({ queue: 'a' }, { idempotencyKey: 'k' })).toMatchObject({ succeeded: 1 });
    expect(requests.map(({ headers }) => headers['Idempotency-Key'])).toEqual(['k', 'k']);
  });
});

describe('dead letters', () => {
  it('are counted, retried, deleted and purged by the many', async () => {
    for (const type of ['A', 'A', 'B', 'C']) await deadLetter(client, queue, type);
    const { deadLetters } = client;
    expect(await deadLetters.stats()).toMatchObject({ total: 4, byQueue: { [queue]: 4 }, byErrorType: { A: 2 } });
    expect(await deadLetters.retryMany({ queue, errorType: 'A' })).toMatchObject({ completed: true, succeeded: 2 });
    expect(await deadLetters.deleteMany({ queue, errorType: 'B' })).toMatchObject({ succeeded: 1 });
    expect(await deadLetters.purge('P1D', { queue })).toMatchObject({ completed: true, deleted: 0 });
    expect(await deadLetters.purge(new Date(Date.now() + 60_000), { queue: 'other' })).toMatchObject({ deleted: 0 });
    expect(await deadLetters.deleteMany('all')).toMatchObject({ succeeded: 1 });
    expect(await deadLetters.stats()).toMatchObject({ total: 0, oldestAt: null });
  });

  it('under a key are acted on once, and the request is sent again when there was no answer', async () => {
    const { deadLetters } = client;
    const { id } = await deadLetter(client, queue);
    expect(await deadLetters.retryMany({ queue }, { idempotencyKey: 'k-1' })).toMatchObject({ succeeded: 1 });
    await client.cancel(id);
    await deadLetter(client, queue);
    expect(await deadLetters.retryMany({ queue }, { idempotencyKey: 'k-1' })).toMatchObject({ succeeded: 1 });
    expect(await deadLetters.stats()).toMatchObject({ total: 1 });
    await expect(deadLetters.deleteMany('all', { idempotencyKey: 'k-1' })).rejects.toThrow(ConflictError);
    const summary = { matched: 1, succeeded: 1, skipped: 0, failed: 0, errors: [], deleted: 1, completed: true };
    const flaky = fakeQueue((_, index) => {
      if (index % 2 === 0) throw new Error('connection lost');
      return Response.json(summary);
    });
    const lost = flaky.client.deadLetters;
    expect(await lost.retryMany('all', { idempotencyKey: 'a' })).toMatchObject({ succeeded: 1 });
    expect(await lost.deleteMany('all', { idempotencyKey: 'b' })).toMatchObject({ succeeded: 1 });
    expect(await lost.purge('P1D', { queue: 'a', idempotencyKey: 'c' })).toMatchObject({ deleted: 1 });
    expect(flaky.requests.map(({ headers }) => headers['Idempotency-Key'])).toEqual(['a', 'a', 'b', 'b', 'c', 'c']);
    await expect(lost.purge('P1D')).rejects.toMatchObject({ outcomeUnknown: true });
  });

  it('of no condition at all are not acted on', async () => {
    const { client, requests } = fakeQueue();
    await expect(client.deadLetters.deleteMany({})).rejects.toMatchObject({ details: { field: 'filter' } });
    expect(requests).toEqual([]);
  });

  it('can live again in another queue, and the move is repeated when there was no answer', async () => {
    const { id } = await deadLetter(client, queue);
    const target = freshName('other');
    const moved = await client.deadLetters.retry(id, { queue: target, retry: { maxAttempts: 2 } });
    expect(moved).toMatchObject({ id, queue: target, state: 'available', maxAttempts: 2 });
    const lost = fakeQueue((_, index) => {
      if (index === 0) throw new Error('connection lost');
      return Response.json({ job: { id: 'x', queue: 'other' } });
    });
    expect(await lost.client.deadLetters.retry('x', { queue: 'other' })).toMatchObject({ queue: 'other' });
  });
});

it('a refusal of a purge is an error of its own class', async () => {
  const { client } = fakeQueue(() => errorAnswer(403, 'forbidden'));
  await expect(client.deadLetters.purge('P1D')).rejects.toMatchObject({ name: 'UnauthorizedError', code: 'forbidden' });
});
