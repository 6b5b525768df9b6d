/** Workers that are confused, late, greedy or have a wrong clock: refused by name or held to what is possible. */

import { describe, expect, it } from 'vitest';
import { type Json, server, UNKNOWN_ID, V1 } from '../../../support/server';

server.emptyBeforeEach();

const REPORTS: [string, string, (id: string) => Json][] = [
  ['an ack', '/workers/ack', (id) => ({ job_id: id, result: 1 })],
  ['a nack', '/workers/nack', (id) => ({ job_id: id, error: 'x' })],
  ['a requeue', '/workers/nack', (id) => ({ job_id: id, error: 'x', requeue: true })],
];

describe.each(REPORTS)('%s', (_, path, body) => {
  it('for a job that does not exist is 404', async () => {
    for (const id of [UNKNOWN_ID, 'not-an-id', '']) {
      expect(await server.refusal('POST', V1 + path, body(id))).toEqual({ status: 404, code: 'not_found' });
    }
  });

  it.each([
    ['waits', async () => server.enqueue('q')],
    ['is scheduled', async () => server.enqueue('q', { options: { delay_until: '+PT1H' } })],
    ['is pending', async () => server.enqueue('q', { options: { pending: true } })],
    [
      'is completed',
      async () => {
        const id = await server.enqueue('q');
        await server.takeOne('q');
        await server.ack(id, { result: 'first' });
        return id;
      },
    ],
    [
      'is cancelled',
      async () => {
        const id = await server.enqueue('q');
        await server.ok(200, 'DELETE', `${V1}/jobs/${id}`);
        return id;
      },
    ],
    [
      'is discarded',
      async () => {
        const id = await server.enqueue('q', { options: { retry: { max_attempts: 1 } } });
        await server.takeOne('q');
        await server.nack(id, { error: 'x' });
        return id;
      },
    ],
  ])('for a job that %s is 409 and changes nothing', async (_state, prepare) => {
    const id = await prepare();
    const before = await server.job(id);
    const answer = await server.call('POST', V1 + path, body(id));
    expect(answer).toMatchObject({
      status: 409,
      body: { error: { code: 'conflict', details: { job_id: id, current_state: before.state } } },
    });
    expect(await server.job(id)).toEqual(before);
  });

  it('for a job of another worker is 409 and leaves it to that one', async () => {
    const id = await server.enqueue('q');
    await server.takeOne('q', { worker_id: 'w1' });
    const before = await server.job(id);
    expect(await server.refusal('POST', V1 + path, { ...body(id), worker_id: 'w2' })).toMatchObject({ status: 409 });
    expect(await server.job(id)).toEqual(before);
    await server.ack(id, { worker_id: 'w1' });
  });
});

describe('a result above 1 MiB', () => {
  it('is refused; the job stays active, and a smaller one is taken', async () => {
    const id = await server.enqueue('q');
    await server.takeOne('q', { worker_id: 'w1' });
    const result = 'x'.repeat(1_048_576);
    for (const path of ['/workers/ack', `/jobs/${id}/ack`]) {
      const answer = await server.call('POST', V1 + path, { job_id: id, result });
      expect(answer).toMatchObject({
        status: 413,
        body: { error: { code: 'payload_too_large', details: { field: 'result', max_bytes: 1_048_576 } } },
      });
    }
    expect(await server.job(id)).toMatchObject({ state: 'active', attempt: 1, worker_id: 'w1' });
    expect(await server.ack(id, { result: result.slice(2) })).toMatchObject({ state: 'completed' });
  });
});

