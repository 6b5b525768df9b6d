/** PATCH: a job that waits changes its time, its place and its policy; one that runs or has ended does not. */

import { beforeEach, describe, expect, it } from 'vitest';
import { freshName } from '../../support/queue';
import { type Json, server, UNKNOWN_ID } from '../../support/server';

server.emptyBeforeEach();

let queue: string;
beforeEach(() => {
  queue = freshName('patch');
});

const patch = (id: string, body: unknown) => server.call('PATCH', `/ojs/v1/jobs/${id}`, body);
const patched = async (id: string, body: unknown) =>
  (await server.ok(200, 'PATCH', `/ojs/v1/jobs/${id}`, body)).job as Json;
const fetchIds = (count = 10) => server.takeIds(queue, { count });
const counts = async () =>
  (await server.ok(200, 'GET', `/ojs/v1/queues/${queue}/stats`)).stats as Record<string, number>;

describe('a change of time', () => {
  it('makes a delayed job available at once', async () => {
    const id = await server.enqueue(queue, { options: { delay_until: '+PT1H' } });
    expect(await fetchIds()).toEqual([]);
    const job = await patched(id, { scheduled_at: null });
    expect(job.state).toBe('available');
    expect(job).not.toHaveProperty('scheduled_at');
    expect(await fetchIds()).toEqual([id]);
  });

  it('takes a job out of the line and puts it back at its new time', async () => {
    const [first, second] = [await server.enqueue(queue), await server.enqueue(queue)];
    const job = await patched(first, { delay_until: '+PT1H' });
    expect(job).toMatchObject({ state: 'scheduled', scheduled_at: expect.any(String) });
    expect(await counts()).toMatchObject({ available: 1, scheduled: 1, depth: 2 });
    expect(await fetchIds()).toEqual([second]);
    await patched(first, { scheduled_at: '2001-01-01T00:00:00Z' });
    expect(await counts()).toMatchObject({ available: 1, scheduled: 0, active: 1 });
    expect(await fetchIds()).toEqual([first]);
  });

  it('moves the next attempt of a job that waits for its retry', async () => {
    const id = await server.enqueue(queue, { options: { retry: { max_attempts: 3, initial_interval: 'PT1H' } } });
    await fetchIds();
    await server.nack(id, { error: { message: 'no' } });
    const later = await patched(id, { scheduled_at: '+PT2H' });
    expect(later.state).toBe('retryable');
    expect(Date.parse(later.next_attempt_at as string) - Date.now()).toBeGreaterThan(7_100_000);
    expect((await patched(id, { scheduled_at: null })).state).toBe('available');
    expect(await fetchIds()).toEqual([id]);
  });

  it('waits with a pending job until it is activated', async () => {
    const id = await server.enqueue(queue, { options: { pending: true } });
    expect(await patched(id, { scheduled_at: '+PT1H', priority: 3 })).toMatchObject({ state: 'pending', priority: 3 });
    const activated = await server.ok(200, 'POST', `/ojs/v1/jobs/${id}/activate`);
    expect(activated.job?.state).toBe('scheduled');
  });

  it('can let a job expire', async () => {
    const id = await server.enqueue(queue);
    await patched(id, { expires_at: '2001-01-01T00:00:00Z' });
    const answer = await server.ok(200, 'GET', `/ojs/v1/jobs/${id}`);
    expect(answer.job).toMatchObject({ state: 'discarded', discard_reason: 'expired' });
    expect(await counts()).toMatchObject({ available: 0, discarded: 1 });
  });

  it.each<[string, Json, Json, string]>([
    ['an expiry before its start', { delay_until: '+PT2H' }, { expires_at: '+PT1H' }, 'expires_at'],
    ['a start after its expiry', { expires_at: '+PT1H' }, { scheduled_at: '+PT2H' }, 'scheduled_at'],
    ['both the wrong way round', {}, { scheduled_at: '+PT2H', expires_at: '+PT1H' }, 'expires_at'],
    ['that of a pending job', { pending: true, delay_until: '+PT2H' }, { expires_at: '+PT1H' }, 'expires_at'],
  ])('refuses %s and changes nothing', async (_, options, change, field) => {
    const id = await server.enqueue(queue, { options });
    const path = `/ojs/v1/jobs/${id}`;
    const before = await server.ok(200, 'GET', path);
    expect(await server.refusal('PATCH', path, change)).toEqual({ status: 422, code: 'invalid_request', field });
    expect(await server.ok(200, 'GET', path)).toEqual(before);
    await patched(id, { tags: ['kept'] });
  });
});

