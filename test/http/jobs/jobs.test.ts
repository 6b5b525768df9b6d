import { describe, expect, it } from 'vitest';
import { type Json, server, UNKNOWN_ID, V1 } from '../../support/server';

server.emptyBeforeEach();

describe('POST /jobs', () => {
  it('answers the envelope, its flat members and where the job is', async () => {
    const { status, body, headers } = await server.call('POST', `${V1}/jobs`, {
      type: 'a.b',
      args: [1],
      x_note: 'kept',
    });
    expect(status).toBe(201);
    expect(body.job).toMatchObject({ type: 'a.b', queue: 'default', state: 'available', args: [1], x_note: 'kept' });
    expect(body).toMatchObject({ id: body.job?.id, state: 'available', type: 'a.b' });
    const { x_note: _, ...copy } = body.job as Json;
    expect(body).toEqual({ ...copy, job: body.job });
    expect(headers.get('Location')).toBe(`/ojs/v1/jobs/${body.job?.id}`);
    const { waiting_for, ...read } = (await server.ok(200, 'GET', headers.get('Location') ?? '')).job as Json;
    expect(read).toEqual(body.job);
    expect(waiting_for).toMatchObject({ reason: 'no_worker' });
  });

  it('takes a body with any accepted media type, or none', async () => {
    for (const type of ['application/json; charset=utf-8', 'application/openjobspec+json', '']) {
      await server.ok(201, 'POST', `${V1}/jobs`, { type: 'a', args: [] }, { 'Content-Type': type });
    }
  });

  it('refuses an id that this or another queue has', async () => {
    const id = '019461a8-1a2b-7c3d-8e4f-5a6b7c8d9e0f';
    await server.enqueue('one', { id });
    for (const queue of ['one', 'two']) {
      const answer = await server.call('POST', `${V1}/jobs`, { type: 'a', args: [], id, options: { queue } });
      expect(answer).toMatchObject({
        status: 409,
        body: { error: { code: 'duplicate', details: { existing_job_id: id, existing_job_state: 'available' } } },
      });
    }
    expect(await server.job(id)).toMatchObject({ id, queue: 'one' });
  });
});

describe('POST /jobs/batch', () => {
  it('enqueues into several queues and keeps the order of the entries', async () => {
    const jobs = ['left', 'right', 'left'].map((queue, n) => ({ type: 'a', args: [n], options: { queue } }));
    const body = await server.ok(201, 'POST', `${V1}/jobs/batch`, { jobs });
    expect(body).toMatchObject({ enqueued: 3, failed: 0 });
    expect(body.jobs?.map((job) => [job.queue, job.args])).toEqual([
      ['left', [0]],
      ['right', [1]],
      ['left', [2]],
    ]);
  });

  it('names the entry whose id is taken, and writes none', async () => {
    const id = '019461a8-1a2b-7c3d-8e4f-5a6b7c8d9e11';
    await server.enqueue('taken', { id });
    const jobs = [
      { type: 'a', args: [], queue: 'taken' },
      { type: 'a', args: [], queue: 'taken', id },
    ];
    const answer = await server.call('POST', `${V1}/jobs/batch`, { jobs });
    expect(answer).toMatchObject({ status: 409, body: { error: { code: 'duplicate', details: { index: 1 } } } });
    expect(await server.ok(200, 'GET', `${V1}/queues/taken/stats`)).toMatchObject({ available: 1 });
  });
});

