/** Calls of the SDKs for Python, Go, Rust, Java and Ruby as their sources make them, and what each reads of the answers. */
import { describe, expect, it } from 'vitest';
import { freshName } from '../support/queue';
import { type Body, type Json, server, V1 } from '../support/server';
import { flag, go, integer, java, number, python, ruby, rust, type Sdk, text, time } from './ojs-clients';

server.emptyBeforeEach();

const DEAD = { max_attempts: 1, on_exhaustion: 'dead_letter' };

/** A dead letter of this queue. */
async function deadLetter(queue: string): Promise<string> {
  const id = await server.enqueue(queue, {
    args: [{ to: 'a' }],
    meta: { user: 'u' },
    options: { retry: DEAD, tags: ['t'] },
  });
  await server.takeOne(queue);
  await server.nack(id, { error: { code: 'E', type: 'TypeError', message: 'no' } });
  return id;
}

/** Statistics of an hour: none of them may be null. */
const hour = {
  completed_last_hour: integer,
  failed_last_hour: integer,
  avg_duration_ms: number,
  avg_wait_ms: number,
  throughput_per_second: number,
};
const counts = { available: integer, active: integer, scheduled: integer, retryable: integer, discarded: integer };

describe('Python', () => {
  const request = (queue: string) => ({ type: 'email.send', args: ['a', 1], options: { queue, tags: ['t'] } });

  it('reads jobs under `job` and `jobs`, from the queue to the end', async () => {
    const queue = freshName();
    const unique = { on_conflict: 'ignore', key: ['type', 'queue', 'args'], period: 'PT1H', states: ['available'] };
    const one = { ...request(queue), options: { queue, unique } };
    const { job } = await python.call('POST', `${V1}/jobs`, one, 201);
    expect(job).toMatchObject({ id: text, type: 'email.send', state: 'available', args: ['a', 1], queue, attempt: 0 });
    expect((await python.call('POST', `${V1}/jobs`, one)).job?.id).toBe(job?.id);
    const { jobs } = await python.call('POST', `${V1}/jobs/batch`, { jobs: [request(queue), request(queue)] }, 201);
    expect(jobs).toMatchObject([{ tags: ['t'], max_attempts: 3 }, { id: text }]);
    const fetch = { queues: [queue], count: 2, visibility_timeout_ms: 30_000, worker_id: 'w' };
    const fetched = (await python.call('POST', `${V1}/workers/fetch`, fetch)).jobs as Json[];
    expect(fetched).toMatchObject([{ id: job?.id, attempt: 1 }, { id: jobs?.[0]?.id }]);
    await python.call('POST', `${V1}/workers/ack`, { job_id: job?.id, result: { a: 1 } });
    const error = { code: 'handler_error', message: 'no', retryable: true };
    expect(await python.call('POST', `${V1}/workers/nack`, { job_id: fetched[1]?.id, error })).toMatchObject({
      state: 'retryable',
      next_attempt_at: time,
    });
    expect((await python.get(`${V1}/jobs/${job?.id}`)).job).toMatchObject({ state: 'completed', result: { a: 1 } });
    expect((await python.call('DELETE', `${V1}/jobs/${jobs?.[1]?.id}`)).job).toMatchObject({ state: 'cancelled' });
    const beat = { worker_id: 'w', active_jobs: [], visibility_timeout_ms: 30_000 };
    expect(await python.call('POST', `${V1}/workers/heartbeat`, beat)).toMatchObject({ state: 'running' });
  });

  it('reads queues, dead letters, schedules and the server', async () => {
    const queue = freshName();
    const id = await deadLetter(queue);
    expect((await python.get(`${V1}/queues`)).queues).toMatchObject([{ name: queue, status: 'active' }]);
    expect(await python.get(`${V1}/queues/${queue}/stats`)).toMatchObject({
      ...{ queue, status: 'active', stats: { ...counts, ...hour, failed_last_hour: 1 }, computed_at: time },
    });
    expect((await python.get(`${V1}/dead-letter?limit=50&offset=0&queue=${queue}`)).jobs).toMatchObject([{ id }]);
    expect((await python.call('POST', `${V1}/dead-letter/${id}/retry`)).job).toMatchObject({ id, args: [{ to: 'a' }] });
    const cron = { name: 'nightly', cron: '0 3 * * *', type: 'report.build', args: [1] };
    expect(await python.call('POST', `${V1}/cron`, cron, 201)).toMatchObject({ ...cron, cron_job: cron });
    expect((await python.get(`${V1}/cron?limit=50&offset=0`)).cron_jobs).toMatchObject([cron]);
    expect(await python.call('DELETE', `${V1}/cron/nightly`)).toMatchObject({ deleted: true, name: 'nightly' });
    expect(await python.get('/ojs/manifest')).toMatchObject({ capabilities: {}, endpoints: { health: text } });
    expect(await python.get(`${V1}/health`)).toMatchObject({ status: 'ok' });
  });

  it('reads the steps of a workflow with their results, whatever these are', async () => {
    const queue = freshName();
    const id = await ranChain(python, queue, [7, { sum: 7 }]);
    expect((await python.get(`${V1}/workflows/${id}`)).workflow).toMatchObject({
      ...{ id, name: 'order', state: 'completed' },
      steps: [
        { id: 'step-0', type: 'a', depends_on: [], job_id: text, state: 'completed', result: 7, completed_at: time },
        { id: 'step-1', type: 'a', depends_on: ['step-0'], result: { sum: 7 } },
      ],
    });
  });
});

