/** What unchanged clients read about numbers, settings and webhooks: the admin UI (U) and the command line tool (C). */
import { describe, expect, it } from 'vitest';
import { freshName } from '../support/queue';
import { type Json, server, V1 } from '../support/server';
import { cli, counts, integer, itemsOf, number, text, time, ui } from './ojs-clients';

server.emptyBeforeEach();

/** A queue with a job that has run and one that waits. */
async function busy(): Promise<string> {
  const queue = freshName();
  await server.enqueue(queue);
  await server.complete(queue);
  await server.enqueue(queue);
  return queue;
}

describe('numbers', () => {
  it('U and C read totals, of all queues or of one', async () => {
    const queue = await busy();
    await server.heartbeat('w1');
    for (const path of ['/admin/stats', `/admin/stats?queue=${queue}`]) {
      const stats = {
        jobs: { ...counts, available: 1 },
        throughput: { processed_per_minute: number, failed_per_minute: number },
      };
      expect(await ui.get(V1 + path)).toMatchObject({ queues: 1, workers: integer, ...stats });
      expect(await cli.get(V1 + path)).toMatchObject({
        enqueued_per_min: integer,
        completed_per_min: integer,
        failed_per_min: integer,
        avg_latency_ms: number,
      });
    }
  });

  it('C reads them queue by queue', async () => {
    const queue = await busy();
    const { queues } = await cli.get(`${V1}/admin/stats?detail=true&limit=10`);
    expect(queues).toMatchObject([{ name: queue, depth: 1, avg_duration_ms: number, error_rate: number }]);
  });

  it('U lists queues with what they do in a minute', async () => {
    const queue = await busy();
    const expected = {
      name: queue,
      throughput: { processed_per_minute: number, failed_per_minute: number },
      latency_ms: { p50: number, p95: number, p99: number },
    };
    expect(itemsOf(await ui.get(`${V1}/admin/queues?page=1&per_page=50`))).toMatchObject([expected]);
    expect(await ui.get(`${V1}/admin/queues/${queue}`)).toMatchObject({ ...expected, oldest_available_at: time });
  });

  it('U and C read how they were', async () => {
    const queue = await busy();
    const answer = await ui.get(`${V1}/admin/stats/history?period=5m&since=1h&queue=${queue}`);
    expect(answer).toMatchObject({ period: '5m', data: expect.any(Array), data_points: expect.any(Array) });
    const points = { timestamp: time, enqueued: integer, failed: integer };
    expect((answer.data as Json[]).length).toBeGreaterThan(0);
    for (const point of answer.data as Json[]) expect(point).toMatchObject({ ...points, processed: integer });
    for (const point of answer.data_points as Json[]) {
      expect(point).toMatchObject({ ...points, completed: integer });
      // Nothing ran: Go reads null as 0.
      expect(point.avg_latency_ms === null || typeof point.avg_latency_ms === 'number').toBe(true);
    }
  });
});

describe('metrics', () => {
  it('C reads as the text of Prometheus, and as JSON', async () => {
    const queue = await busy();
    const scraped = await server.send(new Request('http://localhost/metrics?format=prometheus'));
    expect(scraped.status).toBe(200);
    expect(scraped.headers.get('Content-Type')).toMatch(/^text\/plain/);
    const lines = await scraped.text();
    for (const name of ['ojs_job_enqueued_total', 'ojs_job_completed_total', 'ojs_queue_depth']) {
      expect(lines).toMatch(new RegExp(`^${name}\\{[^}]*queue="${queue}"`, 'm'));
    }
    const asJson = await server.send(new Request('http://localhost/metrics?format=json'));
    expect(await asJson.json()).toBeTypeOf('object');
  });
});

describe('the system', () => {
  it('U and C read and set the maintenance mode', async () => {
    expect(await ui.get(`${V1}/admin/system/maintenance`)).toMatchObject({ enabled: false });
    const body = { enabled: true, reason: 'upgrade', duration: 'PT1H' };
    const shown = { enabled: true, reason: 'upgrade', started_at: time, ends_at: time };
    expect(await ui.call('POST', `${V1}/admin/system/maintenance`, body)).toMatchObject(shown);
    expect(await cli.get(`${V1}/admin/maintenance`)).toMatchObject(shown);
    expect(await cli.call('POST', `${V1}/admin/maintenance`, { enabled: false })).toMatchObject({ enabled: false });
  });

  it('C reads the configuration', async () => {
    expect(await cli.get(`${V1}/admin/config`)).toBeTypeOf('object');
  });
});

describe('unique jobs', () => {
  it('U lists what is taken', async () => {
    const queue = freshName();
    const id = await server.enqueue(queue, { options: { unique: { keys: ['type', 'queue'] } } });
    expect(itemsOf(await ui.get(`${V1}/unique-jobs?page=1&per_page=50`))).toMatchObject([
      { key: text, job_id: id, type: 'test.echo', queue, state: 'available' },
    ]);
  });
});

describe('middleware', () => {
  it('U lists it', async () => {
    const answer = await ui.get(`${V1}/middleware`);
    expect(answer).toMatchObject({ enqueue: expect.any(Array), execution: expect.any(Array) });
    for (const entry of [...(answer.enqueue as Json[]), ...(answer.execution as Json[])]) {
      expect(entry).toMatchObject({ name: text, phase: text, order: integer });
    }
  });
});

describe('pools', () => {
  it('U lists them, and how their queues are served', async () => {
    await server.ok(201, 'PUT', `${V1}/admin/pools/shop`, { queues: ['mail', 'reports'], strategy: 'weighted' });
    const { pools } = await ui.get(`${V1}/admin/pools`);
    expect(pools).toMatchObject([{ name: 'shop', queues: ['mail', 'reports'] }]);
    expect(await ui.get(`${V1}/admin/scheduling/stats`)).toMatchObject({ strategy: text, queues: expect.any(Array) });
  });
});

describe('schemas', () => {
  it('U lists them', async () => {
    await server.ok(201, 'PUT', `${V1}/admin/schemas/mail.send/1`, { schema: { type: 'array' } });
    const { schemas } = await ui.get(`${V1}/admin/schemas`);
    expect(schemas).toMatchObject([{ type: 'mail.send', version: 1, schema: { type: 'array' } }]);
  });
});
