/** The copy of a job beside `job`, for clients that read a flat answer. */
import { env } from 'cloudflare:workers';
import { describe, expect, it } from 'vitest';
import type { Env } from '../../../src/config';
import { createApp } from '../../../src/http/app';
import { freshName } from '../../support/queue';
import { type Body, type Json, server, TestServer, V1 } from '../../support/server';

server.emptyBeforeEach();

const DEAD = { retry: { max_attempts: 1, on_exhaustion: 'dead_letter' }, tags: ['a'] };
const ENTRY = { args: [{ user: 1 }], meta: { user: 'u' }, options: DEAD };

/** The answer has everything beside `job` that is in it, and this too. */
function expectCopy({ job, ...beside }: Body, own: Json = {}): void {
  expect(job).toBeDefined();
  expect(beside).toEqual({ ...job, ...own });
}

describe('a job under `job`', () => {
  it('is beside it too, with its payload, its result and its errors, wherever one job is answered', async () => {
    const queue = freshName();
    const body = { type: 'test.echo', ...ENTRY, options: { ...DEAD, queue } };
    const enqueued = await server.ok(201, 'POST', `${V1}/jobs`, body);
    expectCopy(enqueued);
    expect(enqueued).toMatchObject({ args: [{ user: 1 }], meta: { user: 'u' }, tags: ['a'], max_attempts: 1 });
    const id = enqueued.id as string;
    await server.takeOne(queue);
    const report = { job_id: id, error: { code: 'E', type: 'TypeError', message: 'no' } };
    const failed = await server.ok(200, 'POST', `${V1}/workers/nack`, report);
    expectCopy(failed, { job_id: id });
    expect(failed).toMatchObject({ error: { code: 'E' }, errors: [{ code: 'E' }] });
    expectCopy(await server.ok(200, 'GET', `${V1}/jobs/${id}`));
    expectCopy(await server.ok(200, 'GET', `${V1}/dead-letter/${id}`));
    expectCopy(await server.ok(200, 'POST', `${V1}/dead-letter/${id}/retry`));
    await server.takeOne(queue);
    const acked = await server.ok(200, 'POST', `${V1}/workers/ack`, { job_id: id, result: { a: 1 } });
    expectCopy(acked, { acknowledged: true, job_id: id });
    expect(acked).toMatchObject({ result: { a: 1 } });
    expectCopy(await server.ok(200, 'DELETE', `${V1}/jobs/${await server.enqueue(queue, ENTRY)}`));
  });

  it('is the job that a schedule was made to enqueue, and the one that a signal was sent to', async () => {
    await server.ok(201, 'POST', `${V1}/cron`, { name: 'nightly', cron: '0 3 * * *', type: 'test.echo', args: [1] });
    const fired = await server.ok(201, 'POST', `${V1}/cron/nightly/trigger`);
    expectCopy(fired, { job_id: fired.job?.id });
    const signalled = await server.ok(200, 'POST', `${V1}/jobs/${fired.id}/signals/go`);
    expectCopy(signalled, { signal: signalled.signal });
  });

  it('is neither answered nor copied where the producer wants the minimum', async () => {
    const body = { type: 'test.echo', ...ENTRY };
    const answer = await server.ok(201, 'POST', `${V1}/jobs`, body, { Prefer: 'return=minimal' });
    for (const name of ['job', 'args', 'meta', 'tags']) expect(answer).not.toHaveProperty(name);
  });

  it('hides in the copy what it hides in the job', async () => {
    const API_KEYS = JSON.stringify([{ key: 'viewer', role: 'viewer' }]);
    const variables = { ...env, API_KEYS, REDACT: 'password, email' } as unknown as Env;
    const app = createApp();
    const viewer = new TestServer((request) => app.fetch(request, variables));
    const queue = freshName();
    const secret = { password: 's3cr3t' };
    const id = await server.enqueue(queue, { args: [secret], meta: secret, email: secret });
    await server.takeOne(queue);
    await server.ack(id, { result: secret });
    const answer = await viewer.ok(200, 'GET', `${V1}/jobs/${id}`, undefined, { Authorization: 'Bearer viewer' });
    expect(JSON.stringify(answer)).not.toContain('s3cr3t');
    const { email: _, ...copy } = answer.job as Json;
    expect(answer).toEqual({ ...copy, job: answer.job });
    expect(answer).toMatchObject({ args: [{ password: '[redacted]' }], result: { password: '[redacted]' } });
  });
});

describe('the Python SDK', () => {
  const asPython = async (method: string, path: string, body?: Json) =>
    await server.send(
      new Request(`http://localhost${path}`, {
        method,
        headers: {
          'User-Agent': 'python-httpx/0.28.1',
          'Content-Type': 'application/openjobspec+json',
          Accept: 'application/openjobspec+json',
        },
        ...(body && { body: JSON.stringify(body) }),
      }),
    );

  it('is answered with the only media type that it reads, and nothing else changes', async () => {
    const queue = freshName();
    for (const [method, path, body] of [
      ['POST', '/jobs', { type: 'test.echo', args: [1], options: { queue } }],
      ['POST', '/workers/fetch', { queues: [queue], worker_id: 'w1' }],
      ['GET', '/jobs/01962222-bbbb-7ccc-8ddd-eeeeeeeeeeee', undefined],
    ] as const) {
      const answer = await asPython(method, V1 + path, body);
      expect(answer.headers.get('Content-Type')).toBe('application/json');
      expect(await answer.json()).toBeTypeOf('object');
    }
  });
});
