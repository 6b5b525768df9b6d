/** Idempotency keys of operations on many jobs: sent again, the same request is the same operation. */

import { beforeEach, describe, expect, it } from 'vitest';
import { clock } from '../../../support/clock';
import { losing } from '../../../support/losing';
import { freshName, TestQueue } from '../../../support/queue';
import { type Answer, type Json, server, UNKNOWN_ID } from '../../../support/server';

server.emptyBeforeEach();
clock.restoreAfterEach();

let queue: string;
beforeEach(() => {
  queue = freshName('bulk-keys');
});

const post = (path: string, body: unknown, key = 'k', by = server) =>
  by.call('POST', `/ojs/v1${path}`, body, { 'Idempotency-Key': key });
const answerOf = ({ status, body }: Answer) => ({ status, body });
const replayed = ({ headers }: Answer) => headers.get('Idempotency-Replayed') === 'true';

/** Jobs in three queues, one with an id of its own. */
async function spread(): Promise<string[]> {
  return [
    await server.enqueue(queue),
    await server.enqueue(queue),
    await server.enqueue(`${queue}-b`),
    await server.enqueue(`${queue}-c`, { id: '01962222-bbbb-7ccc-8ddd-eeeeeeee0020' }),
  ];
}

const retryAll = (ids: string[]) => server.ok(200, 'POST', '/ojs/v1/jobs/bulk/retry', { job_ids: ids });

describe.each<['partial' | 'atomic']>([['partial'], ['atomic']])('by ids, %s,', (atomicity) => {
  it('the same request gets the first answer and changes nothing more', async () => {
    const ids = await spread();
    const body = { job_ids: ids, atomicity };
    const first = await post('/jobs/bulk/cancel', body);
    expect(first).toMatchObject({ status: 200, body: { cancelled: 4 } });
    expect(replayed(first)).toBe(false);
    await retryAll(ids);
    const again = await post('/jobs/bulk/cancel', { atomicity, job_ids: ids });
    expect(answerOf(again)).toEqual(answerOf(first));
    expect(replayed(again)).toBe(true);
    for (const id of ids) expect(await server.state(id)).toBe('available');
    const other = await post('/jobs/bulk/cancel', body, 'another');
    expect(other.body).toMatchObject({ cancelled: 4 });
  });

  it('deleted jobs are reported again although no queue has them any more', async () => {
    const ids = await spread();
    await server.ok(200, 'POST', '/ojs/v1/jobs/bulk/cancel', { job_ids: ids });
    const body = { job_ids: ids, atomicity };
    const first = await post('/jobs/bulk/delete', body);
    expect(first).toMatchObject({ status: 200, body: { deleted: 4 } });
    expect(answerOf(await post('/jobs/bulk/delete', body))).toEqual(answerOf(first));
  });

  it('sent many times at once it is done once, and all get the same answer', async () => {
    const ids = await spread();
    const body = { job_ids: ids, atomicity };
    const answers = await Promise.all(Array.from({ length: 5 }, () => post('/jobs/bulk/cancel', body)));
    for (const answer of answers) expect(answer).toMatchObject({ status: 200, body: { cancelled: 4, skipped: 0 } });
    expect(answers.filter((answer) => !replayed(answer))).toHaveLength(1);
  });

  it('another request under the key is refused, wherever its jobs are, and changes nothing', async () => {
    const ids = await spread();
    await post('/jobs/bulk/cancel', { job_ids: ids, atomicity });
    const stranger = await server.enqueue(`${queue}-z`);
    for (const [path, body] of [
      ['/jobs/bulk/cancel', { job_ids: [stranger], atomicity }],
      ['/jobs/bulk/delete', { job_ids: ids, atomicity }],
      ['/jobs/bulk/cancel', { filter: { queue: `${queue}-z` } }],
      ['/admin/jobs/bulk/cancel', { filter: { queue: `${queue}-z` }, confirm: true }],
    ] as const) {
      const refused = await post(path, body);
      expect(refused, JSON.stringify(refused.body)).toMatchObject({
        status: 409,
        body: { error: { code: 'conflict', details: { idempotency_key: 'k' } } },
      });
    }
    expect(await server.state(stranger)).toBe('available');
  });

  it('an answer that was lost is given when the request is sent again', async () => {
    const ids = await spread();
    const body = { job_ids: ids, atomicity };
    const method = atomicity === 'atomic' ? 'decideBatch' : 'bulk';
    expect((await post('/jobs/bulk/cancel', body, 'k', losing(method, 1, 'after'))).status).toBe(500);
    const again = await post('/jobs/bulk/cancel', body);
    expect(again).toMatchObject({ status: 200, body: { cancelled: 4, skipped: 0 } });
  });
});

