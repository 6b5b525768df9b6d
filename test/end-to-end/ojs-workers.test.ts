/** The programs of docs/guides/other-languages.md: what each makes its SDK send, as the sources of the SDKs have it, and what the SDK reads. */
import { describe, expect, it } from 'vitest';
import page from '../../docs/guides/other-languages.md?raw';
import { type Json, server, V1 } from '../support/server';
import { go, java, python, ruby, rust, type Sdk, text } from './ojs-clients';

server.emptyBeforeEach();

const ADA = { to: 'ada@example.com' };

/** What the worker of an SDK sends. */
interface Worker {
  sdk: Sdk;
  /** The job of the page's producer. */
  enqueued: Json;
  fetch: Json;
  /** For a job that it runs. */
  beat: (id: string) => Json;
  /** A failure of a handler, with which its job is retried. */
  failure: Json;
}

const QUEUED = { type: 'email.send', args: [ADA], options: { queue: 'email' } };

/** Go, Java and Rust name the worker, and no length of a lease. */
const NAMED = { worker_id: 'worker_1', queues: ['email'] };

const WORKERS: Record<string, Worker> = {
  Python: {
    sdk: python,
    enqueued: QUEUED,
    fetch: { ...NAMED, count: 1, visibility_timeout_ms: 30_000 },
    beat: (id) => ({ worker_id: 'worker_1', active_jobs: [id], visibility_timeout_ms: 30_000 }),
    failure: { code: 'handler_error', message: 'no', retryable: true, details: { traceback: 'Traceback' } },
  },
  Go: {
    sdk: go,
    enqueued: QUEUED,
    fetch: { ...NAMED, count: 10 },
    beat: (id) => ({ worker_id: 'worker_1', state: 'running', active_jobs: 1, active_job_ids: [id] }),
    failure: { code: 'handler_error', message: 'no', retryable: true },
  },
  Ruby: {
    sdk: ruby,
    enqueued: { specversion: '1.0', type: 'email.send', queue: 'email', args: [ADA] },
    fetch: { queues: ['email'], batch_size: 5 },
    beat: (id) => ({ job_ids: [id] }),
    failure: { type: 'Net::ReadTimeout', message: 'no', backtrace: ['work.rb:5'] },
  },
  Java: {
    sdk: java,
    enqueued: QUEUED,
    fetch: { ...NAMED, count: 1 },
    beat: (id) => ({
      ...{ ...NAMED, state: 'running', active_jobs: 1, active_job_ids: [id], concurrency: 10 },
    }),
    failure: { type: 'IOException', message: 'no' },
  },
  Rust: {
    sdk: rust,
    enqueued: QUEUED,
    fetch: { ...NAMED, count: 10 },
    beat: (id) => ({ worker_id: 'worker_1', active_jobs: [id] }),
    failure: { code: 'handler_error', message: 'no', retryable: true },
  },
};

const section = (name: string) => page.split(`\n## ${name}\n`)[1]?.split('\n## ')[0] ?? '';

/** Fetches as the worker does, once. */
async function fetch({ sdk, fetch }: Worker): Promise<Json[]> {
  return (await sdk.call('POST', `${V1}/workers/fetch`, fetch)).jobs as Json[];
}

/** Enqueues as the producer does and fetches as the worker does. @returns the job */
async function take(worker: Worker, more: Json = {}): Promise<Json> {
  await worker.sdk.call('POST', `${V1}/jobs`, { ...worker.enqueued, ...more }, 201);
  const [job] = await fetch(worker);
  return job as Json;
}

