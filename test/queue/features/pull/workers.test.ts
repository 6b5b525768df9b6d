import { evictDurableObject } from 'cloudflare:test';
import { env } from 'cloudflare:workers';
import { describe, expect, it } from 'vitest';
import { clock, until } from '../../../support/clock';
import { TestQueue } from '../../../support/queue';
import { type Json, server, V1 } from '../../../support/server';

server.emptyBeforeEach();
clock.restoreAfterEach();

const evictDirectory = () => evictDurableObject(env.DIRECTORY.getByName('directory'));
const ADMIN = `${V1}/admin`;
const workers = async (query = '') => server.ok(200, 'GET', `${ADMIN}/workers${query}`);
const worker = (id: string) => server.ok(200, 'GET', `${ADMIN}/workers/${id}`);
const direct = (directive: string, change: Json = {}) =>
  server.ok(200, 'POST', `${ADMIN}/workers/directive`, { directive, ...change });
const health = (id: string) => server.call('GET', `${V1}/workers/${id}/health`);

describe('a worker', () => {
  it('is known from its first heartbeat on, with what it says about itself', async () => {
    await server.enqueue('q');
    await server.takeOne('q', { worker_id: 'silent' });
    const facts = { hostname: 'box', pid: 7, queues: ['q'], concurrency: 5, version: '1.2.3' };
    await server.heartbeat('w1', { ...facts, labels: ['gpu'], active_jobs: 3 });
    const { items, summary, pagination } = await workers();
    expect(items).toEqual([
      expect.objectContaining({
        id: 'w1',
        state: 'running',
        directive: 'running',
        ...facts,
        active_jobs: 3,
        metadata: { labels: ['gpu'] },
        started_at: expect.stringMatching(/Z$/),
        last_heartbeat_at: expect.stringMatching(/Z$/),
      }),
    ]);
    expect(summary).toMatchObject({ total: 1, running: 1, quiet: 0, stale: 0 });
    expect(pagination).toMatchObject({ total: 1 });
  });

  it('keeps what it said when a later heartbeat leaves it out', async () => {
    await server.heartbeat('w1', { hostname: 'box', concurrency: 5 });
    await server.heartbeat('w1', { concurrency: 6 });
    expect(await worker('w1')).toMatchObject({ hostname: 'box', concurrency: 6 });
  });

  it('is still known when the directory has lost its memory', async () => {
    await server.heartbeat('w1', { hostname: 'box' });
    await direct('quiet');
    await evictDirectory();
    expect(await worker('w1')).toMatchObject({ hostname: 'box', state: 'quiet', directive: 'quiet' });
  });

  it('is stale after a minute of silence, and no longer once it is heard again', async () => {
    await server.heartbeat('w1');
    await server.heartbeat('w2');
    clock.advance(59_000);
    expect(await workers()).toMatchObject({ summary: { running: 2, stale: 0 } });
    await server.heartbeat('w2');
    clock.advance(2_000);
    expect(await workers()).toMatchObject({ summary: { total: 2, running: 1, stale: 1 } });
    expect(await worker('w1')).toMatchObject({ state: 'stale' });
    const { workers: counted } = await server.ok(200, 'GET', `${V1}/health`);
    expect(counted).toEqual({ total: 2, active: 1, stale: 1 });
    await server.heartbeat('w1');
    expect(await worker('w1')).toMatchObject({ state: 'running' });
  });

  it('that sends heartbeats is not treated as stale by a directory that lost its memory', async () => {
    await server.heartbeat('w1');
    for (let n = 0; n < 6; n++) {
      clock.advance(20_000);
      await server.heartbeat('w1');
    }
    await evictDirectory();
    clock.advance(20_000);
    expect(await worker('w1')).toMatchObject({ state: 'running' });
  });

  it('is forgotten after a day of silence', async () => {
    await server.heartbeat('w1');
    clock.advance(25 * 3_600_000);
    expect(await workers()).toMatchObject({ items: [], summary: { total: 0 } });
  });

  it('is listed by page', async () => {
    for (const id of ['w3', 'w1', 'w2']) await server.heartbeat(id);
    const page = await workers('?page=2&per_page=2');
    expect(page.items?.map(({ id }) => id)).toEqual(['w3']);
    expect(page.pagination).toMatchObject({ total: 3, page: 2, per_page: 2, has_more: false });
  });
});