describe('by ids', () => {
  it.each([1, 2, 3])('an operation that died before queue %i was reached is completed, each job once', async (nth) => {
    const ids = await spread();
    const body = { job_ids: ids };
    expect((await post('/jobs/bulk/cancel', body, 'k', losing('bulk', nth))).status).toBe(500);
    const done: string[] = [];
    for (const id of ids) if ((await server.state(id)) === 'cancelled') done.push(id);
    // What was done already must not be done again, even where it would be possible.
    if (done.length > 0) await retryAll(done);
    const again = await post('/jobs/bulk/cancel', body);
    expect(again).toMatchObject({ status: 200, body: { cancelled: 4, skipped: 0, failed: 0 } });
    for (const id of ids) expect(await server.state(id)).toBe(done.includes(id) ? 'available' : 'cancelled');
  });

  it('a job that came after the first request is not part of it', async () => {
    const id = '01962222-bbbb-7ccc-8ddd-eeeeeeee0021';
    const body = { job_ids: [id, await server.enqueue(queue)] };
    const first = await post('/jobs/bulk/cancel', body);
    expect(first).toMatchObject({ status: 207, body: { cancelled: 1, failed: 1 } });
    await server.enqueue(`${queue}-new`, { id });
    await server.enqueue(`${queue}-other`);
    expect(answerOf(await post('/jobs/bulk/cancel', body))).toEqual(answerOf(first));
    expect(await server.state(id)).toBe('available');
  });

  it('all or none: what was refused may be tried again under its key', async () => {
    const ids = await spread();
    const [first = ''] = ids;
    await server.ok(200, 'DELETE', `/ojs/v1/jobs/${first}`);
    const body = { job_ids: ids, atomicity: 'atomic' };
    expect((await post('/jobs/bulk/cancel', body)).status).toBe(422);
    await retryAll([first]);
    const accepted = await post('/jobs/bulk/cancel', body);
    expect(accepted).toMatchObject({ status: 200, body: { cancelled: 4 } });
    expect(replayed(accepted)).toBe(false);
    expect((await post('/jobs/bulk/cancel', { ...body, job_ids: [first] })).status).toBe(409);
  });

  it('all or none: what died before the decision is done by the next try', async () => {
    const ids = await spread();
    const body = { job_ids: ids, atomicity: 'atomic' };
    for (const [method, nth] of [
      ['checkBulk', 2],
      ['prepareBulk', 2],
      ['decideBatch', 1],
    ] as const) {
      expect((await post('/jobs/bulk/cancel', body, 'k', losing(method, nth))).status).toBe(500);
      expect(await Promise.all(ids.map((id) => server.state(id)))).toEqual(Array(4).fill('available'));
    }
    // The one that died last has left its jobs locked; whoever is asked long enough gives it up.
    clock.advance(11_000);
    for (const name of [queue, `${queue}-b`, `${queue}-c`]) await new TestQueue(name).alarm();
    const again = await post('/jobs/bulk/cancel', body);
    expect(again, JSON.stringify(again.body)).toMatchObject({ status: 200, body: { cancelled: 4 } });
  });
});

