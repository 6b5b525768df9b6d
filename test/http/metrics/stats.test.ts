/** What operators and monitoring read of what happened: over HTTP, with each field that unchanged clients read. */
import { beforeEach, describe, expect, it } from 'vitest';
import { clock, DAY, HOUR, iso, MINUTE, SECOND, T0 } from '../../support/clock';
import { freshName, TestQueue } from '../../support/queue';
import { type Json, server, TestServer, V1 } from '../../support/server';

clock.startAtT0();
server.emptyBeforeEach();

let queue: string;
beforeEach(() => {
  queue = freshName('numbers');
});

const get = (path: string) => server.ok(200, 'GET', `${V1}${path}`);
const items = async (path: string) => (await get(path)).items as Json[];

/** Three jobs that take a second each: two complete, one fails and waits for its retry. */
async function happen(name = queue): Promise<void> {
  const options = { retry: { max_attempts: 3, initial_interval: 'PT1H', jitter: false } };
  for (const type of ['mail.send', 'mail.send', 'mail.fail']) await server.enqueue(name, { type, options });
  const jobs = await server.take(name, { count: 3 });
  clock.advance(SECOND);
  for (const { id, type } of jobs) {
    if (type === 'mail.fail') await server.nack(id);
    else await server.ack(id);
  }
}

const percentiles = { p50: expect.any(Number), p95: expect.any(Number), p99: expect.any(Number) };

describe('a queue among the queues', () => {
  it('shows its rates, latencies, error rate and what may run, in the list and alone', async () => {
    await happen();
    await server.configure(queue, { concurrency: 7 });
    const expected = {
      name: queue,
      counts: { retryable: 1, completed: 2 },
      throughput: { processed_per_minute: 2, failed_per_minute: 1, enqueued_per_minute: 3 },
      latency_ms: percentiles,
      queue_time_ms: percentiles,
      oldest_available_at: null,
      error_rate: 0.3333,
      concurrency: { limit: 7, active: 0 },
    };
    expect((await items('/admin/queues'))[0]).toMatchObject(expected);
    const alone = await get(`/admin/queues/${queue}`);
    expect(alone).toMatchObject(expected);
    expect(alone).not.toHaveProperty('recent');
    const recent = (await get(`/admin/queues/${queue}?include=recent`)).recent as Json[];
    expect(recent).toHaveLength(30);
    expect(recent.at(-1)).toEqual({ timestamp: iso(T0), processed: 2, failed: 1, enqueued: 3 });
    expect((await items('/admin/queues?include=recent'))[0]).toMatchObject({ recent });
    expect(await server.refusal('GET', `${V1}/admin/queues?include=all`)).toMatchObject({
      status: 400,
      field: 'include',
    });
  });

  it('shows why the oldest job waits, how full the queue is, and its dead letters', async () => {
    await server.configure(queue, { backpressure: { max_depth: 3 } });
    await server.enqueue(queue, { type: 'wait.first' });
    const notFull = await get(`/admin/queues/${queue}`);
    expect(notFull).toMatchObject({ dead: 0, storage: { state: 'ok' } });
    expect(notFull).not.toHaveProperty('pressure');
    clock.advance(SECOND);
    await server.enqueue(queue, { type: 'wait.second' });
    await server.enqueue(queue, { type: 'wait.third', options: { priority: 5 } });
    const expected = {
      oldest_available_at: iso(T0),
      waiting_for: { reason: 'no_worker', since: iso(T0), detail: expect.stringContaining('"wait.first"') },
      pressure: { depth: 3, bound: 3 },
    };
    expect(await get(`/admin/queues/${queue}`)).toMatchObject(expected);
    expect((await items('/admin/queues'))[0]).toMatchObject(expected);
    const options = { retry: { max_attempts: 1, on_exhaustion: 'dead_letter' } };
    const dies = freshName('dies');
    await server.enqueue(dies, { type: 'mail.fail', options });
    for (const { id } of await server.take(dies)) await server.nack(id);
    const died = await get(`/admin/queues/${dies}`);
    expect(died).toMatchObject({ dead: 1, oldest_available_at: null });
    expect(died).not.toHaveProperty('waiting_for');
  });

  it('shows no percentile above the longest wait, also after its object has slept', async () => {
    await server.enqueue(queue);
    clock.advance(70 * SECOND);
    await server.take(queue);
    const waits = async () => (await get(`/admin/queues/${queue}`)).queue_time_ms as Json;
    const { p99 } = await waits();
    expect(p99).toBeGreaterThan(60_000);
    expect(p99).toBeLessThanOrEqual(70_000);
    await new TestQueue(queue).evict();
    expect((await waits()).p99).toBe(p99);
  });

  it('shows the settings in effect, also those of all queues', async () => {
    await server.enqueue(queue);
    await server.ok(200, 'PUT', `${V1}/queues/_default/config`, { concurrency: 3, groups: { order: 'strict' } });
    const configuration = { concurrency: 3, groups: { order: 'strict' } };
    expect(await get(`/admin/queues/${queue}`)).toMatchObject({ configuration });
  });

  it('shows them after its object has slept', async () => {
    await happen();
    const before = await get(`/admin/queues/${queue}`);
    await new TestQueue(queue).evict();
    expect(await get(`/admin/queues/${queue}`)).toEqual(before);
  });
});