describe('a directive', () => {
  it('is answered to heartbeats and keeps jobs away from the worker, but not from others', async () => {
    await server.enqueue('q', { args: [1] });
    await server.enqueue('q', { args: [2] });
    await server.heartbeat('w1');
    await server.heartbeat('w2');
    expect(await server.ok(200, 'POST', `${ADMIN}/workers/w1/quiet`)).toMatchObject({ id: 'w1', state: 'quiet' });
    expect(await server.heartbeat('w1')).toMatchObject({ state: 'quiet' });
    expect(await server.heartbeat('w2')).toMatchObject({ state: 'running' });
    expect(await server.take('q', { worker_id: 'w1' })).toEqual([]);
    expect(await server.take('q', { worker_id: 'w2' })).toHaveLength(1);
    expect(await direct('running', { worker_id: 'w1' })).toEqual({ directive: 'running', updated: 1 });
    expect(await server.take('q', { worker_id: 'w1' })).toHaveLength(1);
  });

  it('for all reaches every known worker and leaves later ones alone', async () => {
    await server.enqueue('q');
    for (const id of ['w1', 'w2']) await server.heartbeat(id);
    expect(await direct('terminate')).toEqual({ directive: 'terminate', updated: 2 });
    for (const id of ['w1', 'w2']) {
      expect(await server.heartbeat(id)).toMatchObject({ state: 'terminate' });
      expect(await server.take('q', { worker_id: id })).toEqual([]);
    }
    expect(await server.heartbeat('w3')).toMatchObject({ state: 'running' });
    expect(await workers()).toMatchObject({ summary: { total: 3, running: 1, terminate: 2 } });
    expect(await server.take('q', { worker_id: 'w3' })).toHaveLength(1);
  });

  it('holds when queue and directory have lost their memory', async () => {
    await server.enqueue('q');
    await server.heartbeat('w1');
    await direct('quiet');
    await new TestQueue('q').evict();
    await evictDirectory();
    expect(await server.take('q', { worker_id: 'w1' })).toEqual([]);
    expect(await server.take('q')).toHaveLength(1);
  });

  it('ends the wait of a worker that is waiting for work', async () => {
    await server.enqueue('q');
    await server.takeOne('q', { worker_id: 'w1' });
    await server.heartbeat('w1');
    const waiting = server.take('q', { worker_id: 'w1', wait_ms: 20_000 });
    await new TestQueue('q').waiting('work', 1);
    await direct('quiet');
    expect(await waiting).toEqual([]);
    const id = await server.enqueue('q');
    expect(await server.job(id)).toMatchObject({ state: 'available' });
  });

  it('leaves the jobs that the worker runs to it', async () => {
    const id = await server.enqueue('q');
    await server.takeOne('q', { worker_id: 'w1' });
    await server.heartbeat('w1');
    await direct('quiet');
    expect(await server.heartbeat('w1', { active_jobs: [id] })).toMatchObject({ state: 'quiet', jobs_extended: [id] });
    await server.ack(id, { worker_id: 'w1' });
  });

  it('concerns the process it was given to, not the next one of the same name', async () => {
    await server.heartbeat('w1', { pid: 1, hostname: 'a' });
    await direct('terminate');
    expect(await server.heartbeat('w1', { pid: 1 })).toMatchObject({ state: 'terminate' });
    expect(await server.heartbeat('w1', { pid: 2 })).toMatchObject({ state: 'running' });
    await direct('terminate');
    await server.heartbeat('w1', { pid: 2, shutdown: true });
    expect(await server.heartbeat('w1', { pid: 2 })).toMatchObject({ state: 'running' });
    expect(await server.events({ types: 'worker.started' })).toHaveLength(3);
  });

  it('that is none is refused', async () => {
    await server.heartbeat('w1');
    for (const [body, field] of [
      [{}, 'directive'],
      [{ directive: 'pause' }, 'directive'],
      [{ directive: 7 }, 'directive'],
      [{ directive: 'quiet', worker_id: 7 }, 'worker_id'],
    ] as [Json, string][]) {
      expect(await server.refusal('POST', '/ojs/v1/admin/workers/directive', body)).toEqual({
        status: 400,
        code: 'invalid_request',
        field,
      });
    }
    expect(
      await server.refusal('POST', '/ojs/v1/admin/workers/directive', { directive: 'quiet', worker_id: 'nobody' }),
    ).toMatchObject({
      status: 404,
    });
    for (const [method, path] of [
      ['GET', '/admin/workers/nobody'],
      ['POST', '/admin/workers/nobody/quiet'],
      ['DELETE', '/admin/workers/nobody'],
      ['GET', '/workers/nobody/health'],
    ] as const) {
      expect(await server.refusal(method, V1 + path)).toMatchObject({ status: 404, code: 'not_found' });
    }
    expect(await worker('w1')).toMatchObject({ directive: 'running' });
  });
});

