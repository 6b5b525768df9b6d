/** What happened to a job, read back from its record. */

import { describe, expect, it } from 'vitest';
import { clock } from '../../support/clock';
import { type Json, server, V1 } from '../../support/server';

const T0 = Date.UTC(2040, 4, 1, 12);
const iso = (ms: number) => new Date(T0 + ms).toISOString();
const at = (ms: number) => clock.set(T0 + ms);
let made = 0;

clock.restoreAfterEach();

/** A job that fails at 2 s after a second's run, and completes at 8 s after two. */
async function failedOnce(): Promise<string> {
  const queue = `history-${++made}`;
  const retry = { max_attempts: 2, backoff_strategy: 'constant', initial_interval: 'PT3S', jitter: false };
  at(0);
  const { id } = await server.ok(201, 'POST', `${V1}/jobs`, { type: 'a.b', args: [], options: { queue, retry } });
  const fetch = () => server.ok(200, 'POST', `${V1}/workers/fetch`, { queues: [queue], worker_id: 'w1' });
  at(1000);
  await fetch();
  at(2000);
  await server.nack(id, { error: { code: 'io', type: 'IoError', message: 'broken' } });
  at(6000);
  await fetch();
  at(8000);
  await server.ack(id);
  return id as string;
}

describe('GET /jobs/:id/retries', () => {
  it('lists the attempts that failed, and the policy', async () => {
    const id = await failedOnce();
    expect(await server.ok(200, 'GET', `${V1}/jobs/${id}/retries`)).toMatchObject({
      job_id: id,
      retries: [
        {
          attempt: 1,
          state: 'retryable',
          error: 'broken',
          started_at: iso(1000),
          failed_at: iso(2000),
          next_retry_at: iso(5000),
        },
      ],
      policy: { max_attempts: 2, initial_interval: 'PT3S', backoff_strategy: 'constant' },
    });
  });

  it('says of the last one that nothing follows', async () => {
    at(0);
    const options = { queue: `history-${++made}`, retry: { max_attempts: 1 } };
    const { id } = await server.ok(201, 'POST', `${V1}/jobs`, { type: 'a.b', args: [], options });
    await server.take(options.queue);
    await server.nack(id, { error: 'broken' });
    const { retries } = await server.ok(200, 'GET', `${V1}/jobs/${id}/retries`);
    expect(retries).toMatchObject([{ attempt: 1, state: 'discarded', next_retry_at: null }]);
  });

  it('is 404 for a job that does not exist', async () => {
    const answer = await server.call('GET', `${V1}/jobs/0190f5a0-0000-7000-8000-000000000000/retries`);
    expect(answer).toMatchObject({ status: 404, body: { error: { code: 'not_found' } } });
  });
});

describe('GET /jobs/:id/history', () => {
  it('tells the story oldest first', async () => {
    const id = await failedOnce();
    const { events, total, next_cursor } = await server.ok(200, 'GET', `${V1}/jobs/${id}/history`);
    const story = (events as Json[]).map(({ event_type, timestamp, data }) => [event_type, timestamp, data]);
    expect(story).toMatchObject([
      ['job.created', iso(0), { type: 'a.b' }],
      ['job.state_changed', iso(1000), { from: 'available', to: 'active' }],
      ['job.attempt_started', iso(1000), { attempt: 1 }],
      ['job.attempt_failed', iso(2000), { attempt: 1, code: 'io', message: 'broken' }],
      ['job.state_changed', iso(2000), { from: 'active', to: 'retryable' }],
      ['job.state_changed', iso(6000), { from: 'available', to: 'active' }],
      ['job.attempt_started', iso(6000), { attempt: 2 }],
      ['job.attempt_completed', iso(8000), { attempt: 2 }],
      ['job.state_changed', iso(8000), { from: 'active', to: 'completed' }],
    ]);
    expect(total).toBe(9);
    expect(next_cursor).toBeNull();
    expect(await server.ok(200, 'GET', `${V1}/events/${id}/history`)).toMatchObject({ total: 9 });
  });

  it('names the worker that has it, and how it ended when that was no success', async () => {
    at(0);
    const queue = `history-${++made}`;
    const { id } = await server.ok(201, 'POST', `${V1}/jobs`, { type: 'a.b', args: [], options: { queue } });
    await server.take(queue, { worker_id: 'w7' });
    const running = await server.ok(200, 'GET', `${V1}/jobs/${id}/history`);
    expect((running.events as Json[]).at(-1)).toMatchObject({
      event_type: 'job.attempt_started',
      actor: { type: 'worker', id: 'w7' },
    });
    at(500);
    await server.ok(200, 'POST', `${V1}/jobs/${id}/cancel`);
    const { events } = await server.ok(200, 'GET', `${V1}/jobs/${id}/history`);
    expect((events as Json[]).at(-1)).toMatchObject({ event_type: 'job.cancelled', timestamp: iso(500) });
  });

  it('comes in pages, and refuses a cursor that is none', async () => {
    const id = await failedOnce();
    const seen: unknown[] = [];
    let cursor: unknown = '';
    while (cursor !== null) {
      const page = await server.ok(200, 'GET', `${V1}/jobs/${id}/history?limit=4${cursor && `&cursor=${cursor}`}`);
      seen.push(...(page.events as Json[]).map((event) => event.id));
      cursor = page.next_cursor;
    }
    expect(new Set(seen).size).toBe(9);
    expect(await server.call('GET', `${V1}/jobs/${id}/history?cursor=zzz`)).toMatchObject({ status: 400 });
  });

  it('cannot be deleted apart from its job', async () => {
    const id = await failedOnce();
    const answer = await server.call('DELETE', `${V1}/jobs/${id}/history`);
    expect(answer).toMatchObject({ status: 422, body: { error: { code: 'unsupported' } } });
  });
});