describe('a job under way', () => {
  it('is fetched, acknowledged and read back with its result', async () => {
    const id = await server.enqueue('ack');
    const [job] = await server.take('ack', { worker_id: 'w1' });
    expect(job).toMatchObject({ id, state: 'active', attempt: 1, worker_id: 'w1' });
    const answer = await server.ack(id, { result: { ok: true } });
    expect(answer).toMatchObject({ acknowledged: true, id, job_id: id, state: 'completed' });
    expect(answer.completed_at).toBe(answer.job?.completed_at);
    expect(await server.job(id)).toMatchObject({ result: { ok: true } });
    expect(await server.call('POST', `${V1}/workers/ack`, { job_id: id })).toMatchObject({ status: 409 });
  });

  it('is acknowledged by its path without any body', async () => {
    const id = await server.enqueue('bare-ack');
    await server.take('bare-ack');
    expect(await server.ok(200, 'POST', `${V1}/jobs/${id}/ack`)).toMatchObject({ state: 'completed', job_id: id });
  });

  it('fails with the error as object, text or nothing', async () => {
    const errors: [unknown, Json][] = [
      [
        { code: 'E1', type: 'T1', message: 'm', details: { a: 1 } },
        { code: 'E1', type: 'T1', message: 'm', details: { a: 1 } },
      ],
      ['it broke', { code: 'handler_error', message: 'it broke' }],
      [undefined, { code: 'handler_error', message: '' }],
    ];
    for (const [error, stored] of errors) {
      const id = await server.enqueue('nack');
      await server.take('nack');
      const answer = await server.nack(id, { error });
      expect(answer).toMatchObject({ id, job_id: id, state: 'retryable', attempt: 1, max_attempts: 3 });
      expect(answer.next_attempt_at).toBe(answer.job?.next_attempt_at);
      expect(answer.retry_delay_ms).toBe(answer.job?.retry_delay_ms);
      expect(answer.job).toMatchObject({ error: { ...stored, attempt: 1 }, errors: [stored] });
    }
  });

  it('is given back without an error when it is requeued', async () => {
    const id = await server.enqueue('requeue');
    await server.take('requeue');
    const answer = await server.ok(200, 'POST', `${V1}/jobs/${id}/nack`, { error: 'stop', requeue: true });
    expect(answer).toMatchObject({ state: 'available', attempt: 1 });
    expect(answer.job).not.toHaveProperty('errors');
  });

  it('is refused a report for another attempt or from another worker', async () => {
    const id = await server.enqueue('fenced');
    await server.take('fenced', { worker_id: 'w1' });
    for (const name of [{ attempt: 2 }, { worker_id: 'w2' }]) {
      expect(await server.call('POST', `${V1}/workers/ack`, { job_id: id, ...name })).toMatchObject({
        status: 409,
        body: { error: { code: 'conflict' } },
      });
    }
  });

  it('keeps its lease with a heartbeat that names it, counts it, or names nothing', async () => {
    const id = await server.enqueue('beat');
    await server.take('beat', { worker_id: 'w1' });
    for (const held of [{ active_jobs: [id] }, { active_jobs: 1 }, { active_job_ids: [id] }, {}]) {
      expect(await server.ok(200, 'POST', `${V1}/workers/heartbeat`, { worker_id: 'w1', ...held })).toMatchObject({
        acknowledged: true,
        state: 'running',
        jobs_extended: [id],
      });
    }
    expect(await server.ok(200, 'POST', `${V1}/workers/beat`, { worker_id: 'w2', active_jobs: [id] })).toMatchObject({
      jobs_extended: [],
    });
  });

  it('is cancelled once', async () => {
    const id = await server.enqueue('cancel');
    expect(await server.ok(200, 'DELETE', `${V1}/jobs/${id}`)).toMatchObject({ state: 'cancelled', job: { id } });
    expect(await server.call('POST', `${V1}/jobs/${id}/cancel`)).toMatchObject({
      status: 409,
      body: { error: { code: 'conflict', details: { current_state: 'cancelled' } } },
    });
  });

  it('waits in pending until it is activated', async () => {
    const id = await server.enqueue('pending', { options: { pending: true } });
    expect(await server.take('pending')).toEqual([]);
    expect(await server.ok(200, 'POST', `${V1}/jobs/${id}/activate`)).toMatchObject({ job: { state: 'available' } });
    expect(await server.call('POST', `${V1}/jobs/${id}/activate`)).toMatchObject({ status: 409 });
  });
});

describe('POST /workers/fetch', () => {
  it('drains the queues in the order given, up to the count', async () => {
    await server.enqueue('second', { args: ['s1'] });
    await server.enqueue('first', { args: ['f1'] });
    await server.enqueue('first', { args: ['f2'] });
    const jobs = await server.take(['first', 'second'], { count: 2 });
    expect(jobs?.map(({ args }) => args)).toEqual([['f1'], ['f2']]);
    const rest = await server.ok(200, 'POST', `${V1}/workers/fetch`, { queues: ['first', 'second'], count: 1000 });
    expect(rest.jobs?.map(({ args }) => args)).toEqual([['s1']]);
  });

  it('answers an empty list for a queue that does not exist, and creates none', async () => {
    expect(await server.take('never-used')).toEqual([]);
    expect(await server.ok(200, 'GET', `${V1}/queues`)).toMatchObject({ queues: [] });
  });
});

