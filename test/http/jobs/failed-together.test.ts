/** Jobs whose failures come in one request wait together in storage, and each alone as far as anyone can tell. */
import { describe, expect, it } from 'vitest';
import { clock } from '../../support/clock';
import { TestQueue } from '../../support/queue';
import { type Json, server, V1 } from '../../support/server';

const T0 = Date.UTC(2040, 4, 1, 12);
const QUEUE = 'failed-together';
const iso = (ms: number) => new Date(T0 + ms).toISOString();
const at = (ms: number) => clock.set(T0 + ms);

clock.restoreAfterEach();

describe('a hundred jobs that fail in one request', () => {
  it('run again each at its own moment, and are changed, cancelled, found, deleted and counted each by itself', async () => {
    at(0);
    const store = new TestQueue(QUEUE);
    const jobs = Array.from({ length: 100 }, (_, n) => ({
      type: n % 2 === 0 ? 'even' : 'odd',
      args: [n === 42 ? 'needle' : n],
      options: { queue: QUEUE, retry: { max_attempts: 5 } },
    }));
    const ids = await server.addAll(jobs);
    const id = (n: number) => ids[n] as string;
    expect(await server.takeIds(QUEUE, { count: 100, worker_id: 'w' })).toEqual(ids);
    // The later ones are due first.
    const waits = ids.map((_, n) => (100 - n) * 1000 + 7);
    const reports = ids.map((job_id, n) => ({
      ...{ action: 'nack', job_id },
      error: { code: 'io', message: `broken ${n}`, retry_in: `PT${(waits[n] as number) / 1000}S` },
    }));
    at(1);
    await server.ok(200, 'POST', `${V1}/workers/report`, { worker_id: 'w', reports });
    expect(await store.rows('SELECT block FROM retry_blocks')).toHaveLength(1);
    expect(await store.rows('SELECT key FROM jobs')).toHaveLength(1);
    const stats = async () => (await server.ok(200, 'GET', `${V1}/queues/${QUEUE}/stats`)).stats as Json;
    const list = async (query: string) => {
      const { jobs: found } = await server.ok(200, 'GET', `${V1}/jobs?queue=${QUEUE}&limit=200&${query}`);
      return (found as Json[]).map((job) => job.id);
    };
    for (const forgets of [false, true]) {
      if (forgets) await store.evict();
      expect(await server.job(id(3))).toMatchObject({
        ...{ state: 'retryable', attempt: 1, next_attempt_at: iso(1 + (waits[3] as number)) },
        error: { code: 'io', message: 'broken 3' },
      });
      expect(await list('state=retryable')).toHaveLength(100);
    }
    await server.ok(200, 'PATCH', `${V1}/jobs/${id(0)}`, { options: { priority: 5 } });
    await server.ok(200, 'PATCH', `${V1}/jobs/${id(1)}`, { options: { delay_until: iso(2_000) } });
    await server.ok(200, 'DELETE', `${V1}/jobs/${id(99)}`);
    await store.evict();
    expect(await stats()).toMatchObject({ retryable: 99, cancelled: 1 });
    const body = { filter: { queue: QUEUE, type: 'odd', state: 'retryable' }, confirm: true };
    await server.ok(200, 'POST', `${V1}/admin/jobs/bulk/cancel`, body);
    await store.evict();
    const left = ids.map((_, n) => n).filter((n) => n % 2 === 0);
    expect(await list('state=retryable')).toEqual(left.map(id).reverse());
    // All that is left becomes available one by one, the last one of the batch first.
    for (const n of left.filter((place) => place >= 10).reverse()) {
      const moment = 1 + (waits[n] as number);
      if (n > 90) {
        at(moment - 1);
        expect(await server.takeIds(QUEUE, { count: 9 })).toEqual([]);
      }
      at(moment);
      if (n % 30 === 0) await store.evict();
      const [again] = await server.take(QUEUE, { count: 9, worker_id: 'w' });
      expect(again).toMatchObject({ id: id(n), attempt: 2 });
      await server.ack(id(n));
    }
    expect(await store.rows('SELECT block FROM retry_blocks')).toHaveLength(1);
    await server.ok(200, 'POST', `${V1}/queues/${QUEUE}/purge`, { confirm: true, states: ['retryable'] });
    expect(await store.rows('SELECT block FROM retry_blocks')).toEqual([]);
    expect(await stats()).toMatchObject({ retryable: 0, available: 0, completed: 45, cancelled: 50 });
    expect((await server.call('GET', `${V1}/jobs/${id(2)}`)).status).toBe(404);
    expect(await server.job(id(42))).toMatchObject({ state: 'completed', args: ['needle'], attempt: 2 });
    expect(await server.ok(200, 'GET', `${V1}/jobs/${id(42)}/retries`)).toMatchObject({
      retries: [{ attempt: 1, error: 'broken 42', failed_at: iso(1) }],
    });
  });
});
