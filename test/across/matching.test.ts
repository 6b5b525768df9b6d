/** Operations on all that match, done to all of them or to none. */

import { v7 as uuidv7 } from 'uuid';
import { beforeEach, describe, expect, it } from 'vitest';
import { unwrap } from '../../src/job/errors';
import { clock } from '../support/clock';
import { isLong } from '../support/long';
import { losing } from '../support/losing';
import { freshName, refusal, TestQueue } from '../support/queue';
import { countRows, startCounting } from '../support/rows';
import { type Answer, type Json, server, UNKNOWN_ID, V1 } from '../support/server';

server.emptyBeforeEach();
clock.restoreAfterEach();

let queue: string;
beforeEach(() => {
  queue = freshName('match');
});

const act = (action: string, filter: Json, key?: string, by = server) =>
  by.call(
    'POST',
    `${V1}/jobs/bulk/${action}`,
    { filter, atomicity: 'atomic' },
    key === undefined ? {} : { 'Idempotency-Key': key },
  );
const states = (ids: string[]) => Promise.all(ids.map((id) => server.state(id)));
const batch = async (n: number, into = queue) => {
  const jobs = Array(n).fill({ type: 'test.echo', args: [], options: { queue: into } });
  return ((await server.ok(201, 'POST', `${V1}/jobs/batch`, { jobs })).jobs as Json[]).map(({ id }) => id as string);
};
const items = ({ body }: Answer) => body.items as Json[];

/** Jobs of one tenant in one queue or in three, and one of another tenant. */
async function tenants(queues: string[]): Promise<{ mine: string[]; other: string }> {
  const mine: string[] = [];
  for (const name of queues) mine.push(await server.enqueue(name, { meta: { tenant: 'acme' } }));
  return { mine, other: await server.enqueue(queues[0] as string, { meta: { tenant: 'ajax' } }) };
}

describe.each<[string, () => string[]]>([
  ['in one queue', () => [queue, queue, queue]],
  ['over three queues', () => [queue, `${queue}-b`, `${queue}-c`]],
])('%s', (_, queues) => {
  const filter = () => ({ queue: [...new Set(queues())], meta: { tenant: 'acme' } });

  it('it is done to all that match, and to no others', async () => {
    const { mine, other } = await tenants(queues());
    const answer = await act('cancel', filter());
    expect(answer).toMatchObject({ status: 200, body: { total_matched: 3, cancelled: 3, skipped: 0, failed: 0 } });
    expect(items(answer)).toEqual(mine.map((job_id, index) => ({ index, job_id, status: 'cancelled' })));
    expect(await states([...mine, other])).toEqual(['cancelled', 'cancelled', 'cancelled', 'available']);
    expect(await act('retry', filter())).toMatchObject({ status: 200, body: { retried: 3 } });
    expect(await states(mine)).toEqual(Array(3).fill('available'));
  });

  it('all queues are looked through when none is named', async () => {
    const { mine } = await tenants(queues());
    expect(await act('cancel', { meta: { tenant: 'acme' } })).toMatchObject({ status: 200, body: { cancelled: 3 } });
    const deleted = await act('delete', { meta: { tenant: 'acme' } });
    expect(deleted).toMatchObject({ status: 200, body: { deleted: 3 } });
    expect(await states(mine)).toEqual(Array(3).fill('none'));
  });

  it('a job that cannot be acted on keeps it from all', async () => {
    const { mine } = await tenants(queues());
    const last = queues()[2] as string;
    const culprit = await server.enqueue(last, { meta: { tenant: 'acme' }, options: { delay_until: '+PT1H' } });
    await server.ok(200, 'POST', `${V1}/jobs/bulk/cancel`, { job_ids: mine });
    const answer = await act('delete', { ...filter(), state: ['cancelled', 'scheduled'] });
    expect(answer).toMatchObject({ status: 422, body: { total_matched: 4, deleted: 0, skipped: 4, failed: 0 } });
    expect(new Map(items(answer).map(({ job_id, reason }) => [job_id, reason]))).toEqual(
      new Map([...mine.map((id) => [id, 'rolled_back'] as const), [culprit, 'scheduled']]),
    );
    expect(await states(mine)).toEqual(Array(3).fill('cancelled'));
    // Without a state it is about the jobs that the action is for.
    expect(await act('delete', filter())).toMatchObject({ status: 200, body: { deleted: 3 } });
  });

  it('a running job is not changed, and an operation that names it is refused', async () => {
    const { mine } = await tenants(queues());
    const jobs = await server.take(queue, { count: 1 });
    const [running] = jobs.map(({ id }) => id as string);
    const refused = await act('cancel', { ...filter(), state: ['available', 'active'] });
    expect(refused.status).toBe(422);
    expect(items(refused)).toContainEqual(
      expect.objectContaining({ job_id: running, status: 'skipped', reason: 'active' }),
    );
    expect((await act('cancel', filter())).body).toMatchObject({ cancelled: 2 });
    expect(await states(mine)).toEqual(mine.map((id) => (id === running ? 'active' : 'cancelled')));
  });

  it('under a key the same request gets the first answer, and continues with the jobs of its time', async () => {
    const { mine } = await tenants(queues());
    const first = await act('cancel', filter(), 'k');
    expect(first).toMatchObject({ status: 200, body: { cancelled: 3 } });
    await server.ok(200, 'POST', `${V1}/jobs/bulk/retry`, { job_ids: mine });
    clock.advance(1_000);
    const later = await server.enqueue(queue, { meta: { tenant: 'acme' } });
    const again = await act('cancel', filter(), 'k');
    expect([again.status, again.body]).toEqual([first.status, first.body]);
    expect(again.headers.get('Idempotency-Replayed')).toBe('true');
    expect(await states([...mine, later])).toEqual(Array(4).fill('available'));
    const other = await act('delete', filter(), 'k');
    expect(other.status).toBe(409);
  });

  it('sent many times at once under a key it is done once, and all get the same answer', async () => {
    await tenants(queues());
    const answers = await Promise.all(Array.from({ length: 5 }, () => act('cancel', filter(), 'k')));
    for (const answer of answers) expect(answer).toMatchObject({ status: 200, body: { cancelled: 3 } });
    expect(new Set(answers.map(({ body }) => JSON.stringify(body))).size).toBe(1);
  });

  it('an answer that was lost is given when the request is sent again', async () => {
    await tenants(queues());
    const method = queues()[0] === queues()[1] ? 'bulkMatching' : 'decideBatch';
    expect((await act('cancel', filter(), 'k', losing(method, 1, 'after'))).status).toBe(500);
    expect(await act('cancel', filter(), 'k')).toMatchObject({ status: 200, body: { cancelled: 3 } });
  });

  it('what died before the decision changed nothing and is done by the next try', async () => {
    const { mine } = await tenants(queues());
    const method = queues()[0] === queues()[1] ? 'bulkMatching' : 'prepareBulk';
    expect((await act('cancel', filter(), 'k', losing(method))).status).toBe(500);
    expect(await states(mine)).toEqual(Array(3).fill('available'));
    clock.advance(11_000);
    for (const name of new Set(queues())) await new TestQueue(name).alarm();
    expect(await act('cancel', filter(), 'k')).toMatchObject({ status: 200, body: { cancelled: 3 } });
  });

  it('is for operators too', async () => {
    await tenants(queues());
    const path = `${V1}/admin/jobs/bulk/cancel`;
    const body = { filter: filter(), atomicity: 'atomic', confirm: true };
    const counts = { action: 'cancel', matched: 3, skipped: 0, failed: 0, errors: [], completed: true };
    expect(await server.ok(200, 'POST', path, body)).toEqual({ ...counts, succeeded: 3 });
    const named = { ...body, filter: { ...filter(), state: 'cancelled' } };
    const refused = await server.call('POST', path, named);
    expect(refused).toMatchObject({ status: 422, body: { matched: 3, succeeded: 0, skipped: 3 } });
    expect((refused.body.errors as Json[]).map(({ error }) => error)).toEqual(Array(3).fill('cancelled'));
  });
});