describe('GET /admin/stats', () => {
  it('has the numbers of all queues, under the names of both clients', async () => {
    await happen();
    await happen(`${queue}-b`);
    const stats = await get('/admin/stats');
    expect(stats).toMatchObject({
      queues: 2,
      workers: 0,
      jobs: {
        available: 0,
        active: 0,
        scheduled: 0,
        pending: 0,
        retryable: 2,
        completed: 4,
        discarded: 0,
        cancelled: 0,
      },
      throughput: {
        processed_per_minute: 4,
        failed_per_minute: 2,
        enqueued_per_minute: 6,
        enqueued_per_min: 6,
        completed_per_min: 4,
        failed_per_min: 2,
        avg_latency_ms: 1000,
      },
      enqueued_per_min: 6,
      completed_per_min: 4,
      failed_per_min: 2,
      avg_latency_ms: 1000,
      latency_ms: percentiles,
      error_rate: 0.3333,
      oldest_available_at: null,
      suspended_targets: [],
      uptime_seconds: expect.any(Number),
    });
    expect(stats).not.toHaveProperty('complete');
  });

  it('is of one queue, or has them one by one', async () => {
    await happen();
    await server.enqueue(`${queue}-b`);
    expect(await get(`/admin/stats?queue=${queue}`)).toMatchObject({
      queue,
      queues: 1,
      jobs: { available: 0, completed: 2 },
      throughput: { enqueued_per_min: 3 },
    });
    const detail = await get('/admin/stats?detail=true');
    expect(detail.queues).toMatchObject([
      { name: queue, depth: 1, avg_duration_ms: 1000, error_rate: 0.3333 },
      { name: `${queue}-b`, depth: 1, avg_duration_ms: 0, error_rate: 0 },
    ]);
    expect(((await get('/admin/stats?detail=true&limit=1')).queues as Json[]).length).toBe(1);
  });

  it('refuses what it does not know', async () => {
    const of = (query: string) => server.refusal('GET', `${V1}/admin/stats${query}`);
    expect(await of('?queue=none-such')).toMatchObject({ status: 404 });
    expect(await of('?queue=NO WAY')).toMatchObject({ status: 400, field: 'queue' });
    expect(await of('?queue=a,b')).toMatchObject({ status: 400, field: 'queue' });
    expect(await of('?detail=perhaps')).toMatchObject({ status: 400, field: 'detail' });
    expect(await of('/history?period=2m')).toMatchObject({ status: 400, field: 'period' });
    expect(await of('/history?since=yesterday')).toMatchObject({ status: 400, field: 'since' });
    expect(await of('/history?since=1h&until=2h')).toMatchObject({ status: 400, field: 'since' });
  });
});

describe('GET /admin/stats/history', () => {
  it('has a line for every period, for both clients', async () => {
    await happen();
    clock.advance(10 * MINUTE);
    await happen();
    const { period, data, data_points } = await get('/admin/stats/history?period=5m&since=15m');
    expect(period).toBe('5m');
    expect(data_points).toEqual(data);
    expect((data as Json[]).map(({ timestamp, processed, failed }) => [timestamp, processed, failed])).toEqual([
      [iso(T0 - 5 * MINUTE), 0, 0],
      [iso(T0), 2, 1],
      [iso(T0 + 5 * MINUTE), 0, 0],
      [iso(T0 + 10 * MINUTE), 2, 1],
    ]);
    expect((data as Json[])[1]).toEqual({
      timestamp: iso(T0),
      ...{ processed: 2, failed: 1, enqueued: 3, completed: 2 },
      ...{ latency_p50_ms: expect.any(Number), latency_p99_ms: expect.any(Number), avg_latency_ms: 1000 },
    });
  });

  it('is of a queue and a type, of every period, and reaches back over a sleep', async () => {
    await happen();
    await happen(`${queue}-b`);
    await new TestQueue(queue).evict();
    const total = async (query: string) =>
      ((await get(`/admin/stats/history?${query}`)).data as Json[]).reduce(
        (sum, { processed, failed }) => sum + (processed as number) + (failed as number),
        0,
      );
    expect(await total('period=1m')).toBe(6);
    expect(await total(`period=1m&queue=${queue}`)).toBe(3);
    expect(await total(`period=1m&queue=${queue}&type=mail.fail`)).toBe(1);
    clock.advance(2 * HOUR);
    expect(await total('period=1m')).toBe(0);
    expect(await total(`period=1m&since=${iso(T0)}`)).toBe(6);
    expect(await total('period=1h')).toBe(6);
    clock.set(T0 + 3 * DAY);
    expect(await total('period=1d')).toBe(6);
  });
});

