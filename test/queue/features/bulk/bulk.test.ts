/** Bulk operations by ids or by filter, on the whole of it and not only a page. */

import { beforeEach, describe, expect, it } from 'vitest';
import { freshName } from '../../../support/queue';
import { type Body, type Json, server, TestServer, UNKNOWN_ID } from '../../../support/server';

server.emptyBeforeEach();

let queue: string;
beforeEach(() => {
  queue = freshName('bulk');
});

const post = (path: string, body: unknown, headers: Record<string, string> = {}) =>
  server.call('POST', `/ojs/v1${path}`, body, headers);
const items = (body: Body) => body.items as Json[];
const fetchIds = (count = 10) => server.takeIds(queue, { count });
const fill = async (n: number, change: Json = {}) => {
  const jobs = Array.from({ length: n }, () => ({
    type: 'test.echo',
    args: [],
    ...change,
    options: { queue, ...(change.options as Json) },
  }));
  return ((await server.ok(201, 'POST', '/ojs/v1/jobs/batch', { jobs })).jobs as Json[]).map(({ id }) => id as string);
};

describe('by ids', () => {
  it('cancels each job that can be, also one that runs, in several queues', async () => {
    const [first, second] = await fill(2);
    expect(await fetchIds(1)).toEqual([first]);
    const elsewhere = await server.enqueue(`${queue}-b`);
    const chosen = await server.enqueue(`${queue}-c`, { id: '01962222-bbbb-7ccc-8ddd-eeeeeeee0003' });
    const done = await server.enqueue(queue);
    await server.ok(200, 'DELETE', `/ojs/v1/jobs/${done}`);
    const ids = [first, second, done, UNKNOWN_ID, elsewhere, 'nonsense', chosen];
    const answer = await post('/jobs/bulk/cancel', { job_ids: ids });
    expect(answer.status).toBe(207);
    expect(answer.body).toMatchObject({ total_matched: 7, cancelled: 4, skipped: 1, failed: 2 });
    expect(items(answer.body)).toEqual([
      { index: 0, job_id: first, status: 'cancelled' },
      { index: 1, job_id: second, status: 'cancelled' },
      { index: 2, job_id: done, status: 'skipped', reason: 'cancelled' },
      { index: 3, job_id: UNKNOWN_ID, status: 'failed', reason: 'not_found' },
      { index: 4, job_id: elsewhere, status: 'cancelled' },
      { index: 5, job_id: 'nonsense', status: 'failed', reason: 'not_found' },
      { index: 6, job_id: chosen, status: 'cancelled' },
    ]);
    const report = await server.call('POST', '/ojs/v1/workers/ack', { job_id: first });
    expect(report.status).toBe(409);
  });

  it('atomically changes nothing when one cannot', async () => {
    const ids = await fill(3);
    await server.ok(200, 'DELETE', `/ojs/v1/jobs/${ids[1]}`);
    for (const job_ids of [ids, [ids[0], UNKNOWN_ID], [ids[0], 'nonsense']]) {
      const answer = await post('/jobs/bulk/cancel', { job_ids, atomicity: 'atomic' });
      expect(answer.status, JSON.stringify(answer.body)).toBe(422);
      expect(answer.body.cancelled ?? 0).toBe(0);
    }
    expect(await server.state(ids[0] as string)).toBe('available');
    const job_ids = [ids[0], ids[2], ids[0]];
    const answer = await post('/jobs/bulk/cancel', { job_ids, atomicity: 'atomic' });
    expect(answer).toMatchObject({ status: 200, body: { cancelled: 2, skipped: 1 } });
  });

  it('atomically changes nothing in any queue when a job in one of them cannot, and says which', async () => {
    const [free = '', running = ''] = [await server.enqueue(queue), await server.enqueue(`${queue}-b`)];
    const chosen = await server.enqueue(`${queue}-c`, { id: '01962222-bbbb-7ccc-8ddd-eeeeeeee0004' });
    const gone = await server.enqueue(`${queue}-c`);
    await server.ok(200, 'DELETE', `/ojs/v1/jobs/${gone}`);
    const rolledBack = (index: number, job_id: string) => ({ index, job_id, status: 'skipped', reason: 'rolled_back' });
    for (const [culprit, status, reason] of [
      [gone, 'skipped', 'cancelled'],
      [UNKNOWN_ID, 'failed', 'not_found'],
      ['nonsense', 'failed', 'not_found'],
    ]) {
      const job_ids = [free, running, culprit, chosen];
      const answer = await post('/jobs/bulk/cancel', { job_ids, atomicity: 'atomic' });
      expect(answer).toMatchObject({ status: 422, body: { cancelled: 0, error: { code: 'conflict' } } });
      expect(items(answer.body)).toEqual([
        rolledBack(0, free),
        rolledBack(1, running),
        { index: 2, job_id: culprit, status, reason },
        rolledBack(3, chosen),
      ]);
    }
    await server.take(`${queue}-b`, { count: 1 });
    const job_ids = [free, running, chosen];
    const answer = await post('/jobs/bulk/cancel', { job_ids, atomicity: 'atomic' });
    expect(answer.status).toBe(422);
    expect(items(answer.body)[1]).toEqual({ index: 1, job_id: running, status: 'skipped', reason: 'active' });
    expect(await Promise.all(job_ids.map((id) => server.state(id)))).toEqual(['available', 'active', 'available']);
    // In one queue, one transaction can have them.
    expect((await post('/jobs/bulk/cancel', { job_ids: [running], atomicity: 'atomic' })).status).toBe(200);
    const both = await post('/jobs/bulk/cancel', { job_ids: [free, chosen, free], atomicity: 'atomic' });
    expect(both).toMatchObject({ status: 200, body: { cancelled: 2, skipped: 1 } });
  });

  it('atomically, and many at once over the same jobs, each does all or nothing', async () => {
    const ids: string[] = [];
    for (const name of ['a', 'b', 'c', 'd']) ids.push(await server.enqueue(`${queue}-${name}`));
    const subsets = [ids, ids.slice(0, 2), ids.slice(1, 3), ids.slice(2), [ids[3] as string, ids[0] as string]];
    const answers = await Promise.all(
      subsets.map(async (job_ids) => ({
        job_ids,
        answer: await post('/jobs/bulk/cancel', { job_ids, atomicity: 'atomic' }),
      })),
    );
    const cancelled = new Set<string>();
    for (const { job_ids, answer } of answers) {
      expect([200, 422, 503]).toContain(answer.status);
      if (answer.status !== 200) continue;
      expect(answer.body.cancelled).toBe(job_ids.length);
      for (const id of job_ids) {
        expect(cancelled.has(id)).toBe(false);
        cancelled.add(id);
      }
    }
    expect(cancelled.size).toBeGreaterThan(0);
    for (const id of ids) expect(await server.state(id)).toBe(cancelled.has(id) ? 'cancelled' : 'available');
  });

  it('deletes what has ended, and gives another life', async () => {
    const [done, cancelled, waiting] = await fill(3);
    await fetchIds(1);
    await server.ack(done);
    await server.ok(200, 'DELETE', `/ojs/v1/jobs/${cancelled}`);
    expect(await post('/jobs/bulk/retry', { job_ids: [cancelled, done] })).toMatchObject({
      status: 200,
      body: { retried: 1, skipped: 1 },
    });
    expect(await server.state(cancelled as string)).toBe('available');
    const answer = await post('/jobs/bulk/delete', { job_ids: [done, waiting] });
    expect(answer.body).toMatchObject({ deleted: 1, skipped: 1, failed: 0 });
    expect(await server.state(done as string)).toBe('none');
    expect(await server.state(waiting as string)).toBe('available');
  });
});