describe('more than a thousand matches', () => {
  it.each([[''], ['-b']])('are refused, in one queue and over two (%s), and a thousand are not', async (suffix) => {
    const ids = [...(await batch(600)), ...(await batch(400, queue + suffix))];
    const extra = await server.enqueue(queue + suffix);
    const filter = { queue: [...new Set([queue, queue + suffix])] };
    const refused = await act('cancel', filter, 'k');
    expect(refused).toMatchObject({
      status: 422,
      body: { error: { code: 'unsupported', details: { max_matches: 1000 } } },
    });
    expect(refused.body.error?.hint).toContain('job_ids');
    expect(await server.state(ids[0] as string)).toBe('available');
    await server.ok(200, 'DELETE', `${V1}/jobs/${extra}`);
    // The refusal has not spent the key.
    const other = await act('cancel', { ...filter, state: 'available' }, 'k');
    expect(other).toMatchObject({ status: 200, body: { total_matched: 1000, cancelled: 1000 } });
    expect(items(other)).toHaveLength(1000);
  });
});

it('an operation without matches changes nothing', async () => {
  expect(await act('cancel', { queue })).toMatchObject({ status: 200, body: { total_matched: 0, items: [] } });
  await server.enqueue(queue, { options: { delay_until: '+PT1H' } });
  expect(await act('cancel', { queue, id: UNKNOWN_ID }, 'k')).toMatchObject({ status: 200, body: { cancelled: 0 } });
  expect(await act('delete', { type: '*' })).toMatchObject({ status: 200, body: { deleted: 0 } });
  expect(await act('cancel', { type: 'x', tipe: 'y' })).toMatchObject({ status: 400 });
});

it('an operation waits for another one that has one of the jobs, and says so when that takes too long', async () => {
  const [id = ''] = await batch(1);
  const inside = new TestQueue(queue);
  const other = uuidv7();
  unwrap(await inside.api.prepareBulk(other, 'elsewhere', { action: 'cancel', ids: [id] }));
  for (const filter of [{ queue }, { queue: [queue, `${queue}-b`] }]) {
    const answer = await act('cancel', filter);
    expect(answer).toMatchObject({ status: 503, body: { error: { details: { reason: 'locked', job_id: id } } } });
  }
  unwrap(await inside.api.abortBatch(other));
  expect(await act('cancel', { queue })).toMatchObject({ status: 200, body: { cancelled: 1 } });
});

it.runIf(isLong)('a queue in which too much would have to be looked at refuses', async () => {
  const inside = new TestQueue(queue);
  for (let n = 0; n < 51; n++) await inside.enqueue(...Array.from({ length: 1000 }, () => ({})));
  const request = { action: 'cancel' as const, filter: { types: ['no.such'] } };
  expect(refusal(await inside.api.bulkMatching(request))).toMatchObject({ status: 422, code: 'unsupported' });
  const [id] = await inside.enqueue({ type: 'rare.job', scheduledAt: Date.now() + 3_600_000 });
  const rare = { action: 'cancel' as const, filter: { states: ['scheduled' as const], types: ['rare.*'] } };
  const read = await inside.inside(async ({ storage }) => {
    startCounting(storage);
    expect(unwrap(await inside.api.bulkMatching(rare)).items).toEqual([{ job_id: id?.id, status: 'done' }]);
    return countRows(storage).read;
  });
  expect(read).toBeLessThan(2_000);
});