describe('GET /jobs', () => {
  it('pages through several queues, newest first, without being shifted by new jobs', async () => {
    const ids: string[] = [];
    for (let n = 0; n < 9; n++) ids.unshift(await server.enqueue(`list-${n % 3}`));
    const seen: unknown[] = [];
    let cursor = '';
    for (let page = 0; page < 5; page++) {
      const body = await server.ok(200, 'GET', `${V1}/jobs?limit=2${cursor}`);
      seen.push(...(body.jobs ?? []).map(({ id }) => id));
      expect(body.pagination).toMatchObject({ limit: 2, has_more: page < 4 });
      cursor = `&cursor=${body.pagination?.next_cursor}`;
      await server.enqueue('list-1', { scheduled_at: '+PT1H' });
    }
    expect(new Set(seen.slice(0, 9)).size).toBe(9);
    expect([...seen].sort()).toEqual([...ids].sort());
  });

  it('filters by queue, state and type, and counts what matches', async () => {
    await server.enqueue('f1', { type: 'mail.send' });
    await server.enqueue('f1', { type: 'mail.draft', scheduled_at: '+PT1H' });
    await server.enqueue('f2', { type: 'report.build' });
    const total = async (query: string) => (await server.ok(200, 'GET', `${V1}/jobs?${query}`)).total;
    expect(await total('')).toBe(3);
    expect(await total('queue=f1')).toBe(2);
    expect(await total('queue=f1,f2&state=available')).toBe(2);
    expect(await total('state=available&state=scheduled')).toBe(3);
    expect(await total('type=mail.*')).toBe(2);
    expect(await total('type=mail.send')).toBe(1);
  });

  it('clamps limits and offsets', async () => {
    for (let n = 0; n < 3; n++) await server.enqueue('clamp');
    const body = await server.ok(200, 'GET', `${V1}/jobs?limit=0&offset=1`);
    expect(body.jobs).toHaveLength(1);
    expect(body.pagination).toMatchObject({ total: 3, limit: 1, offset: 1, has_more: true });
    expect((await server.ok(200, 'GET', `${V1}/jobs?limit=5000`)).pagination).toMatchObject({ limit: 200 });
  });
});

describe('dead letters', () => {
  const dead = async (queue: string, type = 'test.dead'): Promise<string> => {
    const retry = { max_attempts: 1, on_exhaustion: 'dead_letter' };
    const id = await server.enqueue(queue, { type, options: { retry } });
    await server.take(queue);
    await server.nack(id, { error: { code: 'E', type: 'Broken', message: 'm' } });
    return id;
  };

  it('are listed over all queues, page by page, each once', async () => {
    const ids = [await dead('d1'), await dead('d2'), await dead('d1')];
    const seen: unknown[] = [];
    let cursor = '';
    for (let page = 0; page < 3; page++) {
      const body = await server.ok(200, 'GET', `${V1}/dead-letter?limit=1${cursor}`);
      seen.push(...(body.jobs ?? []).map(({ id }) => id));
      expect(body).toMatchObject({ total: 3, pagination: { has_more: page < 2 } });
      cursor = `&cursor=${body.pagination?.next_cursor}`;
    }
    expect([...seen].sort()).toEqual([...ids].sort());
    expect(await server.ok(200, 'GET', `${V1}/dead-letter/stats`)).toMatchObject({
      total: 3,
      by_queue: { d1: 2, d2: 1 },
      by_type: { 'test.dead': 3 },
      by_error_type: { Broken: 3 },
    });
  });

  it('run again from attempt 0 with what was overridden', async () => {
    const id = await dead('redrive');
    const other = { override: { args: [] } };
    expect(await server.call('POST', `${V1}/dead-letter/${id}/retry`, other)).toMatchObject({ status: 422 });
    const body = await server.ok(200, 'POST', `${V1}/dead-letter/${id}/retry`, {
      override: { retry: { max_attempts: 9 } },
    });
    expect(body.job).toMatchObject({ id, state: 'available', attempt: 0, max_attempts: 9 });
    expect(await server.call('GET', `${V1}/dead-letter/${id}`)).toMatchObject({ status: 404 });
    expect(await server.call('POST', `${V1}/dead-letter/${id}/retry`)).toMatchObject({ status: 404 });
  });

  it('are deleted for good', async () => {
    const id = await dead('delete');
    expect(await server.ok(200, 'DELETE', `${V1}/dead-letter/${id}`)).toEqual({ deleted: true, job_id: id });
    expect(await server.call('GET', `${V1}/jobs/${id}`)).toMatchObject({ status: 404 });
  });
});