describe.each(Object.entries(WORKERS))('the programs in %s', (name, worker) => {
  const { sdk, failure } = worker;

  it('are on the page, and enqueue what their worker takes and completes', async () => {
    const programs = section(name);
    expect(programs.match(/email\.send/g)).toHaveLength(2);
    if (name !== 'Python') expect(programs).toContain('No test runs these programs.');
    const job = await take(worker);
    expect(job).toMatchObject({ id: text, type: 'email.send', queue: 'email', args: [ADA], attempt: 1 });
    await sdk.call('POST', `${V1}/workers/ack`, { job_id: job.id, result: { sent_to: ADA.to } });
    expect((await server.call('GET', `${V1}/jobs/${job.id}`)).body.job).toMatchObject({
      ...{ state: 'completed', result: { sent_to: ADA.to } },
    });
  });

  it('retry a job that failed', async () => {
    const job = await take(worker);
    expect(await sdk.call('POST', `${V1}/workers/nack`, { job_id: job.id, error: failure })).toMatchObject({
      state: 'retryable',
    });
  });

  it('lose the report of a job that was cancelled while it ran, and nothing else', async () => {
    const job = await take(worker);
    await server.ok(200, 'DELETE', `${V1}/jobs/${job.id}`);
    await sdk.call('POST', `${V1}/workers/ack`, { job_id: job.id }, 409);
    expect((await server.call('GET', `${V1}/jobs/${job.id}`)).body.job).toMatchObject({ state: 'cancelled' });
  });
});

describe('what the page says about', () => {
  it.each(['Python', 'Go', 'Java', 'Rust'])(
    '%s: heartbeats extend a lease, and tell what an operator says',
    async (name) => {
      const worker = WORKERS[name] as Worker;
      const { id } = await take(worker);
      const beat = () => worker.sdk.call('POST', `${V1}/workers/heartbeat`, worker.beat(id as string));
      expect(await beat()).toMatchObject({ state: 'running', jobs_extended: [id], jobs_lost: [] });
      await server.ok(200, 'POST', `${V1}/admin/workers/worker_1/quiet`);
      expect(await beat()).toMatchObject({ state: 'quiet' });
    },
  );

  it('Ruby: one job in a request, and heartbeats that are rejected', async () => {
    const { sdk, enqueued, beat } = WORKERS.Ruby as Worker;
    await sdk.call('POST', `${V1}/jobs`, enqueued, 201);
    const job = await take(WORKERS.Ruby as Worker);
    expect(await fetch(WORKERS.Ruby as Worker)).toHaveLength(1);
    const { error } = await sdk.call('POST', `${V1}/workers/heartbeat`, beat(job.id as string), 400);
    expect(error?.details).toEqual({ field: 'worker_id' });
  });

  it.each(['Ruby', 'Java'])('%s: a policy may name the class of an exception', async (name) => {
    const worker = WORKERS[name] as Worker;
    const retry = { max_attempts: 3, non_retryable_errors: [worker.failure.type] };
    const job = await take(worker, name === 'Ruby' ? { retry } : { options: { queue: 'email', retry } });
    const nack = { job_id: job.id, error: worker.failure };
    expect(await worker.sdk.call('POST', `${V1}/workers/nack`, nack)).toMatchObject({ state: 'discarded' });
  });

  it.each(['Go', 'Rust'])('%s: an error that must not be retried ends the job', async (name) => {
    const worker = WORKERS[name] as Worker;
    const job = await take(worker);
    const nack = { job_id: job.id, error: { ...worker.failure, retryable: false } };
    expect(await worker.sdk.call('POST', `${V1}/workers/nack`, nack)).toMatchObject({ state: 'discarded' });
  });

  it('leases: the setting of the queue decides where a fetch does not', async () => {
    const [, command] = /curl -s -X PUT \$TOCSIN_URL(\S+)/.exec(page) ?? [];
    const [, setting] = /-d '(\{"visibility_timeout"[^']*)'/.exec(page) ?? [];
    await server.ok(200, 'PUT', command as string, JSON.parse(setting as string));
    for (const name of ['Go', 'Ruby', 'Java', 'Rust']) {
      const worker = WORKERS[name] as Worker;
      const { id } = await take(worker);
      const { lease_expires_at, started_at } = await server.ok(200, 'GET', `${V1}/admin/jobs/${id}`);
      expect([name, Date.parse(lease_expires_at as string) - Date.parse(started_at as string)]).toEqual([name, 60_000]);
    }
  });
});
