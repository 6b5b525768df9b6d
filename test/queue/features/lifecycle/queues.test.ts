/** Queues: created, configured, paused, drained, purged, deleted; durably, and in an order that may be cut off anywhere. */

import { beforeEach, describe, expect, it } from 'vitest';
import { until } from '../../../support/clock';
import { failOnce } from '../../../support/faults';
import { freshName, TestQueue } from '../../../support/queue';
import { type Json, server } from '../../../support/server';

server.emptyBeforeEach();

let queue: string;
beforeEach(() => {
  queue = freshName('ops');
});

const fetchIds = (name = queue, count = 50) => server.takeIds(name, { count });
const ack = (job_id: string) => server.call('POST', '/ojs/v1/workers/ack', { job_id });
const stats = async (name = queue) =>
  (await server.ok(200, 'GET', `/ojs/v1/queues/${name}/stats`)).stats as Record<string, number>;
const status = async () => (await server.ok(200, 'GET', `/ojs/v1/queues/${queue}`)).status;

describe('a queue', () => {
  it('is created with settings, once', async () => {
    const body = { name: queue, config: { default_timeout: 5 }, concurrency: 3 };
    expect(await server.ok(201, 'POST', '/ojs/v1/queues', body)).toMatchObject({
      name: queue,
      state: 'active',
      config: { concurrency: 3, default_timeout: 5 },
      created_at: expect.any(String),
    });
    expect((await server.call('POST', '/ojs/v1/queues', body)).status).toBe(409);
    expect(await server.queues()).toEqual([queue]);
  });

  it.each<[Json, number, string]>([
    [{}, 400, 'name'],
    [{ name: 'No' }, 400, 'name'],
    [{ name: 'q', config: 5 }, 400, 'config'],
    [{ name: 'q', max_weight: 5 }, 422, 'max_weight'],
    [{ name: 'q', concurrency: 0 }, 400, 'concurrency'],
    [{ name: 'q', allowed_job_types: 'a' }, 400, 'allowed_job_types'],
    [{ name: 'q', allowed_job_types: ['*'] }, 201, ''],
    [{ name: 'q', allowed_job_types: ['A b'] }, 400, 'allowed_job_types[0]'],
  ])('is not created by %j', async (body, code, field) => {
    const answer = await server.call('POST', '/ojs/v1/queues', body);
    expect(answer.status, JSON.stringify(answer.body)).toBe(code);
    if (code !== 201) expect(answer.body.error?.details?.field).toBe(field);
  });

  it('takes only the types it is meant for', async () => {
    await server.configure(queue, { allowed_job_types: ['mail.*', 'sms'] });
    await server.enqueue(queue, { type: 'mail.send' });
    await server.enqueue(queue, { type: 'sms' });
    const refused = await server.call('POST', '/ojs/v1/jobs', { type: 'fax.send', args: [], options: { queue } });
    expect(refused).toMatchObject({
      status: 400,
      body: { error: { details: { field: 'type', allowed: ['mail.*', 'sms'] } } },
    });
    const jobs = [
      { type: 'sms', args: [], options: { queue } },
      { type: 'fax', args: [], options: { queue } },
    ];
    const batch = await server.call('POST', '/ojs/v1/jobs/batch', { jobs });
    expect(batch).toMatchObject({ status: 400, body: { error: { details: { index: 1 } } } });
    expect((await stats()).available).toBe(2);
    await server.configure(queue, { allowed_job_types: null });
    await server.enqueue(queue, { type: 'fax.send' });
  });

  it('that drains gives out what it has and takes nothing, until it is resumed', async () => {
    const id = await server.enqueue(queue);
    const retried = await server.enqueue(queue, { options: { retry: { initial_interval: 0, jitter: false } } });
    expect(await server.ok(200, 'POST', `/ojs/v1/queues/${queue}/drain`)).toMatchObject({
      name: queue,
      status: 'draining',
      paused: false,
    });
    await new TestQueue(queue).evict();
    expect(await status()).toBe('draining');
    const refused = await server.call('POST', '/ojs/v1/jobs', { type: 'a.b', args: [], options: { queue } });
    expect(refused).toMatchObject({
      status: 409,
      body: { error: { code: 'conflict', details: { current_state: 'draining' } } },
    });
    const other = { type: 'a.b', args: [], options: { queue: `${queue}-b` } };
    const batch = { jobs: [other, { type: 'a.b', args: [], options: { queue } }] };
    expect((await server.call('POST', '/ojs/v1/jobs/batch', batch)).status).toBe(409);
    expect((await stats(`${queue}-b`)).depth).toBe(0);
    expect(await fetchIds()).toEqual([id, retried]);
    await server.nack(retried, { error: { message: 'again' } });
    expect(await fetchIds()).toEqual([retried]);
    expect(await server.ok(200, 'POST', `/ojs/v1/queues/${queue}/resume`)).toMatchObject({ status: 'active' });
    await server.enqueue(queue);
  });

  it('is purged of what its states and age say', async () => {
    const ids = [
      await server.enqueue(queue),
      await server.enqueue(queue),
      await server.enqueue(queue, { options: { delay_until: '+PT1H' } }),
    ];
    await fetchIds(queue, 1);
    await ack(ids[0] as string);
    expect((await server.call('POST', `/ojs/v1/queues/${queue}/purge`, {})).body.error?.details?.field).toBe('states');
    for (const states of [['active'], ['gone'], [], 'completed', [1]]) {
      const answer = await server.call('POST', `/ojs/v1/queues/${queue}/purge`, { states });
      expect([states, answer.status, answer.body.error?.details?.field]).toEqual([states, 400, 'states']);
    }
    const confirm = await server.call('POST', `/ojs/v1/queues/${queue}/purge`, {
      states: ['completed'],
      confirm: false,
    });
    expect(confirm.body.error?.details?.field).toBe('confirm');
    const purge = (body: Json) => server.ok(200, 'POST', `/ojs/v1/queues/${queue}/purge`, body);
    const preview = { dry_run: true, matched: 2, by_state: { scheduled: 1, completed: 1 }, by_queue: { [queue]: 2 } };
    expect(await purge({ states: ['completed', 'scheduled'], dry_run: true })).toMatchObject(preview);
    expect(await purge({ states: ['scheduled'], older_than: 'P1D', dry_run: true })).toMatchObject({ matched: 0 });
    expect(await purge({ states: ['completed'], older_than: 'P1D' })).toMatchObject({ deleted: 0 });
    expect(await purge({ states: ['completed'], older_than: '2100-01-01T00:00:00Z' })).toMatchObject({ deleted: 1 });
    expect(await purge({ states: ['scheduled'], confirm: true })).toMatchObject({ deleted: 1, completed: true });
    expect(await stats()).toMatchObject({ available: 1, depth: 1, completed: 0 });
    const path = `/ojs/v1/admin/queues/${queue}/jobs`;
    expect((await server.call('DELETE', path, { states: ['available'] })).status).toBe(400);
    const looked = await server.ok(200, 'DELETE', path, { states: ['available'], dry_run: true });
    expect(looked).toMatchObject({ dry_run: true, action: 'purge', matched: 1 });
    const admin = await server.ok(200, 'DELETE', path, { states: ['available', 'completed'], confirm: true });
    expect(admin).toMatchObject({ purged_count: 1, states: ['available', 'completed'] });
    expect(await fetchIds()).toEqual([]);
  });

  it('is shown to operators with its counts, settings, pace and oldest job', async () => {
    for (let n = 0; n < 3; n++) await server.enqueue(queue, {});
    for (const id of (await fetchIds()).slice(0, 2)) await ack(id);
    await server.enqueue(queue, { options: { priority: 3 } });
    const other = `${queue}-other`;
    await server.enqueue(other, {});
    const named = async (name: string) => {
      const { items, total } = await server.ok(200, 'GET', `/ojs/v1/admin/queues?name=${name}&per_page=1`);
      return [(items as Json[]).map((item) => item.name), total];
    };
    expect(await named(queue.slice(1))).toEqual([[queue], 2]);
    expect(await named('-other')).toEqual([[other], 1]);
    expect(await named('%25')).toEqual([[], 0]);
    await server.ok(202, 'DELETE', `/ojs/v1/queues/${other}`, { strategy: 'discard' });
    const body = await server.ok(200, 'GET', '/ojs/v1/admin/queues');
    expect(body.items).toMatchObject([
      {
        name: queue,
        state: 'active',
        counts: { available: 1, active: 1, completed: 2 },
        throughput: { processed_per_minute: 2, failed_per_minute: 0, enqueued_per_minute: 4 },
        latency_ms: { p50: expect.any(Number), p95: expect.any(Number), p99: expect.any(Number) },
        oldest_available_at: expect.any(String),
      },
    ]);
    const changed = await server.ok(200, 'PUT', `/ojs/v1/admin/queues/${queue}/config`, { concurrency: 4 });
    expect(changed).toMatchObject({ name: queue, configuration: { concurrency: 4 }, config: { concurrency: 4 } });
    expect(changed.oldest_available_at).toEqual(expect.any(String));
    expect(await server.ok(200, 'POST', `/ojs/v1/admin/queues/${queue}/pause`)).toMatchObject({ paused: true });
    expect((await server.ok(200, 'GET', `/ojs/v1/admin/queues/${queue}`)).state).toBe('paused');
    expect((await server.call('GET', '/ojs/v1/admin/queues/nowhere')).status).toBe(404);
  });
});