describe('events', () => {
  it('tell what happened, oldest first, from a cursor on', async () => {
    const id = await server.enqueue('feed');
    await server.take('feed');
    await server.ack(id);
    const all = await server.ok(200, 'GET', `${V1}/events?queues=feed&types=job.enqueued,job.completed`);
    const events = all.events ?? [];
    expect(events.map(({ type }) => type)).toEqual(['job.enqueued', 'job.completed']);
    expect(events[0]).toMatchObject({ subject: id, data: { job_id: id, job_type: 'test.echo', queue: 'feed' } });
    const rest = await server.ok(200, 'GET', `${V1}/events?queues=feed&type=job.completed&after=${events[0]?.id}`);
    expect(rest.events).toEqual([events[1]]);
    expect(rest.cursor).toBe(events[1]?.id);
    const newest = await server.ok(200, 'GET', `${V1}/events?page=1&per_page=1&queues=feed`);
    expect(newest.items?.[0]?.id).toBe(events[1]?.id);
  });
});

describe('queues', () => {
  it('show counts of every state, and zeros when unknown', async () => {
    await server.enqueue('counted');
    expect(await server.ok(200, 'GET', `${V1}/queues/counted/stats`)).toMatchObject({
      queue: { name: 'counted', available: 1, active: 0 },
      available: 1,
      stats: { queue: 'counted', depth: 1, dead: 0 },
    });
    expect(await server.ok(200, 'GET', `${V1}/queues/unknown/stats`)).toMatchObject({ available: 0, status: 'active' });
  });

  it('are paused and resumed, with or without a body', async () => {
    await server.enqueue('held');
    expect(await server.ok(200, 'POST', `${V1}/queues/held/pause`)).toMatchObject({
      queue: { name: 'held', paused: true, status: 'paused' },
      paused_at: expect.any(String),
    });
    expect(await server.take('held')).toEqual([]);
    expect(await server.ok(200, 'GET', `${V1}/queues`)).toMatchObject({ queues: [{ name: 'held', paused: true }] });
    expect(await server.ok(200, 'POST', `${V1}/queues/held/resume`, {})).toMatchObject({
      paused: false,
      resumed_at: expect.any(String),
    });
    expect(await server.take('held')).toHaveLength(1);
  });

  it('keep settings in the units of the contract', async () => {
    const config = {
      concurrency: 3,
      visibility_timeout: 30,
      default_timeout: 'PT1M',
      default_retry: { max_attempts: 7 },
      retention: { completed: 'P1D' },
      dead_letter: { retention: { max_age: '2d', max_count: 5 } },
    };
    const shown = {
      ...config,
      default_timeout: 60,
      dead_letter: { retention: { max_age: 'P2D', max_count: 5 } },
    };
    expect(await server.configure('tuned', config)).toEqual({ name: 'tuned', config: shown });
    const id = await server.enqueue('tuned');
    expect(await server.job(id)).toMatchObject({ max_attempts: 7 });
    await server.configure('tuned', { default_retry: null, concurrency: null });
    const { config: left } = await server.ok(200, 'GET', `${V1}/queues/tuned/config`);
    expect(left).toEqual({
      visibility_timeout: 30,
      default_timeout: 60,
      retention: shown.retention,
      dead_letter: shown.dead_letter,
    });
    expect((await server.ok(200, 'GET', `${V1}/queues/tuned`)).config).toEqual(left);
  });
});

describe('GET /admin/jobs/:id', () => {
  it('is the bare envelope with policy, errors and times', async () => {
    const id = await server.enqueue('bare');
    const body = await server.ok(200, 'GET', `${V1}/admin/jobs/${id}`);
    expect(body).toMatchObject({ id, errors: [], retry_policy: { max_attempts: 3 } });
    expect(body.metadata).toEqual({ created_at: body.created_at, enqueued_at: body.enqueued_at });
    expect(await server.call('GET', `${V1}/admin/jobs/${UNKNOWN_ID}`)).toMatchObject({ status: 404 });
  });

  it('shows a cancelled job that an operator starts again', async () => {
    const id = await server.enqueue('again');
    await server.ok(200, 'POST', `${V1}/admin/jobs/${id}/cancel`);
    expect(await server.ok(200, 'POST', `${V1}/admin/jobs/${id}/retry`)).toMatchObject({ job: { state: 'available' } });
    expect(await server.call('POST', `${V1}/admin/jobs/${id}/retry`)).toMatchObject({ status: 409 });
  });
});