describe('a worker that leaves', () => {
  it('says so, gets no more jobs, and its health says it too', async () => {
    await server.enqueue('q');
    await server.heartbeat('w1', { queues: ['q'] });
    expect(await health('w1')).toMatchObject({ status: 200, body: { worker_id: 'w1', state: 'running' } });
    await server.heartbeat('w1', { state: 'drain' });
    expect(await health('w1')).toMatchObject({ status: 503, body: { worker_id: 'w1', state: 'draining' } });
    expect(await server.take('q', { worker_id: 'w1' })).toEqual([]);
    await server.heartbeat('w1', { state: 'drain', shutdown: true });
    expect(await health('w1')).toMatchObject({ status: 503, body: { state: 'shutting_down' } });
    expect(await server.take('q', { worker_id: 'w1' })).toEqual([]);
    expect(await worker('w1')).toMatchObject({ state: 'terminate', reported_state: 'shutting_down' });
  });

  it('may change its mind', async () => {
    await server.enqueue('q');
    await server.heartbeat('w1', { state: 'drain' });
    expect(await server.take('q', { worker_id: 'w1' })).toEqual([]);
    await server.heartbeat('w1', { state: 'running' });
    expect(await server.take('q', { worker_id: 'w1' })).toHaveLength(1);
  });

  it('is not called stale afterwards, but forgotten', async () => {
    await server.heartbeat('w1', { shutdown: true });
    await server.heartbeat('w2', { state: 'stopped' });
    await server.heartbeat('w3');
    await server.heartbeat('w3', { state: 'stopped' });
    clock.advance(61_000);
    expect(await workers()).toMatchObject({ items: [], summary: { total: 0, stale: 0 } });
  });

  it('is unhealthy while it is stale', async () => {
    await server.heartbeat('w1');
    clock.advance(61_000);
    expect(await health('w1')).toMatchObject({ status: 503, body: { state: 'stale' } });
  });
});

describe('a worker that is gone', () => {
  it('is removed by an operator, and its jobs go to others', async () => {
    const first = await server.enqueue('q1');
    const second = await server.enqueue('q2');
    await server.take(['q1', 'q2'], { count: 2, worker_id: 'w1' });
    await server.heartbeat('w1', { queues: ['q1'] });
    expect((await worker('w1')).jobs).toEqual(
      expect.arrayContaining([
        expect.objectContaining({ id: first, queue: 'q1', state: 'active', attempt: 1 }),
        expect.objectContaining({ id: second, queue: 'q2' }),
      ]),
    );
    expect(await server.refusal('DELETE', '/ojs/v1/admin/workers/w1')).toEqual({ status: 409, code: 'conflict' });
    expect(await server.job(first)).toMatchObject({ state: 'active' });
    clock.advance(61_000);
    expect(await server.call('DELETE', `${ADMIN}/workers/w1`)).toMatchObject({ status: 204 });
    for (const id of [first, second]) expect(await server.job(id)).toMatchObject({ state: 'available', attempt: 1 });
    expect(await server.refusal('GET', '/ojs/v1/admin/workers/w1')).toMatchObject({ status: 404 });
    expect(await server.takeOne('q1', { worker_id: 'w2' })).toMatchObject({ id: first, attempt: 2 });
    expect(await server.refusal('POST', '/ojs/v1/workers/ack', { job_id: first, worker_id: 'w1' })).toMatchObject({
      status: 409,
    });
  });

  it('takes the last attempt of a job with it', async () => {
    const id = await server.enqueue('q', { options: { retry: { max_attempts: 2, on_exhaustion: 'dead_letter' } } });
    await server.takeOne('q');
    await server.failNow(id);
    await server.takeOne('q', { worker_id: 'w1' });
    await server.heartbeat('w1');
    clock.advance(61_000);
    await server.call('DELETE', `${ADMIN}/workers/w1`);
    expect(await server.job(id)).toMatchObject({ state: 'discarded', attempt: 2, error: { code: 'worker_lost' } });
    expect(await server.ok(200, 'GET', `${V1}/dead-letter`)).toMatchObject({ total: 1 });
  });
});