describe('GET /admin/stats/types', () => {
  it('says what happened to the jobs of each type', async () => {
    await happen();
    expect(await items(`/admin/stats/types?queue=${queue}`)).toEqual([
      {
        ...{ queue, type: 'mail.send', enqueued: 2, completed: 2, failed: 0, retried: 0 },
        ...{ cancelled: 0, discarded: 0, expired: 0, duration_ms: percentiles, queue_time_ms: percentiles },
      },
      {
        ...{ queue, type: 'mail.fail', enqueued: 1, completed: 0, failed: 1, retried: 1 },
        ...{ cancelled: 0, discarded: 0, expired: 0, duration_ms: percentiles, queue_time_ms: percentiles },
      },
    ]);
  });
});

describe('GET /admin/stats/cost', () => {
  it('says what each type has written, and what that costs', async () => {
    await server.enqueue(queue, { options: { delay_until: '+PT9H' }, type: 'later' });
    const jobs = Array.from({ length: 100 }, () => ({ type: 'bulk', args: [], options: { queue } }));
    const written = await new TestQueue(queue).rowsWritten(async () => {
      await server.addAll(jobs);
      for (const { id } of await server.take(queue, { count: 100 })) await server.ack(id);
    });
    const cost = await get(`/admin/stats/cost?queue=${queue}`);
    const bulk = (cost.items as Json[]).find(({ type }) => type === 'bulk') as Json;
    expect(Math.abs((bulk.rows_written as number) - written)).toBeLessThanOrEqual(2);
    expect(bulk).toMatchObject({
      queue,
      jobs: 100,
      dollars: (bulk.rows_written as number) / 1e6,
      rows_per_job: (bulk.rows_written as number) / 100,
      dollars_per_million_jobs: (bulk.rows_written as number) / 100,
    });
    const rows = (cost.items as Json[]).reduce((sum, { rows_written }) => sum + (rows_written as number), 0);
    expect(cost).toMatchObject({ total: { rows_written: rows, dollars: rows / 1e6 }, since: iso(T0) });
    expect(cost.not_counted).toContain('requests');
  });
});

