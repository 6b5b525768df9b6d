/** What unchanged clients read about queues, workers, limits and the server: the admin UI (U) and the command line tool (C). */
import { describe, expect, it } from 'vitest';
import { freshName } from '../support/queue';
import { type Json, server, V1 } from '../support/server';
import { cli, counts, duration, integer, itemsOf, pagination, plainJson, text, time, ui } from './ojs-clients';

server.emptyBeforeEach();

describe('queues', () => {
  it('U lists them with the counts of all states', async () => {
    const queue = freshName();
    await server.enqueue(queue);
    const [item] = itemsOf(await ui.get(`${V1}/admin/queues?page=1&per_page=50`));
    expect(item).toMatchObject({ name: queue, counts, paused: false, state: 'active', created_at: time });
  });

  it('U shows one with its settings and how full it is', async () => {
    const queue = freshName();
    const config = {
      concurrency: 5,
      rate_limit: { limit: 100, period: 'PT1M' },
      retention: { completed: 'P1D', discarded: 'P7D' },
    };
    expect(await ui.call('PUT', `${V1}/admin/queues/${queue}/config`, config)).toMatchObject({ name: queue });
    await server.configure(queue, { max_size: 10 });
    for (let i = 0; i < 8; i++) await server.enqueue(queue);
    expect(await ui.get(`${V1}/admin/queues/${queue}`)).toMatchObject({
      name: queue,
      counts: { ...counts, available: 8 },
      paused: false,
      configuration: {
        concurrency: 5,
        rate_limit: { limit: 100, period: duration },
        retention: { completed: duration, discarded: duration },
        backpressure: { enabled: true, strategy: 'reject', threshold: 8, current_depth: 8, state: 'warning' },
      },
    });
    const plain = freshName();
    await server.enqueue(plain);
    expect(await ui.get(`${V1}/admin/queues/${plain}`)).toMatchObject({
      configuration: {
        backpressure: { enabled: false, strategy: 'reject', threshold: null, current_depth: 1, state: 'normal' },
      },
    });
  });

  it('U pauses, resumes and purges, and reads priorities', async () => {
    const queue = freshName();
    await server.enqueue(queue, { options: { priority: 3 } });
    expect(await ui.call('POST', `${V1}/admin/queues/${queue}/pause`)).toMatchObject({ paused: true });
    expect(await ui.call('POST', `${V1}/admin/queues/${queue}/resume`)).toMatchObject({ paused: false });
    expect(await ui.get(`${V1}/queues/${queue}/priority-stats`)).toMatchObject({
      queue,
      distribution: [{ priority: 3, count: 1 }],
    });
    const body = { states: ['completed'], older_than: '24h', confirm: true };
    expect(await ui.call('DELETE', `${V1}/admin/queues/${queue}/jobs`, body)).toMatchObject({ purged_count: 0 });
  });

  it('C lists, shows, creates, changes and purges', async () => {
    const queue = freshName();
    expect(await cli.call('POST', `${V1}/queues`, { name: queue, concurrency: 5, max_size: 100 }, 201)).toBeDefined();
    const { queues } = await cli.get(`${V1}/queues`);
    expect((queues as Json[])[0]).toMatchObject({ name: queue, status: 'active' });
    await server.enqueue(queue);
    await server.enqueue(queue);
    await server.take(queue);
    expect(await cli.get(`${V1}/queues/${queue}`)).toMatchObject({ depth: 2, running: 1, paused: false });
    const change = { concurrency: 3, max_size: 50, retention: '24h' };
    await cli.call('PUT', `${V1}/admin/queues/${queue}/config`, change);
    expect((await cli.get(`${V1}/queues/${queue}/config`)).config).toMatchObject({
      concurrency: 3,
      max_size: 50,
      retention: { completed: 'P1D', discarded: 'P1D', cancelled: 'P1D' },
    });
    expect(await server.refusal('PUT', `${V1}/queues/${queue}/config`, { retention: 'a day' })).toEqual({
      status: 400,
      code: 'invalid_request',
      field: 'retention',
    });
    expect(await cli.call('POST', `${V1}/queues/${queue}/purge`, { states: ['completed'] })).toMatchObject({
      deleted: 0,
    });
    expect(await cli.call('DELETE', `${V1}/queues/${freshName()}`, undefined, 404)).toHaveProperty('error');
  });

  it('the statistics name the queue as a text for the SDKs, which all say their version, and hold it as an object for other clients', async () => {
    const queue = freshName();
    await server.enqueue(queue);
    const stats = { available: 1, active: 0, completed: 0, scheduled: 0, retryable: 0, dead: 0 };
    const path = `${V1}/queues/${queue}/stats`;
    expect(await cli.get(path)).toMatchObject({ queue: { name: queue }, status: 'active', stats });
    for (const version of ['1.0', '1.0.0-rc.1']) {
      const told = await server.ok(200, 'GET', path, undefined, { 'OJS-Version': version });
      expect(told).toMatchObject({ queue, status: 'active', depth: 1, available: 1, dead_letter: 0, stats });
    }
  });
});

