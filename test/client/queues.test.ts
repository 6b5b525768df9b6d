/** Queues and limits of keys through the client, against the queue itself. */

import { beforeEach, describe, expect, it } from 'vitest';
import { ConflictError, InvalidJobError, NotFoundError, QueueFullError } from '../../src/client';
import { freshName } from '../support/queue';
import { server } from '../support/server';

import { errorAnswer, fakeQueue } from './fake-queue';
import { all, liveClient } from './live-client';

server.emptyBeforeEach();
const client = liveClient({ retry: false });
const { queues, rateLimits } = client;
let queue: string;
beforeEach(() => {
  queue = freshName('queues');
});
const enqueue = (options: { priority?: number } = {}) => client.enqueue('a.b', [], { ...options, queue });

describe('a queue', () => {
  it('is made with settings, which are shown, changed and taken back', async () => {
    const made = await queues.create(queue, { concurrency: 5, maxSize: 2, overflowPolicy: 'reject' });
    expect(made).toMatchObject({ concurrency: 5, maxSize: 2 });
    await expect(queues.create(queue)).rejects.toThrow(ConflictError);
    const changed = await queues.configure(queue, {
      concurrency: null,
      rateLimit: { limit: 10, period: 'minute', concurrency: 3 },
      defaultRetry: { onExhaustion: 'dead_letter' },
      retention: { completed: '1h' },
      deadLetter: { retention: { maxAge: '30d', maxCount: 10 } },
      allowedJobTypes: ['a.*'],
    });
    expect(changed).not.toHaveProperty('concurrency');
    expect((await queues.config(queue)).config).toEqual(changed);
    expect(changed).toMatchObject({ rateLimit: { limit: 10, concurrency: 3 }, allowedJobTypes: ['a.*'] });
    await enqueue();
    await enqueue();
    await expect(enqueue()).rejects.toThrow(QueueFullError);
    await expect(client.enqueue('b.c', [], { queue })).rejects.toThrow(InvalidJobError);
    expect(await queues.get(queue)).toMatchObject({
      name: queue,
      status: 'active',
      stats: { depth: 2 },
      config: changed,
    });
  });

  it('is paused, drained and resumed', async () => {
    await enqueue();
    expect(await queues.pause(queue)).toEqual({ name: queue, paused: true, status: 'paused' });
    expect(await queues.drain(queue)).toEqual({ name: queue, paused: false, status: 'draining' });
    await expect(enqueue()).rejects.toThrow(ConflictError);
    expect(await queues.resume(queue)).toEqual({ name: queue, paused: false, status: 'active' });
  });

  it('has a group limited, paused, resumed and restored', async () => {
    const rate = { limit: 100, period: 'minute' } as const;
    await client.queues.create('shared', { groups: { order: 'fair', rate, limits: { big_one: { maxWaiting: 5 } } } });
    const { group, limits } = await client.queues.changeGroup('shared', 'big_one', { concurrency: 2, weight: 3 });
    expect([group, limits]).toEqual([
      'big_one',
      { concurrency: 2, maxWaiting: 5, rate: { limit: 100, period: 'PT1M' } },
    ]);
    expect(await client.queues.pauseGroup('shared', 'big_one')).toMatchObject({
      ...{ paused: true, waitingFor: { reason: 'group_paused' } },
    });
    expect(await client.queues.resumeGroup('shared', 'big_one')).toMatchObject({ paused: false });
    const { limits: rated } = await client.queues.changeGroup('shared', 'big_one', {
      rate: { limit: 9, period: 'hour' },
    });
    expect(rated.rate).toEqual({ limit: 9, period: 'PT1H' });
    expect(await client.queues.restoreGroup('shared', 'big_one')).toMatchObject({ override: null });
    expect(await client.queues.group('shared', 'big_one')).toMatchObject({ waiting: 0, limits: { maxWaiting: 5 } });
  });

  it('is counted by state and by priority', async () => {
    await enqueue({ priority: 5 });
    await enqueue({ priority: 5 });
    await enqueue();
    expect(await queues.stats(queue)).toMatchObject({ queue, depth: 3, available: 3, dead: 0 });
    expect(await queues.priorities(queue)).toEqual([
      { priority: 5, count: 2 },
      { priority: 0, count: 1 },
    ]);
    const inspected = await queues.inspect(queue);
    expect(inspected).toMatchObject({ name: queue, counts: { available: 3 }, configuration: {} });
    expect(inspected.throughput).toEqual({ enqueuedPerMinute: 3, processedPerMinute: 0, failedPerMinute: 0 });
    expect(inspected).toMatchObject({ latencyMs: { p95: null }, errorRate: 0 });
    await expect(queues.inspect('nowhere')).rejects.toThrow(NotFoundError);
  });

  it('is listed with all others', async () => {
    for (const name of ['q-a', 'q-b', 'q-c']) await client.enqueue('a.b', [], { queue: name });
    expect((await all(queues.list({ pageSize: 2 }))).map(({ name }) => name)).toEqual(['q-a', 'q-b', 'q-c']);
    expect((await all(queues.overview())).map(({ counts }) => counts.available)).toEqual([1, 1, 1]);
  });

  it('is purged of what is named', async () => {
    const { id } = await enqueue();
    await enqueue();
    await client.cancel(id);
    expect(await queues.purge(queue, ['cancelled'], { olderThan: 'P1D' })).toMatchObject({
      deleted: 0,
      completed: true,
    });
    expect(await queues.purge(queue, ['cancelled'])).toMatchObject({ deleted: 1 });
    expect(await queues.purge(queue, ['available'], { olderThan: new Date() })).toMatchObject({ deleted: 1 });
  });

  it('is deleted when it is empty, or its jobs are moved or given up', async () => {
    await enqueue();
    await expect(queues.delete(queue)).rejects.toThrow(ConflictError);
    const target = freshName('target');
    const moved = await queues.delete(queue, { strategy: 'move', targetQueue: target });
    expect(moved).toMatchObject({ queue, strategy: 'move', jobsAffected: 1, state: 'deleted' });
    expect(await client.count({ queue: target })).toBe(1);
    expect(await queues.delete(target, { strategy: 'discard' })).toMatchObject({ jobsAffected: 1 });
    await expect(queues.get(target)).rejects.toThrow(NotFoundError);
  });

  it('that was deleted by a try without an answer counts as deleted', async () => {
    const { client } = fakeQueue((_, index) => {
      if (index === 0) throw new Error('connection lost');
      return errorAnswer(404, 'not_found');
    });
    expect(await client.queues.delete('a')).toMatchObject({ queue: 'a', state: 'deleted' });
  });
});