/** A chain as the SDKs write it, a graph, of which each step returns one of these. */
async function ranChain(sdk: Sdk, queue: string, results: unknown[]): Promise<string> {
  const steps = results.map((_, n) => ({
    ...{ id: `step-${n}`, type: 'a', args: [], depends_on: n === 0 ? [] : [`step-${n - 1}`], options: { queue } },
  }));
  const { workflow } = await sdk.call('POST', `${V1}/workflows`, { name: 'order', steps }, 201);
  for (const result of results) await server.ack((await server.takeOne(queue, { wait_ms: 5_000 })).id, { result });
  return (workflow as Json).id as string;
}

describe('Go', () => {
  const request = (queue: string, user: string, unique?: Json) => ({
    ...{ type: 'email.send', args: [{ user, at: Math.random() }], options: { queue, ...(unique && { unique }) } },
  });

  it('keeps jobs apart by members of their arguments, for a time in ms', async () => {
    const queue = freshName();
    const unique = { key: ['user'], period_ms: 3_600_000, on_conflict: 'reject' };
    const { job } = await go.call('POST', `${V1}/jobs`, request(queue, 'a', unique), 201);
    expect((await go.call('POST', `${V1}/jobs`, request(queue, 'a', unique), 409)).error).toMatchObject({
      ...{ code: 'duplicate', retryable: false, details: { existing_job_id: job?.id } },
    });
    await go.call('POST', `${V1}/jobs`, request(queue, 'b', unique), 201);
  });

  it('compares the count of a batch with its jobs', async () => {
    const queue = freshName();
    const jobs = [request(queue, 'a'), request(queue, 'b')];
    const answer = await go.call('POST', `${V1}/jobs/batch`, { jobs }, 201);
    expect(answer).toMatchObject({ count: 2, jobs: [{ id: text }, { id: text }] });
    const again = {
      jobs: [{ ...request(queue, 'c'), options: { queue, unique: { key: ['type'], on_conflict: 'ignore' } } }],
    };
    expect(await go.call('POST', `${V1}/jobs/batch`, again, 201)).toMatchObject({ count: 1, jobs: [{}] });
  });

  it('reads statistics, schedules and the manifest into its structures', async () => {
    const queue = freshName();
    await server.enqueue(queue);
    await server.ack((await server.takeOne(queue)).id);
    expect(await go.get(`${V1}/queues/${queue}/stats`)).toMatchObject({
      ...{ queue, status: 'active', stats: { ...counts, ...hour, completed_last_hour: 1 }, computed_at: text },
    });
    const cron = { name: 'nightly', cron: '0 3 * * *', type: 'report.build', args: [{ a: 1 }], options: { queue } };
    const shown = { ...cron, timezone: 'UTC', status: 'active', next_run_at: time, created_at: time };
    expect((await go.call('POST', `${V1}/cron`, cron, 201)).cron_job).toMatchObject(shown);
    const list = await go.get(`${V1}/cron`);
    expect(list).toMatchObject({ cron_jobs: [shown], entries: [shown], pagination: { total: 1, has_more: false } });
    const { capabilities, endpoints, ...manifest } = await go.get('/ojs/manifest');
    expect(manifest).toMatchObject({ ojs_version: '1.0', conformance_level: integer, extensions: expect.any(Array) });
    for (const able of Object.values(capabilities as Json)) expect(able).toEqual(flag);
    expect(endpoints).toEqual({
      ...{ base_url: 'http://localhost/ojs/v1', manifest: '/ojs/manifest', health: '/ojs/v1/health' },
    });
  });

  it('is shown only results that it can read', async () => {
    const queue = freshName();
    const id = await ranChain(go, queue, [7, { sum: 7 }, [1]]);
    const { steps } = (await go.get(`${V1}/workflows/${id}`)).workflow as { steps: Json[] };
    expect(steps.map((step) => step.result)).toEqual([undefined, { sum: 7 }, undefined]);
  });
});