describe('workers', () => {
  it('U and C list them, and tell them what to do', async () => {
    await server.heartbeat('w1', { hostname: 'h', pid: 7, queues: ['a'], active_jobs: 2 });
    const worker = {
      id: 'w1',
      hostname: 'h',
      pid: 7,
      state: 'running',
      directive: 'running',
      queues: ['a'],
      active_jobs: 2,
      started_at: time,
      last_heartbeat_at: time,
      last_heartbeat: time,
    };
    const list = await ui.get(`${V1}/admin/workers?page=1&per_page=50`);
    expect(itemsOf(list)).toMatchObject([worker]);
    expect(list.summary).toMatchObject({ total: 1, running: 1, quiet: 0, stale: 0 });
    expect(await cli.get(`${V1}/admin/workers/w1`)).toMatchObject(worker);
    expect(await ui.call('POST', `${V1}/admin/workers/w1/quiet`)).toMatchObject({ state: 'quiet' });
    for (const [directive, told] of [
      ['resume', 'running'],
      ['quiet', 'quiet'],
    ]) {
      expect(await cli.call('POST', `${V1}/admin/workers/directive`, { directive })).toEqual({
        directive: told,
        updated: 1,
      });
      expect(await cli.get(`${V1}/admin/workers/w1`)).toMatchObject({ directive: told });
    }
    expect(await ui.call('DELETE', `${V1}/admin/workers/w1`, undefined, 409)).toHaveProperty('error');
    expect(await ui.get(`${V1}/admin/workers`)).toMatchObject({ items: [{ id: 'w1', queues: expect.any(Array) }] });
  });
});

describe('limits', () => {
  it('U and C list, override and restore them', async () => {
    const queue = freshName();
    await server.enqueue(queue, { rate_limit: { key: 'stripe', rate: { limit: 10, period: 'PT1M' } } });
    const key = { key: 'stripe', limit: 10, period: duration, active: integer, waiting: integer };
    const list = await ui.get(`${V1}/rate-limits?page=1&per_page=50`);
    expect(itemsOf(list)).toMatchObject([key]);
    expect(list.rate_limits).toMatchObject([key]);
    const body = { limit: 5, period: '1m' };
    const override = { limit: 5, period: duration };
    expect(await ui.call('PUT', `${V1}/rate-limits/stripe`, body)).toMatchObject({ key: 'stripe', override });
    expect(await cli.get(`${V1}/rate-limits/stripe`)).toMatchObject({ override });
    await ui.call('DELETE', `${V1}/rate-limits/stripe/override`, undefined, 204);
  });
});

describe('the server', () => {
  it('U finds its pages in the manifest', async () => {
    const manifest = await ui.get('/ojs/manifest');
    expect(manifest).toMatchObject({
      implementation: { name: text, version: text, language: text },
      backend: text,
      conformance_level: integer,
      protocols: ['http'],
      capabilities: {
        cron: true,
        workflows: true,
        rate_limiting: true,
        unique_jobs: true,
        events: true,
        dead_letter: true,
        multi_tenancy: false,
      },
      extensions: expect.arrayContaining(['admin-api', 'events']),
    });
  });

  it('does not claim to choose workers by the version of a job, and gives a job to a worker that declares another one', async () => {
    const { capabilities } = await ui.get('/ojs/manifest');
    expect(capabilities).toMatchObject({ job_versioning: false });
    const queue = freshName();
    const id = await server.enqueue(queue, { version: '2.0' });
    await server.heartbeat('w1', { handlers: [{ type: 'test.echo', versions: '<2.0' }] });
    expect(await server.takeOne(queue, { worker_id: 'w1' })).toMatchObject({ id, version: '2.0' });
  });

  it('U and C ask for its health', async () => {
    await server.enqueue(freshName());
    await server.heartbeat('w1');
    expect(await ui.get(`${V1}/health`)).toMatchObject({
      status: 'ok',
      backend: { status: text },
      queues: { total: integer, paused: integer },
      workers: { total: integer, active: integer, stale: integer },
      uptime_seconds: integer,
    });
  });

  it('C looks at it without the prefix', async () => {
    expect(await cli.get('/v1/health')).toMatchObject({ status: 'ok' });
    expect(await cli.get('/v1/queues')).toMatchObject({ queues: expect.any(Array) });
    expect(await cli.get('/v1/dead-letter')).toMatchObject({ jobs: expect.any(Array), total: integer });
    expect(await cli.get('/v1/workers')).toMatchObject({ workers: expect.any(Array) });
  });

  it('gives plain JSON to a client that takes nothing else', async () => {
    const { type, body } = await plainJson(`${V1}/queues`);
    expect(type).toBe('application/json');
    expect(body).toMatchObject({ queues: [], pagination });
  });
});