it('the settings of all queues hold where a queue says nothing else', async () => {
  await queues.create(queue, { concurrency: 3 });
  const set = await queues.setDefaults({ concurrency: 7, retention: { completed: '1d' } });
  expect(set).toMatchObject({ config: { concurrency: 7 }, pendingQueues: 0 });
  expect(await queues.defaults()).toEqual({ config: set.config, effective: set.effective });
  const { config, effective } = await queues.config(queue);
  expect(config).toEqual({ concurrency: 3 });
  expect(effective).toMatchObject({ concurrency: 3, retention: { completed: 'P1D' } });
  expect((await queues.setDefaults({ concurrency: null, retention: null })).config).toEqual({});
});

describe('a limited key', () => {
  it('is shown, overridden for a while, and let go', async () => {
    const key = freshName('key');
    await client.enqueue('a.b', [], { queue, rateLimit: { key, concurrency: 1, rate: 10, period: 'minute' } });
    await client.enqueue('a.b', [], { queue, rateLimit: { key } });
    expect((await client.worker('w', { queues: [queue] }).fetch({ count: 2 })).length).toBe(1);
    expect(await rateLimits.get(key)).toMatchObject({ key, concurrency: 1, limit: 10, active: 1, waiting: 1 });
    const stopped = await rateLimits.override(key, { concurrency: 0, expiresAt: '+PT15M' });
    expect(stopped.override).toMatchObject({ concurrency: 0, expiresAt: expect.any(String) });
    expect((await all(rateLimits.list())).map((limit) => [limit.key, limit.queues[0]?.queue])).toEqual([[key, queue]]);
    await rateLimits.removeOverride(key);
    expect(await rateLimits.get(key)).not.toHaveProperty('override');
    await expect(rateLimits.get('unknown')).rejects.toThrow(NotFoundError);
  });

  it('drops jobs beyond its limit when on_limit is drop', async () => {
    const rateLimit = { throttle: { limit: 1, period: 'hour' }, onLimit: 'drop' } as const;
    await client.enqueue('a.b', [], { queue, rateLimit });
    const second = await client.enqueue('a.b', [], { queue, rateLimit });
    await client.worker('w', { queues: [queue] }).fetch({ count: 2 });
    expect(await client.jobs.inspect(second.id)).toMatchObject({ state: 'discarded', discardReason: 'rate_limited' });
  });
});
