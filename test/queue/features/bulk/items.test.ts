/** What an operation by filter tells of the jobs it was done to: the first ones, in order, and what could not be done. */

import { v7 as uuidv7 } from 'uuid';
import { beforeEach, describe, expect, it } from 'vitest';
import { unwrap } from '../../../../src/job/errors';
import { until } from '../../../support/clock';
import { freshName, TestQueue } from '../../../support/queue';
import { type Json, server } from '../../../support/server';

server.emptyBeforeEach();

let queue: string;
beforeEach(() => {
  queue = freshName('items');
});

const post = (path: string, body: Json, headers: Record<string, string> = {}) =>
  server.call('POST', `/ojs/v1${path}`, body, headers);
const batch = async (n: number, into = queue) => {
  const jobs = Array(n).fill({ type: 'test.echo', args: [], options: { queue: into } });
  return ((await server.ok(201, 'POST', '/ojs/v1/jobs/batch', { jobs })).jobs as Json[]).map(({ id }) => id as string);
};
const listed = (ids: string[], status: string) => ids.map((job_id, index) => ({ index, job_id, status }));
const completeAll = async (ids: string[]) => {
  for (let at = 0; at < ids.length; at += 100) {
    await server.take(queue, { count: 100 });
    await Promise.all(ids.slice(at, at + 100).map((job_id) => server.ack(job_id)));
  }
};

describe('an operation by filter lists', () => {
  it('what it was done to, in the order in which it was handled', async () => {
    const ids = await batch(3);
    const chosen = await server.enqueue(queue, { id: '01962222-bbbb-7ccc-8ddd-eeeeeeee0040' });
    const cancelled = await post('/jobs/bulk/cancel', { filter: { queue } });
    expect(cancelled.body).toMatchObject({ total_matched: 4, cancelled: 4, completed: true });
    expect(cancelled.body.items).toEqual(listed([...ids, chosen], 'cancelled'));
    const retried = await post('/jobs/bulk/retry', { filter: { queue, id: [chosen, ids[1] as string] } });
    expect(retried.body.items).toEqual(listed([ids[1] as string, chosen], 'retried'));
    const deleted = await post('/jobs/bulk/delete', { filter: { queue } });
    expect(deleted.body.items).toEqual(listed([ids[2] as string, ids[0] as string], 'deleted'));
  });

  it('completed jobs too, one by one and in whole chunks', async () => {
    const ids = await batch(4);
    const chosen = await server.enqueue(queue, { id: '01962222-bbbb-7ccc-8ddd-eeeeeeee0041' });
    await completeAll([...ids, chosen]);
    const one = await post('/jobs/bulk/delete', { filter: { queue, id: [ids[0] as string, chosen] } });
    expect(one.body.items).toEqual(listed([chosen, ids[0] as string], 'deleted'));
    const rest = await post('/jobs/bulk/delete', { filter: { queue, older_than: 'PT0S' } });
    expect((rest.body.items as Json[]).map(({ job_id }) => job_id).sort()).toEqual(ids.slice(1).sort());
  });

  it('the first thousand of all queues, while the counts are of all', async () => {
    const [a, b] = [`${queue}-a`, `${queue}-b`];
    const first = await batch(700, a);
    const second = await batch(600, b);
    const { body } = await post('/jobs/bulk/cancel', { filter: { queue: [a, b] } });
    expect(body).toMatchObject({ total_matched: 1300, cancelled: 1300, completed: true });
    expect(body.items).toEqual(listed([...first, ...second].slice(0, 1000), 'cancelled'));
    const progress = await server.ok(200, 'GET', `/ojs/v1/jobs/bulk/${body.operation_id}`);
    expect(progress.items).toEqual(body.items);
  });

  it('what could not be done, with the reason, also beyond the first ones', async () => {
    await batch(1000);
    const [late = ''] = await batch(1);
    const inside = new TestQueue(queue);
    const locked = { action: 'cancel' as const, ids: [late] };
    unwrap(await inside.api.prepareBulk(uuidv7(), 'elsewhere', locked));
    const answer = await post('/jobs/bulk/cancel', { filter: { queue } });
    expect(answer).toMatchObject({ status: 207, body: { total_matched: 1001, cancelled: 1000, failed: 1 } });
    const items = answer.body.items as Json[];
    expect(items).toHaveLength(1001);
    expect(items.at(-1)).toEqual({ index: 1000, job_id: late, status: 'failed', reason: 'locked' });
    const operator = await post('/admin/jobs/bulk/cancel', { filter: { queue, id: late }, confirm: true });
    expect(operator.body).toMatchObject({ failed: 1, errors: [{ job_id: late, error: 'locked' }] });
  });

  it('the same under an idempotency key when the request is sent again', async () => {
    const ids = await batch(2);
    const send = () => post('/jobs/bulk/cancel', { filter: { queue } }, { 'Idempotency-Key': queue });
    expect((await send()).body.items).toEqual(listed(ids, 'cancelled'));
    await server.ok(200, 'POST', '/ojs/v1/jobs/bulk/retry', { job_ids: ids });
    expect((await send()).body.items).toEqual(listed(ids, 'cancelled'));
  });

  it('jobs once and in order, whatever dies on the way', async () => {
    const ids = await batch(900);
    const begun = await post('/jobs/bulk/cancel?wait=0', { filter: { queue } });
    const inside = new TestQueue(queue);
    await inside.evict();
    const path = `/ojs/v1/jobs/bulk/${begun.body.operation_id}`;
    const end = await until(async () => {
      await inside.alarm();
      const body = await server.ok(200, 'GET', path);
      return body.completed === true && body;
    }, 'the operation to end');
    expect(end.items).toEqual(listed(ids, 'cancelled'));
  });
});

it('an operation without followers keeps no list of its jobs', async () => {
  await batch(3);
  await post('/admin/jobs/bulk/cancel', { filter: { queue }, confirm: true });
  const [row] = await new TestQueue(queue).rows<{ data: string }>('SELECT data FROM tasks');
  expect(JSON.parse(row?.data as string)).not.toHaveProperty('items');
});