describe('deleting a queue', () => {
  const remove = (body?: Json, name = queue) => server.call('DELETE', `/ojs/v1/queues/${name}`, body);

  it('is refused while jobs have not ended, and then leaves nothing behind', async () => {
    const id = await server.enqueue(queue);
    const refused = await remove();
    expect(refused).toMatchObject({ status: 409, body: { error: { code: 'conflict', details: { jobs: 1 } } } });
    expect(await status()).toBe('active');
    await fetchIds();
    expect((await remove({ strategy: 'reject' })).status).toBe(409);
    await ack(id);
    expect(await remove({})).toMatchObject({
      status: 202,
      body: { queue, strategy: 'reject', jobs_affected: 0, state: 'deleted' },
    });
    expect(await server.queues()).toEqual([]);
    expect((await server.call('GET', `/ojs/v1/jobs/${id}`)).status).toBe(404);
    expect((await server.call('GET', `/ojs/v1/queues/${queue}`)).status).toBe(404);
    expect((await remove()).status).toBe(404);
    const again = await server.enqueue(queue);
    expect(await fetchIds()).toEqual([again]);
  });

  it('discards what has not ended, running jobs too', async () => {
    const running = await server.enqueue(queue);
    await fetchIds();
    for (let n = 0; n < 3; n++) await server.enqueue(queue);
    expect(await remove({ strategy: 'discard' })).toMatchObject({
      status: 202,
      body: { jobs_affected: 4, state: 'deleted' },
    });
    expect((await ack(running)).status).toBe(404);
    expect(await server.queues()).toEqual([]);
    expect(await new TestQueue(queue).armedAt()).toBeNull();
  });

  it('moves jobs with their ids, order, attempts, checkpoints and places', async () => {
    const target = `${queue}-target`;
    const first = await server.enqueue(queue, { args: [1] });
    const urgent = await server.enqueue(queue, { options: { priority: 5 } });
    const failed = await server.enqueue(queue, {
      options: { priority: 9, retry: { initial_interval: 'PT1H', max_attempts: 5 } },
    });
    expect(await fetchIds(queue, 1)).toEqual([failed]);
    await server.ok(200, 'PUT', `/ojs/v1/jobs/${failed}/checkpoint`, { state: { page: 7 } });
    await server.nack(failed, { error: { message: 'once' } });
    const later = await server.enqueue(queue, { options: { delay_until: '+PT1H' } });
    const pending = await server.enqueue(queue, { options: { pending: true } });
    const chosen = await server.enqueue(queue, { id: '01962222-bbbb-7ccc-8ddd-eeeeeeee0020' });
    const done = await remove({ strategy: 'move', target_queue: target });
    expect(done).toMatchObject({ status: 202, body: { jobs_affected: 6, state: 'deleted' } });
    expect(await server.queues()).toEqual([target]);
    expect(await stats(target)).toMatchObject({ available: 3, scheduled: 1, retryable: 1, pending: 1 });
    const job = await server.job(failed);
    expect(job).toMatchObject({
      id: failed,
      queue: target,
      state: 'retryable',
      attempt: 1,
      errors: [{ message: 'once' }],
    });
    expect(await server.ok(200, 'GET', `/ojs/v1/jobs/${failed}/checkpoint`)).toMatchObject({
      state: { page: 7 },
      sequence: 1,
    });
    expect(await fetchIds(target)).toEqual([urgent, first, chosen]);
    expect((await ack(first)).status).toBe(200);
    await server.ok(200, 'PATCH', `/ojs/v1/jobs/${later}`, { scheduled_at: null });
    await server.ok(200, 'POST', `/ojs/v1/jobs/${pending}/activate`);
    expect((await fetchIds(target)).sort()).toEqual([later, pending].sort());
    const cancelled = await server.call('POST', '/ojs/v1/jobs/bulk/cancel', { job_ids: [failed, urgent] });
    expect(cancelled.body).toMatchObject({ cancelled: 2, failed: 0 });
  });

  it('waits for jobs that run, takes no others meanwhile, and continues by itself', async () => {
    const target = `${queue}-target`;
    const inside = new TestQueue(queue);
    const id = await server.enqueue(queue, { options: { retry: { initial_interval: 0, jitter: false } } });
    await fetchIds();
    const waiting = await server.enqueue(queue);
    const begun = await remove({ strategy: 'move', target_queue: target });
    expect(begun.body).toMatchObject({ state: 'deleting', jobs_affected: 2 });
    expect((await server.call('POST', '/ojs/v1/jobs', { type: 'a.b', args: [], options: { queue } })).status).toBe(409);
    expect((await server.call('POST', `/ojs/v1/queues/${queue}/resume`)).status).toBe(409);
    expect(await fetchIds()).toEqual([]);
    expect(await fetchIds(target)).toEqual([waiting]);
    await inside.evict();
    await server.nack(id, { error: { message: 'again' } });
    await until(async () => {
      await inside.alarm();
      return !(await server.queues()).includes(queue);
    }, 'the queue to be gone');
    expect(await fetchIds(target)).toEqual([id]);
  });

  it.each([/DELETE FROM jobs/, /INSERT INTO jobs/, /INSERT OR REPLACE INTO meta/])(
    'cut off at %s loses no job and moves none twice',
    async (statement) => {
      const target = `${queue}-target`;
      const inside = new TestQueue(queue);
      const ids = (await inside.enqueue(...Array(250).fill({}))).map(({ id }) => id);
      await inside.inside(({ sql }) => failOnce(sql, statement, 1));
      await remove({ strategy: 'move', target_queue: target });
      await until(async () => {
        await inside.alarm();
        if ((await server.queues()).includes(queue)) await remove({ strategy: 'move', target_queue: target });
        return !(await server.queues()).includes(queue);
      }, 'the queue to be gone');
      expect(await new TestQueue(target).claimAll()).toEqual(ids);
    },
  );

  it.each<[Json, string]>([
    [{ strategy: 'burn' }, 'strategy'],
    [{ strategy: 'move' }, 'target_queue'],
    [{ strategy: 'move', target_queue: 'No' }, 'target_queue'],
    [{ strategy: 7 }, 'strategy'],
  ])('%j is refused', async (body, field) => {
    await server.enqueue(queue);
    expect((await remove(body)).body.error?.details?.field).toBe(field);
    expect((await remove({ strategy: 'move', target_queue: queue })).status).toBe(400);
    expect(await status()).toBe('active');
  });

  it('is refused while a schedule enqueues into it', async () => {
    await server.ok(201, 'POST', '/ojs/v1/cron', {
      name: 'nightly',
      expression: '0 2 * * *',
      type: 'a.b',
      args: [],
      options: { queue },
    });
    expect(await remove({ strategy: 'discard' })).toMatchObject({
      status: 409,
      body: { error: { details: { cron_entries: 1 } } },
    });
    await server.ok(200, 'DELETE', '/ojs/v1/cron/nightly');
    expect((await remove({ strategy: 'discard' })).status).toBe(202);
  });
});

describe('a workflow', () => {
  it.each<[string, (name: string) => Promise<unknown>]>([
    ['is purged', (name) => server.ok(200, 'POST', `/ojs/v1/queues/${name}/purge`, { states: ['available'] })],
    ['goes with its queue', (name) => server.ok(202, 'DELETE', `/ojs/v1/queues/${name}`, { strategy: 'discard' })],
  ])('whose job %s is notified of that, and fails', async (_, destroy) => {
    const jobs = [{ type: 'a.b', args: [], options: { queue } }];
    const { id } = await server.ok(201, 'POST', '/ojs/v1/workflows', { type: 'group', jobs });
    await until(async () => (await stats()).available === 1, 'the job of the workflow');
    await destroy(queue);
    await until(
      async () => (await server.ok(200, 'GET', `/ojs/v1/workflows/${id}`)).state === 'failed',
      'the workflow to fail',
    );
  });
});