describe('by filter', () => {
  it('the same request is the same operation, with jobs of its time', async () => {
    const ids = await spread();
    const body = { filter: { type: 'test.*', state: 'available' } };
    const first = await post('/jobs/bulk/cancel', body);
    expect(first).toMatchObject({ status: 200, body: { cancelled: 4, completed: true } });
    await retryAll(ids);
    const later = await server.enqueue(queue);
    const again = await post('/jobs/bulk/cancel', body);
    expect(answerOf(again)).toEqual(answerOf(first));
    expect(replayed(again)).toBe(true);
    for (const id of [...ids, later]) expect(await server.state(id)).toBe('available');
  });

  it('tells how far it is when it continues', async () => {
    for (let n = 0; n < 2; n++) {
      const jobs = Array.from({ length: 1000 }, () => ({ type: 'test.echo', args: [], options: { queue } }));
      await server.ok(201, 'POST', '/ojs/v1/jobs/batch', { jobs });
    }
    const body = { filter: { queue } };
    const first = await post('/jobs/bulk/cancel?wait=0', body);
    expect(first.status).toBe(202);
    const again = await post('/jobs/bulk/cancel?wait=20', body);
    expect(again).toMatchObject({ status: 200, body: { cancelled: 2000, completed: true } });
    expect(again.body.operation_id).toBe(first.body.operation_id);
  });

  it.each([1, 2, 3])('an operation that died before queue %i was reached is completed', async (nth) => {
    const ids = await spread();
    const body = { filter: { type: 'test.echo' } };
    expect((await post('/jobs/bulk/cancel', body, 'k', losing('operate', nth))).status).toBe(500);
    clock.advance(1_000);
    const later = await Promise.all(
      [queue, `${queue}-b`, `${queue}-c`, `${queue}-new`].map((name) => server.enqueue(name)),
    );
    const again = await post('/jobs/bulk/cancel', body);
    expect(again).toMatchObject({ status: 200, body: { cancelled: 4, completed: true } });
    for (const id of ids) expect(await server.state(id)).toBe('cancelled');
    for (const id of later) expect(await server.state(id)).toBe('available');
  });

  it('ages count from the first request', async () => {
    const id = await server.enqueue(queue);
    const body = { filter: { queue, older_than: 'PT1H' } };
    expect((await post('/jobs/bulk/cancel', body, 'k', losing('operate'))).status).toBe(500);
    clock.advance(2 * 3_600_000);
    expect((await post('/jobs/bulk/cancel', body)).body).toMatchObject({ cancelled: 0 });
    expect(await server.state(id)).toBe('available');
    expect((await post('/jobs/bulk/cancel', body, 'another')).body).toMatchObject({ cancelled: 1 });
  });

  it('works for operators too', async () => {
    const id = await server.enqueue(queue);
    const body = { filter: { queue }, confirm: true };
    const first = await post('/admin/jobs/bulk/cancel', body);
    await retryAll([id]);
    expect(answerOf(await post('/admin/jobs/bulk/cancel', body))).toEqual(answerOf(first));
    expect(await server.state(id)).toBe('available');
  });
});

it('a key is named by the body too, has at most 256 characters, and is not spent on a request that is none', async () => {
  const id = await server.enqueue(queue);
  const body = { job_ids: [id], idempotency_key: 'in-body' };
  const first = await server.call('POST', '/ojs/v1/jobs/bulk/cancel', body);
  expect(answerOf(await server.call('POST', '/ojs/v1/jobs/bulk/cancel', body))).toEqual(answerOf(first));
  for (const [wrong, field] of [
    [{ ...body, idempotency_key: 'x'.repeat(257) }, 'idempotency_key'],
    [{ ...body, idempotency_key: 7 }, 'idempotency_key'],
    [{ filter: { queue }, idempotency_key: '' }, 'idempotency_key'],
  ] as [Json, string][]) {
    const answer = await server.call('POST', '/ojs/v1/jobs/bulk/cancel', wrong);
    expect(answer).toMatchObject({ status: 400, body: { error: { details: { field } } } });
  }
  const long = await post('/jobs/bulk/cancel', { job_ids: [id] }, 'x'.repeat(257));
  expect(long).toMatchObject({ status: 400, body: { error: { details: { field: 'Idempotency-Key' } } } });
  for (const wrong of [{ job_ids: [7] }, { filter: { stat: 'x' } }, { filter: { queue }, type: 'a' }]) {
    expect((await post('/jobs/bulk/cancel', wrong, 'fresh')).status).toBe(400);
  }
  expect((await post('/jobs/bulk/cancel', { job_ids: [UNKNOWN_ID] }, 'fresh')).status).toBe(207);
});

it('a key is known for a day, and its rows go', async () => {
  const ids = await spread();
  const body = { job_ids: ids };
  await post('/jobs/bulk/cancel', body);
  clock.advance(23 * 3_600_000);
  expect(replayed(await post('/jobs/bulk/cancel', body))).toBe(true);
  clock.advance(2 * 3_600_000);
  const anew = await post('/jobs/bulk/cancel', body);
  expect(replayed(anew)).toBe(false);
  expect(anew.body).toMatchObject({ cancelled: 0, skipped: 4 });
  expect((await post('/jobs/bulk/cancel', { job_ids: [UNKNOWN_ID] }, 'next')).status).toBe(207);
  const inside = new TestQueue(queue);
  await inside.alarm();
  expect(await inside.rows("SELECT count(*) AS n FROM inbox WHERE key LIKE 'bulk%'")).toEqual([{ n: 1 }]);
});