describe('by filter', () => {
  it('acts on every match in every queue, not only on a page', async () => {
    await fill(260, { meta: { tenant: 'acme' } });
    await fill(5, { meta: { tenant: 'ajax' } });
    await server.enqueue(`${queue}-b`, { meta: { tenant: 'acme' } });
    const answer = await post('/jobs/bulk/cancel', { filter: { meta: { tenant: 'acme' } } });
    expect(answer, JSON.stringify(answer.body)).toMatchObject({
      status: 200,
      body: { total_matched: 261, cancelled: 261, failed: 0, completed: true },
    });
    expect((await server.ok(200, 'GET', '/ojs/v1/jobs/count?state=available')).count).toBe(5);
    const again = await post('/jobs/bulk/retry', {
      filter: { state: ['cancelled', 'completed'], queue, where: { 'meta.tenant': ['acme', 'x'] } },
    });
    expect(again.body).toMatchObject({ retried: 260 });
    const gone = await post('/jobs/bulk/delete', { filter: { state: 'cancelled', older_than: 'PT0S' } });
    expect(gone.body).toMatchObject({ deleted: 1 });
  });

  it('continues after the answer, and can be followed', async () => {
    await fill(1000);
    await fill(1000);
    const begun = await server.call('POST', '/ojs/v1/jobs/bulk/cancel?wait=0', { filter: { queue } });
    expect(begun.status).toBe(202);
    expect(begun.body).toMatchObject({ completed: false });
    const path = begun.headers.get('Location') as string;
    expect(path).toBe(`/ojs/v1/jobs/bulk/${begun.body.operation_id}`);
    expect(await server.ok(200, 'GET', `${path}?wait=20`)).toMatchObject({
      completed: true,
      matched: 2000,
      succeeded: 2000,
    });
    expect((await server.call('GET', `/ojs/v1/jobs/bulk/${UNKNOWN_ID}`)).status).toBe(404);
  });

  it.each<[string, unknown, string]>([
    ['neither ids nor filter', {}, 'filter'],
    ['both', { job_ids: [UNKNOWN_ID], filter: { queue: 'q' } }, 'filter'],
    ['no condition', { filter: {} }, 'filter'],
    ['only nulls', { filter: { type: null } }, 'filter.type'],
    ['a misspelt condition', { filter: { queue: 'q', stat: 'completed' } }, 'filter.stat'],
    ['an unknown state', { filter: { state: ['gone'] } }, 'filter.state'],
    ['a bad queue', { filter: { queue: 'Nope!' } }, 'filter.queue'],
    ['a bad time', { filter: { enqueued_before: 'yesterday' } }, 'filter.enqueued_before'],
    [
      'bounds that cross',
      { filter: { created_after: '2030-01-01T00:00:00Z', created_before: '2020-01-01T00:00:00Z' } },
      'filter.created_before',
    ],
    ['an age that is none', { filter: { older_than: true } }, 'filter.older_than'],
    ['an object to compare with', { filter: { meta: { a: {} } } }, 'filter.meta.a'],
    ['a member of something else', { filter: { where: { 'result.a': 1 } } }, 'filter.where.result.a'],
    ['a range with another member', { filter: { priority: { least: 1 } } }, 'filter.priority.least'],
    ['a filter that is no object', { filter: 'all' }, 'filter'],
    ['ids that are no list', { job_ids: 'x' }, 'job_ids'],
    ['no ids', { job_ids: [] }, 'job_ids'],
    ['ids of another type', { job_ids: [7] }, 'job_ids[0]'],
    ['a condition beside the filter', { filter: { type: 'test.*' }, queue: 'q' }, 'queue'],
    ['another one', { filter: { queue: 'q' }, meta: { tenant: 'acme' } }, 'meta'],
    ['a member of the payload beside the filter', { filter: { type: '*' }, 'args.0.id': 7 }, 'args.0.id'],
    ['a condition beside ids', { job_ids: [UNKNOWN_ID], state: 'available' }, 'state'],
  ])('refuses %s', async (_, body, field) => {
    const id = await server.enqueue(queue);
    const answer = await post('/jobs/bulk/cancel', body);
    expect(answer.status, JSON.stringify(answer.body)).toBe(400);
    expect(answer.body.error?.details?.field).toBe(field);
    expect(await server.state(id)).toBe('available');
  });

  it('refuses a condition in the wrong place for operators too, and in the query, and what is none', async () => {
    const ids = await fill(2);
    for (const [path, body, field] of [
      ['/admin/jobs/bulk/cancel', { filter: { type: '*' }, since: '+PT1H', confirm: true }, 'since'],
      ['/admin/jobs/bulk/cancel?queue=q', { filter: { type: '*' }, confirm: true }, 'queue'],
      ['/jobs/bulk/cancel?state=pending', { filter: { type: '*' } }, 'state'],
      ['/jobs/bulk/cancel', { filter: { type: '*' }, tags: ['a'], atomicity: 'atomic' }, 'tags'],
    ] as const) {
      const answer = await post(path, body);
      expect([answer.status, answer.body.error?.details?.field]).toEqual([400, field]);
    }
    expect(await Promise.all(ids.map((id) => server.state(id)))).toEqual(['available', 'available']);
    const unread = { filter: { queue }, reason: 'spring is over' };
    expect((await post('/jobs/bulk/cancel', unread)).body.error?.details).toEqual({ field: 'reason' });
  });
});