describe('a change of priority', () => {
  it('lets a job overtake and fall back', async () => {
    const ids = [await server.enqueue(queue), await server.enqueue(queue), await server.enqueue(queue)];
    await patched(ids[2] as string, { priority: 10 });
    await patched(ids[0] as string, { options: { priority: -10 } });
    expect(await counts()).toMatchObject({ available: 3 });
    const distribution = (await server.ok(200, 'GET', `/ojs/v1/queues/${queue}/priority-stats`)).distribution;
    expect(distribution).toEqual([
      { priority: 10, count: 1 },
      { priority: 0, count: 1 },
      { priority: -10, count: 1 },
    ]);
    expect(await fetchIds()).toEqual([ids[2], ids[1], ids[0]]);
  });

  it('back to the default keeps the place among the others', async () => {
    const first = await server.enqueue(queue, { options: { priority: 5 } });
    const second = await server.enqueue(queue);
    expect(await patched(first, { priority: null })).toMatchObject({ priority: 0 });
    expect(await fetchIds()).toEqual([first, second]);
  });
});

describe('a change of policy', () => {
  it('merges its members and goes back to the defaults with null', async () => {
    const id = await server.enqueue(queue, {
      options: { retry: { max_attempts: 5, initial_interval_ms: 2000, backoff_strategy: 'constant' } },
    });
    const merged = await patched(id, { retry: { initial_interval: 'PT9S', jitter: false, max_attempts: null } });
    expect(merged.retry).toEqual({ backoff_strategy: 'constant', initial_interval: 'PT9S', jitter: false });
    expect(merged).toMatchObject({
      max_attempts: 3,
      retry_effective: { initial_interval: 'PT9S', backoff_strategy: 'constant', jitter: false },
    });
    expect((await patched(id, { retry: { max_interval: null } })).retry_effective).toMatchObject({
      max_interval: null,
    });
    const defaults = await patched(id, { retry: null });
    expect(defaults).not.toHaveProperty('retry');
    expect(defaults).toMatchObject({ max_attempts: 3, retry_effective: { initial_interval: 'PT1S' } });
  });

  it('of the attempts replaces the one written elsewhere', async () => {
    const id = await server.enqueue(queue, { options: { retry: { max_attempts: 5 } } });
    expect(await patched(id, { max_attempts: 7 })).toMatchObject({ max_attempts: 7 });
    expect(await patched(id, { retry: { max_attempts: 2 } })).toMatchObject({ max_attempts: 2 });
    expect(await patched(id, { max_attempts: 9, timeout_ms: 500, tags: ['a'] })).toMatchObject({
      max_attempts: 9,
      timeout_ms: 500,
      tags: ['a'],
    });
    expect(await patched(id, { max_attempts: null, tags: null })).not.toHaveProperty('tags');
  });

  it('is in force at the next failure', async () => {
    const id = await server.enqueue(queue, { options: { max_attempts: 1 } });
    await patched(id, { max_attempts: 2 });
    await fetchIds();
    const answer = await server.nack(id, { error: { message: 'no' } });
    expect(answer.state).toBe('retryable');
  });
});