it('a workflow shows as many results as one answer holds', async () => {
  const queue = freshName();
  const id = await ranChain(rust, queue, ['x'.repeat(700_000), 'y'.repeat(700_000), 'z']);
  const { steps } = (await rust.get(`${V1}/workflows/${id}`)) as Body & { steps: Json[] };
  expect(steps.map(({ result }) => (result as string | undefined)?.[0])).toEqual(['x', undefined, 'z']);
});

describe('Rust', () => {
  it('reads jobs flat, with all that they have', async () => {
    const queue = freshName();
    const body = { type: 'email.send', args: [{ to: 'a' }], meta: { a: 1 }, options: { queue, tags: ['t'] } };
    const { job } = await rust.call('POST', `${V1}/jobs`, body, 201);
    const flat = { id: job?.id, type: 'email.send', args: [{ to: 'a' }], meta: { a: 1 }, tags: ['t'], max_attempts: 3 };
    expect(await rust.get(`${V1}/jobs/${job?.id}`)).toMatchObject(flat);
    await server.takeOne(queue);
    await rust.call('POST', `${V1}/workers/ack`, { job_id: job?.id, result: { a: 1 } });
    expect(await rust.get(`${V1}/jobs/${job?.id}`)).toMatchObject({ ...flat, result: { a: 1 } });
    const other = await server.enqueue(queue);
    expect(await rust.call('DELETE', `${V1}/jobs/${other}`)).toMatchObject({ id: other, state: 'cancelled', args: [] });
    const batch = await rust.call('POST', `${V1}/jobs/batch`, { jobs: [body, body] }, 201);
    expect(batch).toMatchObject({ count: 2, jobs: [{ id: text }, { id: text }] });
  });

  it('reads dead letters, schedules, statistics and the manifest flat', async () => {
    const queue = freshName();
    const id = await deadLetter(queue);
    const letters = await rust.get(`${V1}/dead-letter?queue=${queue}&limit=10&offset=0`);
    expect(letters).toMatchObject({ jobs: [{ id }], pagination: { total: 1, limit: 10, offset: 0, has_more: false } });
    expect(await rust.call('POST', `${V1}/dead-letter/${id}/retry`)).toMatchObject({
      ...{ id, state: 'available', args: [{ to: 'a' }], meta: { user: 'u' }, tags: ['t'], max_attempts: 1 },
    });
    const cron = { name: 'n', cron: '0 3 * * *', timezone: 'UTC', type: 'a', overlap_policy: 'skip', enabled: true };
    expect(await rust.call('POST', `${V1}/cron`, { ...cron, args: [] }, 201)).toMatchObject({ ...cron, run_count: 0 });
    expect((await rust.get(`${V1}/cron`)).cron_jobs).toMatchObject([cron]);
    expect(await rust.get(`${V1}/queues/${queue}/stats`)).toMatchObject({
      queue,
      status: text,
      stats: { ...counts, ...hour },
    });
    expect((await rust.get('/ojs/manifest')).capabilities).toMatchObject({
      ...{ batch_enqueue: true, cron_jobs: true, dead_letter: true, delayed_jobs: true, job_ttl: true },
      ...{ priority_queues: true, rate_limiting: true, schema_validation: true, unique_jobs: true, workflows: true },
      pause_resume: true,
    });
  });
});