describe('GET /metrics', () => {
  const text = async (from = server, headers: Record<string, string> = {}, path = '/metrics') => {
    const answer = await from.send(new Request(`http://localhost${path}`, { headers }));
    return {
      status: answer.status,
      type: answer.headers.get('Content-Type'),
      lines: (await answer.text()).split('\n'),
    };
  };

  it('is the text of Prometheus, with the names of the protocol', async () => {
    await happen();
    await server.enqueue(queue, { type: 'odd.type' });
    clock.advance(5 * SECOND);
    const { status, type, lines } = await text();
    expect([status, type]).toEqual([200, 'text/plain']);
    const value = (sample: string) =>
      Number(
        lines
          .find((line) => line.startsWith(`${sample} `))
          ?.split(' ')
          .at(-1),
      );
    const of = (job: string) => `{queue="${queue}",type="${job}"}`;
    expect(value('ojs_up')).toBe(1);
    expect(value(`ojs_job_enqueued_total${of('mail.send')}`)).toBe(2);
    expect(value(`ojs_job_completed_total${of('mail.send')}`)).toBe(2);
    expect(value(`ojs_job_retried_total${of('mail.fail')}`)).toBe(1);
    expect(value(`ojs_job_attempts_failed_total${of('mail.fail')}`)).toBe(1);
    for (const name of ['failed', 'discarded', 'cancelled', 'expired']) {
      expect(value(`ojs_job_${name}_total${of('mail.fail')}`)).toBe(0);
    }
    const duration = `queue="${queue}",type="mail.send",state="completed"`;
    expect(value(`ojs_job_duration_seconds_bucket{${duration},le="0.5"}`)).toBe(0);
    expect(value(`ojs_job_duration_seconds_bucket{${duration},le="1"}`)).toBe(2);
    expect(value(`ojs_job_duration_seconds_bucket{${duration},le="+Inf"}`)).toBe(2);
    expect(value(`ojs_job_duration_seconds_sum{${duration}}`)).toBe(2);
    expect(value(`ojs_job_queue_time_seconds_count${of('mail.send')}`)).toBe(2);
    expect(value(`ojs_queue_depth{queue="${queue}",state="available"}`)).toBe(1);
    expect(value(`ojs_queue_oldest_available_age_seconds{queue="${queue}"}`)).toBe(5);
    expect(value(`ojs_queue_rows_written_total${of('mail.send')}`)).toBeGreaterThan(2);
    expect(value(`ojs_events_dropped_total{queue="${queue}"}`)).toBe(0);
    expect(value('ojs_workers_active')).toBe(0);
    // Each family has its help and type once, before its samples.
    for (const name of lines.filter((line) => line.startsWith('# TYPE')).map((line) => line.split(' ')[2])) {
      expect(lines.filter((line) => line.startsWith(`# HELP ${name} `))).toHaveLength(1);
      expect(lines.filter((line) => line.startsWith(`# TYPE ${name} `))).toHaveLength(1);
    }
  });

  it('counts groups of the queues that it is asked for, the largest hundred one by one', async () => {
    const groups = [...Array(3).fill('large "one"'), ...Array.from({ length: 120 }, (_, at) => `group ${at}`)];
    await server.addAll(groups.map((group) => ({ type: 'a.b', args: [], options: { queue, group } })));
    await server.takeOne(queue);
    expect((await text()).lines.join()).not.toContain('ojs_group_');
    const { lines } = await text(server, {}, `/metrics?groups=${queue}`);
    const of = (name: string) => lines.filter((line) => line.startsWith(`ojs_group_${name}{`));
    expect([of('waiting').length, of('running').length]).toEqual([101, 101]);
    expect(lines).toContain(`ojs_group_waiting{queue="${queue}",group="large \\"one\\""} 2`);
    expect(lines).toContain(`ojs_group_running{queue="${queue}",group="large \\"one\\""} 1`);
    expect(lines).toContain(`ojs_group_waiting{queue="${queue}",group="_other"} 21`);
    const many = Array.from({ length: 21 }, (_, at) => `q${at}`).join(',');
    expect((await text(server, {}, `/metrics?groups=${many}`)).status).toBe(400);
    const hiding = TestServer.with({
      REDACT: 'group',
      API_KEYS: JSON.stringify([{ name: 'm', key: 'k'.repeat(32), scopes: ['metrics:read'] }]),
    });
    const hidden = await text(hiding, { Authorization: `Bearer ${'k'.repeat(32)}` }, `/metrics?groups=${queue}`);
    expect([hidden.status, hidden.lines.join().includes('large')]).toEqual([200, false]);
  });

  it('is JSON where that is asked for, and below the prefix of the protocol', async () => {
    await happen();
    const expected = {
      jobs_enqueued_total: 3,
      jobs_completed_total: 2,
      jobs_failed_total: 0,
      jobs_active: 0,
      queues_active: 1,
      workers_active: 0,
      avg_latency_ms: 1000,
      throughput_per_second: 0.03,
      uptime_seconds: expect.any(Number),
    };
    expect(await get('/metrics')).toMatchObject(expected);
    expect(await server.ok(200, 'GET', '/metrics?format=json')).toMatchObject(expected);
    expect((await text(server, {}, `${V1}/metrics?format=prometheus`)).type).toBe('text/plain');
    const Accept = 'application/openmetrics-text;version=1.0.0;q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1';
    expect((await text(server, { Accept }, `${V1}/metrics`)).type).toBe('text/plain');
    const browser = { Accept: 'application/json, text/plain, */*' };
    expect((await text(server, browser, `${V1}/metrics`)).type).toBe('application/openjobspec+json');
    expect(await server.refusal('GET', '/metrics?format=xml')).toMatchObject({ status: 400, field: 'format' });
  });

  it('asks no queue more often than every ten seconds', async () => {
    await happen();
    const object = new TestQueue(queue);
    await text();
    await server.enqueue(queue);
    const look = async () => (await get('/metrics')).jobs_enqueued_total;
    clock.advance(9 * SECOND);
    expect(await look()).toBe(3);
    clock.advance(SECOND);
    expect(await look()).toBe(4);
    expect(await object.rowsWritten(async () => void (await look()))).toBe(0);
  });

  it('takes a key that may scrape', async () => {
    const guarded = TestServer.with({
      API_KEYS: JSON.stringify([
        { key: 'scraper', scopes: ['metrics:read'] },
        { key: 'producer', scopes: ['data:read', 'data:write'] },
      ]),
    });
    const as = async (key: string) => (await text(guarded, { Authorization: `Bearer ${key}` })).status;
    expect(await as('scraper')).toBe(200);
    expect(await as('producer')).toBe(403);
    expect((await text(guarded)).status).toBe(401);
  });
});