describe('a job that cannot be changed', () => {
  it('runs or has ended: 409, and nothing changes', async () => {
    const running = await server.enqueue(queue);
    await fetchIds();
    const refused = await patch(running, { priority: 5 });
    expect(refused.status).toBe(409);
    expect(refused.body.error).toMatchObject({ code: 'conflict', details: { current_state: 'active' } });
    await server.ack(running);
    expect((await patch(running, { priority: 5 })).body.error?.details).toMatchObject({ current_state: 'completed' });
    const cancelled = await server.enqueue(queue);
    await server.ok(200, 'DELETE', `/ojs/v1/jobs/${cancelled}`);
    expect((await patch(cancelled, { scheduled_at: null })).status).toBe(409);
    expect(await server.job(cancelled)).toMatchObject({
      state: 'cancelled',
      priority: 0,
    });
  });

  it('does not exist: 404', async () => {
    expect((await patch(UNKNOWN_ID, { priority: 1 })).status).toBe(404);
    expect((await patch('nonsense', { priority: 1 })).status).toBe(404);
  });

  it.each<[string, Json, number, string]>([
    ['a priority that is no number', { priority: 'high' }, 400, 'priority'],
    ['a priority out of range', { priority: 101 }, 400, 'priority'],
    ['a time without zone', { scheduled_at: '2030-01-01T00:00:00' }, 400, 'scheduled_at'],
    ['a number for a time', { delay_until: 5000 }, 400, 'delay_until'],
    ['two names of one thing', { scheduled_at: null, delay_until: '+PT1S' }, 400, 'delay_until'],
    ['the same in options', { priority: 1, options: { priority: 2 } }, 400, 'options.priority'],
    ['arguments', { args: [] }, 400, 'args'],
    ['a queue', { queue: 'other' }, 400, 'queue'],
    ['what nobody knows', { prority: 5 }, 400, 'prority'],
    ['options that are none', { options: 7 }, 400, 'options'],
    ['tags that are none', { tags: 'a' }, 400, 'tags'],
    ['a retention that is no object', { retention: 'P1D' }, 400, 'retention'],
    ['a retention of no duration', { retention: { completed: 'soon' } }, 400, 'retention.completed'],
    ['a retention of no end', { options: { retention: { failed: 'P1D' } } }, 400, 'options.retention.failed'],
    ['a policy out of range', { retry: { backoff_coefficient: 5000 } }, 422, 'retry.backoff_coefficient'],
    ['a policy with an unknown field', { retry: { often: true } }, 422, 'retry.often'],
    ['attempts that are none', { max_attempts: -1 }, 422, 'max_attempts'],
    ['attempts said twice', { max_attempts: 2, retry: { max_attempts: 3 } }, 422, 'max_attempts'],
  ])('is asked for %s', async (_, body, status, field) => {
    const id = await server.enqueue(queue, { options: { priority: 4 } });
    const before = await server.ok(200, 'GET', `/ojs/v1/jobs/${id}`);
    const answer = await patch(id, body);
    expect(answer.status, JSON.stringify(answer.body)).toBe(status);
    expect(answer.body.error?.details?.field).toBe(field);
    expect(await server.ok(200, 'GET', `/ojs/v1/jobs/${id}`)).toEqual(before);
  });
});

it('a cancelled delayed job never runs, however close its time is', async () => {
  const ids = await Promise.all(
    Array.from({ length: 20 }, (_, n) =>
      server.enqueue(queue, { options: { delay_until: `+PT0.${String(n * 4).padStart(3, '0')}S` } }),
    ),
  );
  const taken: unknown[] = [];
  const cancelled: string[] = [];
  const fetching = (async () => {
    for (let round = 0; round < 30; round++) taken.push(...(await fetchIds(5)));
  })();
  for (const id of ids) {
    const answer = await server.call('DELETE', `/ojs/v1/jobs/${id}`);
    if (answer.status === 200 && answer.body.job?.attempt === 0) cancelled.push(id);
  }
  await fetching;
  taken.push(...(await fetchIds(100)));
  expect(taken.filter((id) => cancelled.includes(id as string))).toEqual([]);
});