describe('Java', () => {
  it('names the members that make a job unique, and reads jobs and maps', async () => {
    const queue = freshName();
    const unique = { key: ['id'], period_ms: 3_600_000, on_conflict: 'ignore' };
    const body = { type: 'report.build', args: [{ id: 42 }], options: { queue, priority: 5, unique } };
    const { job } = await java.call('POST', `${V1}/jobs`, body, 201);
    expect(job).toMatchObject({ specversion: '1.0', id: text, args: [{ id: 42 }], priority: 5, meta: {} });
    expect((await java.call('POST', `${V1}/jobs`, body)).job?.id).toBe(job?.id);
    const other = { ...body, args: [{ id: 43 }] };
    expect((await java.call('POST', `${V1}/jobs`, other, 201)).job?.id).not.toBe(job?.id);
    expect(await java.get(`${V1}/queues/${queue}/stats`)).toMatchObject({ queue, depth: 2 });
    const cron = { name: 'nightly', cron: '0 3 * * *', type: 'report.build', args: [] };
    expect(await java.call('POST', `${V1}/cron`, cron, 201)).toMatchObject({ ...cron, next_run_at: time });
    const dead = await deadLetter(freshName());
    expect((await java.call('POST', `${V1}/dead-letter/${dead}/retry`, {})).job).toMatchObject({ state: 'available' });
  });
});

describe('Ruby', () => {
  it('sends a whole envelope and reads it flat', async () => {
    const queue = freshName();
    const id = '019461a8-1a2b-7c3d-8e4f-5a6b7c8d9e0f';
    const unique = { keys: ['type', 'args'], args_keys: ['id'], period: '1h' };
    const body = { specversion: '1.0', id, type: 'report.build', queue, args: [{ id: 42 }], priority: 2, unique };
    const flat = { id, type: 'report.build', queue, args: [{ id: 42 }], meta: {}, priority: 2, state: 'available' };
    expect(await ruby.call('POST', `${V1}/jobs`, body, 201)).toMatchObject({ ...flat, created_at: time });
    expect(await ruby.get(`${V1}/jobs/${id}`)).toMatchObject({ ...flat, attempt: 0, enqueued_at: time });
    const { queue: name, ...stats } = await ruby.get(`${V1}/queues/${queue}/stats`);
    expect(name).toBe(queue);
    expect(stats).toMatchObject({ depth: 1, active: 0, scheduled: 0, retryable: 0, dead_letter: 0, paused: false });
    const dead = await deadLetter(freshName());
    const retried = await ruby.call('POST', `${V1}/dead-letter/${dead}/retry`);
    expect(retried).toMatchObject({ id: dead, args: [{ to: 'a' }], meta: { user: 'u' } });
  });
});