describe('a fetch', () => {
  it.each([
    ['no list', undefined, 'queues'],
    ['an empty list', [], 'queues'],
    ['a text', 'q', 'queues'],
    ['a thousand names', Array.from({ length: 1000 }, (_, n) => `q${n}`), 'queues'],
    ['an empty name', ['q', ''], 'queues[1]'],
    ['a name in upper case', ['Mail'], 'queues[0]'],
    ['a name with a slash', ['a/b'], 'queues[0]'],
    ['a name of 129 characters', ['x'.repeat(129)], 'queues[0]'],
    ['a number', [7], 'queues[0]'],
    ['null', [null], 'queues[0]'],
  ])('from %s is refused and takes nothing', async (_, queues, field) => {
    const id = await server.enqueue('q');
    expect(await server.refusal('POST', '/ojs/v1/workers/fetch', { queues })).toEqual({
      status: 400,
      code: 'invalid_request',
      field,
    });
    expect(await server.job(id)).toMatchObject({ state: 'available', attempt: 0 });
  });

  it('from queues that do not exist gives nothing and creates none', async () => {
    expect(await server.take(['nowhere', 'constructor', 'elsewhere'], { worker_id: 'w1' })).toEqual([]);
    expect(await server.ok(200, 'GET', `${V1}/queues`)).toMatchObject({ queues: [] });
  });

  it.each([
    [-5, 1],
    [0, 1],
    [101, 3],
    [1e300, 3],
  ])('of %d jobs gives %d of three', async (count, given) => {
    for (let n = 0; n < 3; n++) await server.enqueue('q');
    expect(await server.take('q', { count })).toHaveLength(given);
  });

  it.each([
    ['count', 1.5],
    ['count', '3'],
    ['visibility_timeout_ms', 0],
    ['visibility_timeout_ms', -1],
    ['visibility_timeout_ms', 1e15],
    ['visibility_timeout_ms', 'PT30S'],
    ['wait_ms', 'long'],
    ['worker_id', 'x'.repeat(256)],
    ['worker_id', 'a\0b'],
  ])('with %s %j is refused and takes nothing', async (field, value) => {
    const id = await server.enqueue('q');
    expect(await server.refusal('POST', '/ojs/v1/workers/fetch', { queues: ['q'], [field]: value })).toEqual({
      status: 400,
      code: 'invalid_request',
      field,
    });
    expect(await server.job(id)).toMatchObject({ state: 'available', attempt: 0 });
  });
});

describe('a nack', () => {
  it.each([
    ['retry_in', -1],
    ['retry_in', 'soon'],
    ['retry_in', 'P1Y'],
    ['retry_in', 1e18],
    ['retry_in', {}],
    ['retry_at', 'tomorrow'],
    ['retry_at', '2030-02-30T00:00:00Z'],
    ['retry_at', -1],
    ['retry_at', 1e300],
    ['retry_at', '9999-12-31T23:59:59Z'],
    ['retry_at', 8.64e15],
  ])('with %s %j is refused and the attempt continues', async (name, value) => {
    const id = await server.enqueue('q');
    await server.takeOne('q');
    const error = { code: 'E', message: 'm', [name]: value };
    expect(await server.refusal('POST', '/ojs/v1/workers/nack', { job_id: id, error })).toEqual({
      status: 400,
      code: 'invalid_request',
      field: `error.${name}`,
    });
    expect(await server.job(id)).toMatchObject({ state: 'active', attempt: 1 });
    expect(await server.job(id)).not.toHaveProperty('error');
  });

  it('whose clock is behind is run again at once, not in the past', async () => {
    const id = await server.enqueue('q');
    await server.takeOne('q');
    const before = Date.now();
    const error = { code: 'E', message: 'm', retry_at: '2001-01-01T00:00:00Z' };
    await server.nack(id, { error });
    const again = await server.job(id);
    expect(again).toMatchObject({ state: 'available', attempt: 1 });
    expect(Date.parse(again.enqueued_at as string)).toBeGreaterThanOrEqual(before);
    expect(await server.takeOne('q')).toMatchObject({ id, attempt: 2 });
  });

  it('whose clock is far ahead waits until then', async () => {
    const id = await server.enqueue('q');
    await server.takeOne('q');
    const error = { code: 'E', message: 'm', retry_at: '2099-01-01T00:00:00Z' };
    const answer = await server.nack(id, { error });
    expect(answer).toMatchObject({ state: 'retryable', next_attempt_at: '2099-01-01T00:00:00.000Z' });
    expect(await server.take('q')).toEqual([]);
  });
});
