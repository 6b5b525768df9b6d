/** Enqueuing many jobs, each on its own. */

import { beforeEach, describe, expect, it } from 'vitest';
import { freshName } from '../../support/queue';
import { type Body, type Json, server } from '../../support/server';

server.emptyBeforeEach();

let queue: string;
beforeEach(() => {
  queue = freshName('bulk');
});

const post = (path: string, body: unknown, headers: Record<string, string> = {}) =>
  server.call('POST', `/ojs/v1${path}`, body, headers);
const items = (body: Body) => body.items as Json[];
const good = (change: Json = {}) => ({ type: 'test.echo', args: [], options: { queue }, ...change });

describe('enqueuing in bulk', () => {
  it('accepts what it can and says what is wrong with the rest', async () => {
    const id = '01962222-bbbb-7ccc-8ddd-eeeeeeee0001';
    await server.enqueue(freshName('elsewhere'), { id });
    const answer = await post('/jobs/bulk', {
      jobs: [
        good(),
        { type: 'No Type', args: [] },
        good({ id }),
        good({ options: { queue, unique: { keys: ['type', 'queue'] } } }),
        good({ options: { queue, unique: { keys: ['type', 'queue'] } } }),
        good({ options: { queue, unique: { keys: ['type', 'queue'], on_conflict: 'ignore' } } }),
        'nonsense',
        good({ options: { queue: `${queue}-b`, retry: { backoff_coefficient: -1 } } }),
      ],
    });
    expect(answer.status).toBe(207);
    expect(answer.headers.get('X-OJS-Batch-Size')).toBe('8');
    const words = ['created', 'failed', 'duplicate', 'created', 'duplicate', 'duplicate', 'failed', 'failed'];
    expect(items(answer.body).map(({ index, status }) => [index, status])).toEqual([...words.entries()]);
    const jobOf = (index: number) => (items(answer.body)[index] as { job: Json }).job;
    expect(jobOf(5).id).toBe(jobOf(3).id);
    expect(items(answer.body)[1]?.error).toMatchObject({
      code: 'invalid_request',
      details: { field: 'jobs[1].type', index: 1 },
    });
    expect(answer.body).toMatchObject({ total: 8, succeeded: 3, failed: 5 });
  });

  it('answers 201 when all are accepted and 422 when none is', async () => {
    const all = await post('/jobs/bulk', { jobs: [good(), good({ options: { queue: `${queue}-b` } })] });
    expect(all).toMatchObject({ status: 201, body: { total: 2, succeeded: 2, failed: 0 } });
    expect(await post('/jobs/bulk', { jobs: [{}, 1] })).toMatchObject({
      status: 422,
      body: { succeeded: 0, failed: 2 },
    });
  });

  it('atomically writes nothing when one entry is wrong, and names it', async () => {
    const taken = await server.enqueue(queue, { id: '01962222-bbbb-7ccc-8ddd-eeeeeeee0002' });
    for (const wrong of [
      { type: '', args: [] },
      good({ id: taken }),
      good({ options: { queue, retry: { table: [] } } }),
    ]) {
      const answer = await post('/jobs/bulk', {
        jobs: [good(), wrong, good({ options: { queue: `${queue}-b` } })],
        atomicity: 'atomic',
      });
      expect(answer, JSON.stringify(answer.body)).toMatchObject({ status: 422, body: { succeeded: 0, failed: 3 } });
      const culprit = items(answer.body).findIndex(({ error }) => (error as Json).type !== 'rolled_back');
      const { code, message } = (items(answer.body)[culprit] as { error: Json }).error;
      expect(answer.body.error).toMatchObject({
        ...{ code, request_id: answer.headers.get('X-Request-ID'), hint: expect.any(String) },
        message: `Nothing was enqueued. Entry ${culprit}: ${message}`,
        details: { index: culprit },
      });
      expect(items(answer.body).map(({ error }) => (error as Json).type === 'rolled_back')).toEqual([
        true,
        false,
        true,
      ]);
    }
    expect((await server.ok(200, 'GET', '/ojs/v1/jobs/count')).count).toBe(1);
    const accepted = await post('/jobs/bulk', {
      jobs: [good(), good({ options: { queue: `${queue}-b` } })],
      atomicity: 'atomic',
    });
    expect(accepted.status).toBe(201);
    expect((await server.ok(200, 'GET', '/ojs/v1/jobs/count')).count).toBe(3);
  });

  it.each<[string, unknown, number, string]>([
    ['no jobs', {}, 400, 'jobs'],
    ['jobs that are no list', { jobs: {} }, 400, 'jobs'],
    ['an empty list', { jobs: [] }, 400, 'jobs'],
    ['another atomicity', { jobs: [{}], atomicity: 'most' }, 400, 'atomicity'],
    ['a key that is none', { jobs: [{}], idempotency_key: 7 }, 400, 'idempotency_key'],
    ['a key too long', { jobs: [{}], idempotency_key: 'k'.repeat(257) }, 400, 'idempotency_key'],
    ['too many', { jobs: Array(1001).fill(1) }, 413, 'jobs'],
  ])('refuses %s', async (_, body, status, field) => {
    const answer = await post('/jobs/bulk', body);
    expect(answer.status).toBe(status);
    expect(answer.body.error?.details?.field).toBe(field);
    if (status === 413) {
      expect(answer.headers.get('X-OJS-Max-Batch-Size')).toBe('1000');
      expect(answer.headers.get('X-OJS-Batch-Size')).toBe('1001');
    }
  });

  it('says what would have fit when the body is too large to be read', async () => {
    const answer = await post('/jobs/bulk', `{"jobs":["${'x'.repeat(16 * 1_048_576)}"]}`);
    expect(answer).toMatchObject({ status: 413, body: { error: { details: { field: 'body' } } } });
    expect(answer.headers.get('X-OJS-Max-Batch-Size')).toBe('1000');
  });

  it.each([['/jobs/bulk'], ['/jobs/batch']])('creates no queue by entries that are refused, by %s', async (path) => {
    const wrong = good({
      options: { queue: `${queue}-a`, retry: { backoff_coefficient: 0.5 } },
    });
    for (const jobs of [[wrong], [wrong, wrong]]) expect((await post(path, { jobs })).status).toBe(422);
    const jobs = [good({ options: { queue: `${queue}-b` } }), wrong];
    expect((await post(path, { jobs, atomicity: 'atomic' })).status).toBe(422);
    expect((await server.ok(200, 'GET', '/ojs/v1/queues')).queues).toEqual([]);
  });
});