describe('events of workers', () => {
  it('tell of start, quiet and stop, and belong to no queue', async () => {
    await server.heartbeat('w1', { hostname: 'box' });
    await server.heartbeat('w1', { hostname: 'box' });
    await direct('quiet');
    await server.heartbeat('w1');
    await server.heartbeat('w1', { state: 'stopped' });
    const events = await until(async () => {
      const found = await server.events({ types: 'worker.started,worker.quiet,worker.stopped,worker.heartbeat' });
      return found.length >= 3 && found;
    }, 'the events');
    expect(events.map(({ type, subject }) => [type, subject])).toEqual([
      ['worker.started', 'w1'],
      ['worker.quiet', 'w1'],
      ['worker.stopped', 'w1'],
    ]);
    expect(events[0]).toMatchObject({ source: 'ojs://tocsin/workers/w1', data: { worker_id: 'w1', hostname: 'box' } });
    expect(await server.ok(200, 'GET', `${V1}/events?queue=q`)).toMatchObject({ events: [] });
  });
});

describe('a heartbeat', () => {
  it('extends only what the worker holds, and says which', async () => {
    const own = await server.enqueue('q1');
    const foreign = await server.enqueue('q2');
    const ended = await server.enqueue('q3');
    await server.takeOne('q1', { worker_id: 'w1', visibility_timeout_ms: 10_000 });
    await server.takeOne('q2', { worker_id: 'w2', visibility_timeout_ms: 10_000 });
    await server.takeOne('q3', { worker_id: 'w1' });
    await server.ack(ended);
    const unknown = '019461a8-1a2b-7c3d-8e4f-5a6b7c8d9e51';
    clock.advance(8_000);
    const answer = await server.heartbeat('w1', { active_job_ids: [own, foreign, ended, unknown, 'x'] });
    expect(answer).toMatchObject({
      acknowledged: true,
      jobs_extended: [own],
      server_time: expect.stringMatching(/Z$/),
    });
    clock.advance(8_000);
    expect(await server.job(own)).toMatchObject({ state: 'active' });
    expect(await server.job(foreign)).toMatchObject({ state: 'available' });
  });

  it('that counts its jobs extends all it holds in the queues it names', async () => {
    const ids = [await server.enqueue('q1'), await server.enqueue('q2'), await server.enqueue('q3')];
    await server.take(['q1', 'q2', 'q3'], { count: 3, worker_id: 'w1' });
    const named = await server.heartbeat('w1', { active_jobs: 3, queues: ['q1', 'q2'] });
    expect((named.jobs_extended as string[]).sort()).toEqual(ids.slice(0, 2).sort());
    const all = await server.heartbeat('w1', { active_jobs: 3 });
    expect((all.jobs_extended as string[]).sort()).toEqual([...ids].sort());
    expect(await server.heartbeat('w1', { active_jobs: 0 })).toMatchObject({ jobs_extended: [] });
  });

  it('may give the lease another length', async () => {
    const id = await server.enqueue('q');
    await server.takeOne('q', { worker_id: 'w1', visibility_timeout_ms: 5_000 });
    await server.heartbeat('w1', { active_jobs: [id], visibility_timeout_ms: 60_000 });
    clock.advance(50_000);
    expect(await server.job(id)).toMatchObject({ state: 'active' });
  });

  it.each([
    ['no worker', 'worker_id', { worker_id: undefined }],
    ['a state that nobody knows', 'state', { state: 'sleeping' }],
    ['a state that is a name of every object', 'state', { state: 'constructor' }],
    ['shutdown that is a text', 'shutdown', { shutdown: 'yes' }],
    ['a pid below 0', 'pid', { pid: -1 }],
    ['a hostname that is a number', 'hostname', { hostname: 7 }],
    ['labels that are a text', 'labels', { labels: 'gpu' }],
    ['a concurrency that is no integer', 'concurrency', { concurrency: 1.5 }],
    ['a queue that is none', 'queues[0]', { queues: ['Bad!'] }],
    ['jobs that are objects', 'active_jobs[0]', { active_jobs: [{}] }],
    ['fewer jobs than none', 'active_jobs', { active_jobs: -1 }],
    ['a lease below 0', 'visibility_timeout_ms', { visibility_timeout_ms: -1 }],
    ['a lease longer than a century', 'visibility_timeout_ms', { visibility_timeout_ms: 1e15 }],
  ])('with %s is refused and registers no worker', async (_, field, change) => {
    expect(await server.refusal('POST', '/ojs/v1/workers/heartbeat', { worker_id: 'w1', ...change })).toEqual({
      status: 400,
      code: 'invalid_request',
      field,
    });
    expect(await workers()).toMatchObject({ summary: { total: 0 } });
  });
});