describe('operators', () => {
  it('must confirm, and get the outcome', async () => {
    await fill(3);
    for (const confirm of [undefined, false, 'true', 1]) {
      const answer = await post('/admin/jobs/bulk/cancel', { filter: { queue }, confirm });
      expect(answer.status).toBe(400);
      expect(answer.body.error?.details?.field).toBe('confirm');
    }
    expect((await post('/admin/jobs/bulk/cancel', { filter: { queue }, confirm: true })).body).toMatchObject({
      action: 'cancel',
      matched: 3,
      succeeded: 3,
      failed: 0,
      errors: [],
    });
  });

  it('list jobs without their payload, with the same filters', async () => {
    const id = await server.enqueue(queue, { args: [1], options: { priority: 2 } });
    await server.enqueue(queue);
    const body = await server.ok(200, 'GET', `/ojs/v1/admin/jobs?queue=${queue}&priority_min=1&per_page=5`);
    expect(body.items).toEqual([expect.objectContaining({ id, priority: 2, state: 'available' })]);
    expect(body.items?.[0]).not.toHaveProperty('args');
    expect(body.pagination).toMatchObject({ total: 1, page: 1, per_page: 5 });
    expect((await server.call('PATCH', `/ojs/v1/admin/jobs/${id}`, { priority: 9 })).body.job).toMatchObject({
      priority: 9,
    });
  });

  it('retry, delete and purge dead letters by filter, and nothing but dead letters', async () => {
    const retry = { max_attempts: 1, on_exhaustion: 'dead_letter' };
    await fill(3, { type: 'dead.a', options: { retry } });
    await fill(2, { type: 'dead.b', options: { retry } });
    await fill(1, { options: { retry: { max_attempts: 1 } } });
    for (const job_id of await fetchIds(6)) {
      await server.nack(job_id, { error: { type: 'Boom', message: 'no' } });
    }
    expect((await post('/dead-letter/retry', { filter: { type: 'dead.a' } })).status).toBe(400);
    const retried = await post('/dead-letter/retry', { filter: { type: 'dead.a', error_type: 'Boom' }, confirm: true });
    expect(retried.body).toMatchObject({ action: 'retry', matched: 3, succeeded: 3 });
    expect((await post('/dead-letter/purge?older_than=PT1H', undefined)).body).toMatchObject({ deleted: 0 });
    expect((await post('/dead-letter/purge', undefined)).status).toBe(400);
    // A condition in the wrong place must not turn "some" into "all".
    expect((await server.call('DELETE', `/ojs/v1/dead-letter?queue=${queue}`, { confirm: true })).status).toBe(400);
    expect((await server.call('DELETE', '/ojs/v1/dead-letter', { confirm: true, queue })).status).toBe(400);
    expect((await post('/dead-letter/purge', { older_than: 'P30D', queue })).status).toBe(400);
    const since = { since: '2000-01-01T00:00:00Z' };
    const deleted = await server.call('DELETE', '/ojs/v1/admin/dead-letter', { filter: since, confirm: true });
    expect(deleted.body).toMatchObject({ action: 'delete', matched: 2, succeeded: 2 });
    const stats = await server.ok(200, 'GET', `/ojs/v1/queues/${queue}/stats`);
    expect(stats.stats).toMatchObject({ available: 3, discarded: 1, dead: 0 });
  });

  it('need the purge scope for what destroys, wherever the route is', async () => {
    const API_KEYS = JSON.stringify([
      { key: 'producer', scopes: ['data:read', 'data:write'] },
      { key: 'operator', scopes: ['data:read', 'data:write', 'admin:read', 'admin:write'] },
      { key: 'owner', scopes: ['data:read', 'data:write', 'admin:read', 'admin:write', 'admin:purge'] },
    ]);
    const guarded = TestServer.with({ API_KEYS });
    const as = async (key: string, method: string, path: string, body: unknown) =>
      (await guarded.call(method, `/ojs/v1${path}`, body, { Authorization: `Bearer ${key}` })).status;
    await server.enqueue(queue);
    const destroys: [string, string, unknown][] = [
      ['POST', '/jobs/bulk/delete', { filter: { queue } }],
      ['POST', `/queues/${queue}/purge`, { states: ['completed'] }],
      ['DELETE', '/dead-letter', { confirm: true }],
      ['POST', '/dead-letter/purge', { older_than: 'P1D' }],
      ['DELETE', `/admin/queues/${queue}/jobs`, { states: ['completed'], confirm: true }],
      ['POST', '/admin/jobs/bulk/delete', { filter: { queue }, confirm: true }],
      ['DELETE', '/admin/dead-letter', { confirm: true }],
      ['DELETE', `/queues/${queue}`, { strategy: 'discard' }],
    ];
    for (const [method, path, body] of destroys) {
      expect([path, await as('producer', method, path, body)]).toEqual([path, 403]);
      expect([path, await as('operator', method, path, body)]).toEqual([path, 403]);
      expect([path, Math.floor((await as('owner', method, path, body)) / 100)]).toEqual([path, 2]);
    }
    expect(await as('producer', 'POST', '/jobs/bulk/cancel', { filter: { queue } })).toBe(200);
    expect(await as('operator', 'POST', '/admin/dead-letter/retry', { confirm: true })).toBe(200);
    expect(await as('producer', 'POST', '/admin/jobs/bulk/retry', { filter: { queue }, confirm: true })).toBe(403);
  });
});