it('a request is the same whether its key stands in the body, in the header or in both', async () => {
  const ids = await spread();
  const inBody = { job_ids: ids, idempotency_key: 'k' };
  const first = await server.call('POST', '/ojs/v1/jobs/bulk/cancel', inBody);
  for (const body of [{ job_ids: ids }, inBody, { job_ids: ids, idempotency_key: 'overruled' }]) {
    const again = await post('/jobs/bulk/cancel', body);
    expect(replayed(again)).toBe(true);
    expect(answerOf(again)).toEqual(answerOf(first));
  }
  const job = { type: 'test.echo', args: [], options: { queue } };
  const made = await server.call('POST', '/ojs/v1/jobs/bulk', { jobs: [job], idempotency_key: 'bulk' });
  const again = await post('/jobs/bulk', { jobs: [job] }, 'bulk');
  expect(again.body.items).toEqual(made.body.items);
  expect(replayed(again)).toBe(true);
  for (const [path, body] of [
    ['/jobs', job],
    ['/jobs/batch', { jobs: [job] }],
  ] as const) {
    await post(path, body, path);
    expect(replayed(await post(path, { ...body, idempotency_key: path }, path))).toBe(true);
  }
});

describe('dead letters', () => {
  let made = 0;

  /** A dead letter in each of two queues. */
  async function dead(queues = [queue, `${queue}-b`]): Promise<string[]> {
    const ids: string[] = [];
    for (const name of queues) {
      // Before those that live again.
      const id = await server.enqueue(name, { options: { priority: ++made } });
      await server.take(name, { count: 1 });
      await server.nack(id, { error: { code: 'DEAD_LETTER', message: 'no' } });
      ids.push(id);
    }
    return ids;
  }
  const send = (method: string, path: string, body: unknown, key = 'k', by = server) =>
    by.call(method, `/ojs/v1${path}`, body, { 'Idempotency-Key': key });
  const total = async () => (await server.ok(200, 'GET', '/ojs/v1/dead-letter/stats')).total;

  it.each([
    ['POST', '/dead-letter/retry', { confirm: true }],
    ['POST', '/dead-letter/retry', { filter: { type: 'test.*', until: '+PT1M' }, confirm: true }],
    ['POST', '/admin/dead-letter/retry', { confirm: true }],
    ['DELETE', '/dead-letter', { confirm: true }],
    ['DELETE', '/admin/dead-letter', { filter: { since: '2000-01-01T00:00:00Z' }, confirm: true }],
    ['POST', '/dead-letter/purge?older_than=PT0S', undefined],
    ['POST', '/dead-letter/purge', { older_than: 'PT0S' }],
  ])('%s %s is done once', async (method, path, body) => {
    await dead();
    const first = await send(method, path, body);
    expect(first.status, JSON.stringify(first.body)).toBe(200);
    expect(first.body.succeeded ?? first.body.deleted).toBe(2);
    clock.advance(1_000);
    const later = await dead([queue, `${queue}-c`]);
    const again = await send(method, path, body);
    expect(answerOf(again)).toEqual(answerOf(first));
    expect(replayed(again)).toBe(true);
    for (const id of later) expect(await server.state(id)).toBe('discarded');
    expect((await send(method, path, { ...(body as Json), idempotency_key: 'k' })).body).toEqual(first.body);
  });

  it('another request under the key is refused, and what is in the query counts', async () => {
    await dead();
    const purge = (query: string) => send('POST', `/dead-letter/purge?${query}`, undefined);
    expect((await purge(`older_than=P1D&queue=${queue}`)).body).toMatchObject({ deleted: 0 });
    for (const query of ['older_than=P1D', `older_than=P1D&queue=${queue}-b`, `older_than=PT0S&queue=${queue}`]) {
      expect((await purge(query)).status).toBe(409);
    }
    expect((await send('DELETE', '/dead-letter', { confirm: true })).status).toBe(409);
    expect((await send('DELETE', '/dead-letter', { confirm: true }, 'x'.repeat(257))).status).toBe(400);
    expect(await total()).toBe(2);
  });

  it.each([1, 2])(
    'an operation that died before queue %i was reached is completed, without later dead letters',
    async (nth) => {
      const ids = await dead();
      // Older than the request, but not yet a dead letter.
      const young = [await server.enqueue(queue), await server.enqueue(`${queue}-b`)];
      const body = { confirm: true };
      expect((await send('POST', '/dead-letter/retry', body, 'k', losing('operate', nth))).status).toBe(500);
      clock.advance(1_000);
      for (const job_id of young) {
        const name = job_id === young[0] ? queue : `${queue}-b`;
        const jobs = await server.take(name, { count: 2 });
        for (const { id } of jobs) {
          if (id !== job_id) continue;
          await server.nack(job_id, { error: { code: 'DEAD_LETTER', message: 'no' } });
        }
      }
      expect(await send('POST', '/dead-letter/retry', body)).toMatchObject({ status: 200, body: { succeeded: 2 } });
      for (const id of ids) expect(await server.state(id)).not.toBe('discarded');
      for (const id of young) expect(await server.state(id)).toBe('discarded');
    },
  );
});
