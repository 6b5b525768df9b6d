/** Producers that hold a socket to their queue: jobs go the way of those of a batch over HTTP. */
import { afterEach, describe, expect, it } from 'vitest';
import { jobIds } from '../../../../src/producer/id';
import { clock } from '../../../support/clock';
import { TestQueue } from '../../../support/queue';
import { type Json, server, V1 } from '../../../support/server';
import { WorkerSocket } from '../../../support/worker-socket';

server.emptyBeforeEach();
clock.restoreAfterEach();

const open: WorkerSocket[] = [];
afterEach(() => {
  for (const socket of open.splice(0)) if (!socket.closed) socket.close();
});
const connect = async (queue = 'q', query: Record<string, string> = {}): Promise<WorkerSocket> => {
  const socket = await WorkerSocket.open(queue, query);
  open.push(socket);
  return socket;
};
const job = (change: Json = {}): Json => ({ type: 'a.b', args: [1], ...change });
const jobsOf = (answer: Json) => answer.jobs as Json[];
const idsOf = (answer: Json) => jobsOf(answer).map(({ id }) => id as string);
const newId = jobIds(Date.now, Math.random);

describe('jobs over a socket', () => {
  it('are enqueued together, and answered as briefly as a producer may ask for over HTTP', async () => {
    const producer = await connect();
    const jobs = [1, 2, 3].map((n) => job({ args: [n], options: { queue: 'q', max_attempts: n } }));
    const told = await producer.enqueue(jobs);
    const { body } = await server.call('POST', `${V1}/jobs/batch`, { jobs }, { Prefer: 'return=minimal' });
    const { type, id, ...answer } = told;
    const shape = (entries: Json[] | undefined) =>
      entries?.map(({ id: own, created_at, ...rest }) => [typeof own, typeof created_at, rest]);
    expect([type, id]).toEqual(['enqueued', 1]);
    expect({ ...answer, jobs: shape(jobsOf(told)) }).toEqual({ ...body, jobs: shape(body.jobs) });
    expect(await server.job(idsOf(told)[1] as string)).toMatchObject({ args: [2], state: 'available', queue: 'q' });
  });

  it('bring their queue into being, and go to it when they name none', async () => {
    const producer = await connect('unborn');
    const [id] = idsOf(await producer.enqueue([job()]));
    expect(await server.job(id as string)).toMatchObject({ queue: 'unborn' });
  });

  it('go to no more queues than a request may ask: more are refused before any is asked, over HTTP as well', async () => {
    const producer = await connect();
    const jobs = Array.from({ length: 201 }, (_, n) => job({ options: { queue: `many-${n}` } }));
    expect(await producer.enqueue(jobs)).toMatchObject({ type: 'error', error: { status: 413 } });
    for (const path of ['/jobs/batch', '/jobs/bulk']) {
      expect(await server.refusal('POST', V1 + path, { jobs })).toMatchObject({ status: 413, field: 'jobs' });
    }
    expect(await server.refusal('POST', `${V1}/jobs/bulk`, { jobs, atomicity: 'atomic' })).toMatchObject({
      status: 413,
    });
    expect(await server.ok(200, 'GET', `${V1}/queues`)).toMatchObject({ queues: [] });
  });

  it('are asked for again while as much is on its way as one message may have', async () => {
    const [first, second] = [await connect(), await connect('q', { worker_id: 'w2' })];
    const large = Array.from({ length: 6 }, () => job({ args: ['x'.repeat(900_000)], options: { queue: 'other' } }));
    first.say({ type: 'enqueue', id: 1, jobs: large });
    second.say({ type: 'enqueue', id: 1, jobs: large });
    expect(await second.answerTo(1)).toMatchObject({ type: 'error', error: { status: 503, retry_after_ms: 1000 } });
    expect(await first.answerTo(1)).toMatchObject({ type: 'enqueued', enqueued: 6 });
    second.say({ type: 'enqueue', id: 2, jobs: large });
    expect(await second.answerTo(2)).toMatchObject({ type: 'enqueued' });
  });

  it('have every option that jobs have', async () => {
    const producer = await connect();
    const options = {
      ...{ queue: 'q', priority: 7, tags: ['x'], meta: { a: 1 }, timeout_ms: 5000, visibility_timeout_ms: 9000 },
      ...{ retry: { max_attempts: 4, backoff_strategy: 'fixed' }, retention: { completed: '1h' } },
      ...{ rate_limit: { key: 'k', concurrency: 2 }, expires_at: '+PT2H', delay_until: '+PT1H' },
    };
    const [first, second] = idsOf(
      await producer.enqueue([job({ options }), job({ options: { pending: true }, extra: 'kept' })]),
    );
    const shown = await server.job(first as string);
    expect(shown).toMatchObject({ state: 'scheduled', priority: 7, tags: ['x'], meta: { a: 1 }, max_attempts: 4 });
    expect(shown).toMatchObject({ timeout_ms: 5000, rate_limit: { key: 'k' }, expires_at: expect.any(String) });
    expect(await server.job(second as string)).toMatchObject({ state: 'pending', extra: 'kept' });
  });

  it('go to other queues too, all of them or none', async () => {
    const producer = await connect();
    const [here, there] = idsOf(await producer.enqueue([job(), job({ options: { queue: 'other' } })]));
    expect(await server.job(here as string)).toMatchObject({ queue: 'q' });
    expect(await server.job(there as string)).toMatchObject({ queue: 'other' });
    await server.ok(200, 'POST', `${V1}/queues/other/pause`);
    await server.configure('other', { backpressure: { max_depth: 1 } });
    const told = await producer.enqueue([job(), job({ options: { queue: 'other' } })]);
    expect(told).toMatchObject({ type: 'error', error: { status: 429, details: { index: 1 } } });
    expect(await server.ok(200, 'GET', `${V1}/queues/q/stats`)).toMatchObject({ stats: { available: 1 } });
  });

  it('are unique in their queue, and across queues', async () => {
    const producer = await connect();
    const unique = { key: 'k', on_conflict: 'ignore' };
    const [first] = idsOf(await producer.enqueue([job({ options: { unique } })]));
    const again = await producer.enqueue([job({ options: { unique } }), job()]);
    expect(again).toMatchObject({ enqueued: 1, deduplicated: 1, jobs: [{ id: first, deduplicated: true }, {}] });
    const refused = await producer.enqueue([job(), job({ options: { unique: { key: 'k' } } })]);
    expect(refused).toMatchObject({ error: { status: 409, code: 'duplicate', details: { index: 1 } } });
    const global = { key: 'g', keys: ['type'], on_conflict: 'ignore' };
    const elsewhere = await server.enqueue('other', { type: 'a.b', options: { unique: global } });
    expect(idsOf(await producer.enqueue([job({ options: { queue: 'q', unique: global } })]))).toEqual([elsewhere]);
  });

  it('are refused by a queue that is full, and warned of one that nearly is', async () => {
    const producer = await connect();
    await server.configure('q', { backpressure: { max_depth: 10 } });
    expect(await producer.enqueue(Array.from({ length: 9 }, () => job()))).toMatchObject({
      ...{ enqueued: 9, pressure: { depth: 9, bound: 10 } },
    });
    expect(await producer.enqueue([job(), job()])).toMatchObject({
      ...{ type: 'error', error: { status: 429, code: 'QUEUE_FULL', retryable: true } },
    });
    await producer.enqueue([job()]);
  });

  it('are informed which of their options do not exist', async () => {
    const producer = await connect();
    const { warnings } = await producer.enqueue([job({ options: { prioritty: 1 } })]);
    expect(warnings).toEqual([expect.stringContaining('jobs[0].options.prioritty is not known')]);
  });

  it('are validated by the schemas of their types, those of now', async () => {
    const producer = await connect();
    await producer.enqueue([job({ type: 'x.y', args: ['any'] })]);
    const schema = { type: 'array', items: { type: 'integer' } };
    await server.ok(201, 'PUT', `${V1}/admin/schemas/x.y/1`, { schema });
    const warned = await producer.enqueue([job({ type: 'x.y', args: ['any'] })]);
    expect(warned.warnings).toMatchObject([expect.stringContaining('x.y')]);
    await server.configure('q', { schemas: 'strict' });
    const refused = await producer.enqueue([job(), job({ type: 'x.y', args: ['any'] })]);
    expect(refused).toMatchObject({ error: { status: 400, details: { index: 1 } } });
    expect(await producer.enqueue([job({ type: 'x.y', args: [1] })])).toMatchObject({ enqueued: 1 });
  });

  it('belong to the trace of their message', async () => {
    const producer = await connect();
    const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';
    const [id] = idsOf(await producer.enqueue([job()], { traceparent }));
    expect(await server.job(id as string)).toMatchObject({ meta: { traceparent } });
  });

  it('keep integers that a double cannot hold', async () => {
    const producer = await connect();
    producer.say('{"type":"enqueue","id":1,"jobs":[{"type":"a.b","args":[12345678901234567890]}]}');
    const [id] = idsOf(await producer.answerTo(1));
    const text = await (await server.send(new Request(`http://localhost${V1}/jobs/${id}`))).text();
    expect(text).toContain('[12345678901234567890]');
  });

  it('start waiting workers, on the same socket too', async () => {
    const worker = await connect();
    worker.ready(1);
    const [id] = idsOf(await worker.enqueue([job()]));
    expect(await worker.given(1)).toMatchObject([{ id }]);
  });

  it('cost the rows that they cost over HTTP', async () => {
    const q = new TestQueue('q');
    const jobs = Array.from({ length: 100 }, (_, n) => job({ args: [n], options: { queue: 'q' } }));
    await server.ok(201, 'POST', `${V1}/jobs/batch`, { jobs });
    const producer = await connect();
    const http = await q.rowsWritten(() => server.ok(201, 'POST', `${V1}/jobs/batch`, { jobs }));
    expect(await q.rowsWritten(() => producer.enqueue(jobs))).toBe(http);
  });

  it('find an object that has lost its memory', async () => {
    const producer = await connect();
    await producer.enqueue([job()]);
    await new TestQueue('q').evict();
    expect(await producer.enqueue([job()])).toMatchObject({ enqueued: 1 });
  });
});

describe('jobs that are sent again', () => {
  it('are refused under their ids, or found: on disk they are once', async () => {
    const id = newId('q');
    const before = await connect();
    before.say({ type: 'enqueue', id: 1, jobs: [job({ id })] });
    before.close();
    const after = await connect();
    const told = await after.enqueue([job({ id })]);
    if (told.type === 'error')
      expect(told).toMatchObject({ error: { code: 'duplicate', details: { existing_job_id: id } } });
    expect(await after.enqueue([job({ id })])).toMatchObject({ error: { status: 409, code: 'duplicate' } });
    expect(await server.ok(200, 'GET', `${V1}/queues/q/stats`)).toMatchObject({ stats: { available: 1 } });
  });

  it('get the first answer under their key, over HTTP as well', async () => {
    const producer = await connect();
    const first = await producer.enqueue([job({ options: { queue: 'q' } })], { idempotency_key: 'k1' });
    const again = await (await connect()).enqueue([job({ options: { queue: 'q' } })], { idempotency_key: 'k1' });
    expect(again).toMatchObject({ replayed: true, jobs: [{ id: idsOf(first)[0] }] });
    const body = { jobs: [job({ options: { queue: 'q' } })] };
    const { headers, body: told } = await server.call('POST', `${V1}/jobs/batch`, body, { 'Idempotency-Key': 'k1' });
    expect([headers.get('Idempotency-Replayed'), told.jobs?.[0]?.id]).toEqual(['true', idsOf(first)[0]]);
    const other = await producer.enqueue([job({ args: [2] })], { idempotency_key: 'k1' });
    expect(other).toMatchObject({ type: 'error', error: { status: 409 } });
  });
});

describe('jobs over a socket that are wrong', () => {
  it('are refused as over HTTP, and change nothing', async () => {
    const producer = await connect();
    const refusal = async (jobs: unknown, more: Json = {}) => {
      const { error, type } = await producer.enqueue(jobs, more);
      const { status, code, details } = error as { status: number; code: string; details: Json };
      return [type, status, code, details.field, details.index];
    };
    expect(await refusal(undefined)).toEqual(['error', 400, 'invalid_request', 'jobs', undefined]);
    expect(await refusal('x')).toEqual(['error', 400, 'invalid_request', 'jobs', undefined]);
    expect(await refusal([])).toEqual(['error', 400, 'invalid_request', 'jobs', undefined]);
    expect(await refusal([job(), 7])).toEqual(['error', 400, 'invalid_request', 'jobs[1]', 1]);
    expect(await refusal([job(), { type: 'a.b' }])).toEqual(['error', 400, 'invalid_request', 'jobs[1].args', 1]);
    const wrong = job({ options: { retry: { max_attempts: -1 } } });
    expect(await refusal([job(), wrong])).toMatchObject(['error', 422, 'invalid_request', expect.any(String), 1]);
    expect(await refusal(Array(1001).fill(job()))).toEqual(['error', 413, 'payload_too_large', 'jobs', undefined]);
    const large = job({ args: ['x'.repeat(1024 * 1024)] });
    expect(await refusal([large])).toMatchObject(['error', 413, 'payload_too_large', 'jobs[0]', 0]);
    expect(await refusal([job()], { idempotency_key: '' })).toMatchObject([
      'error',
      400,
      'invalid_request',
      'idempotency_key',
      undefined,
    ]);
    const { body } = await server.call('GET', `${V1}/queues`);
    expect([body.queues, producer.closed]).toEqual([[], undefined]);
  });

  it('may be as many as they like: only messages that cannot be read end in a cut', async () => {
    const producer = await connect();
    await server.enqueue('q', { options: { unique: { key: 'k' } } });
    const twice = { type: 'a.b', args: [], options: { unique: { key: 'k' } } };
    for (let n = 1; n <= 60; n++) producer.say({ type: 'enqueue', id: n, jobs: [twice] });
    expect(await producer.answerTo(60)).toMatchObject({ error: { code: 'duplicate' } });
    expect(await producer.enqueue([job()])).toMatchObject({ enqueued: 1 });
  });
});
