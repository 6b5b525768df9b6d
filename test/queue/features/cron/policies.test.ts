/** Overlaps, missed fires, limits, dates and pauses. */

import { describe, expect, it } from 'vitest';
import { clock, DAY, HOUR, iso, MINUTE, SECOND, T0 } from '../../../support/clock';
import { TestQueue } from '../../../support/queue';
import { type Json, server } from '../../../support/server';
import { CRON, create, entry, eventsOf, read, refused, ticksOf } from './entries';

server.emptyBeforeEach();
clock.startAtT0();

const minute = (n: number) => T0 + n * MINUTE;

describe('a fire while the job before has not ended', () => {
  it('is skipped by default, and says which job was in the way', async () => {
    await create('a');
    await new TestQueue('a').jumpTo(minute(1));
    const running = await server.takeOne('a');
    await new TestQueue('a').jumpTo(minute(2));
    expect(await ticksOf('a')).toEqual([minute(1)]);
    expect(await read('a')).toMatchObject({
      overlap_policy: 'skip',
      run_count: 1,
      skipped_count: 1,
      last_skipped: { reason: 'overlap_skip', job_id: running.id, scheduled_at: iso(minute(2)) },
      next_run_at: iso(minute(3)),
    });
    expect(await eventsOf('a', 'cron.skipped')).toEqual([
      expect.objectContaining({ reason: 'overlap_skip', active_job_id: running.id, scheduled_time: iso(minute(2)) }),
    ]);
    await server.ack(running.id);
    await new TestQueue('a').jumpTo(minute(3));
    expect(await ticksOf('a')).toEqual([minute(1), minute(3)]);
  });

  it('is skipped for a job that only waits: without a worker no jobs pile up', async () => {
    await create('a');
    for (let n = 1; n <= 5; n++) await new TestQueue('a').jumpTo(minute(n));
    expect(await ticksOf('a')).toEqual([minute(1)]);
  });

  it.each([
    ['retried', async (id: unknown) => void (await server.nack(id, { error: 'x' }))],
    [
      'given back',
      async (id: unknown) => void (await server.ok(200, 'POST', '/ojs/v1/workers/nack', { job_id: id, requeue: true })),
    ],
  ])('is skipped while that job is %s', async (_, end) => {
    await create('a', { options: { retry: { initial_interval: 'PT1H', max_interval: 'PT2H' } } });
    await new TestQueue('a').jumpTo(minute(1));
    await end((await server.takeOne('a')).id);
    await new TestQueue('a').jumpTo(minute(2));
    expect(await ticksOf('a')).toEqual([minute(1)]);
  });

  it('still fires under allow', async () => {
    await create('a', { overlap_policy: 'allow' });
    for (let n = 1; n <= 3; n++) await new TestQueue('a').jumpTo(minute(n));
    expect(await ticksOf('a')).toEqual([minute(1), minute(2), minute(3)]);
  });

  it('cancels that job under cancel_previous, also one that runs, and leaves one that has ended', async () => {
    await create('a', { overlap_policy: 'cancel_previous' });
    await new TestQueue('a').jumpTo(minute(1));
    const first = await server.takeOne('a');
    await new TestQueue('a').jumpTo(minute(2));
    expect((await server.jobs('a')).map(({ state }) => state)).toEqual(['cancelled', 'available']);
    expect(await server.call('POST', '/ojs/v1/workers/ack', { job_id: first.id })).toMatchObject({ status: 409 });
    await server.complete('a');
    await new TestQueue('a').jumpTo(minute(3));
    expect((await server.jobs('a')).map(({ state }) => state)).toEqual(['cancelled', 'completed', 'available']);
  });

  it('waits under enqueue, and fires the moment that job has ended, one after the other', async () => {
    await create('a', { overlap_policy: 'enqueue' });
    await new TestQueue('a').jumpTo(minute(1));
    const first = await server.takeOne('a');
    await new TestQueue('a').jumpTo(minute(2));
    await new TestQueue('a').jumpTo(minute(3));
    expect(await ticksOf('a')).toEqual([minute(1)]);
    expect(await read('a')).toMatchObject({ waiting: 2, run_count: 1 });
    await new TestQueue('a').evict();
    clock.set(minute(3) + 20 * SECOND);
    await server.ack(first.id);
    expect(await ticksOf('a')).toEqual([minute(1), minute(2)]);
    const second = await server.takeOne('a');
    expect(second.meta).toMatchObject({
      cron_triggered_at: iso(minute(3) + 20 * SECOND),
      cron_scheduled_at: iso(minute(2)),
    });
    await server.ok(200, 'DELETE', `/ojs/v1/jobs/${second.id}`);
    expect(await ticksOf('a')).toEqual([minute(1), minute(2), minute(3)]);
    expect(await read('a')).toMatchObject({ waiting: 0, run_count: 3 });
  });

  it('waits under enqueue for a job that expires, too', async () => {
    await create('a', { overlap_policy: 'enqueue', options: { expires_at: '+PT150S' } });
    await new TestQueue('a').jumpTo(minute(1));
    await new TestQueue('a').jumpTo(minute(2));
    expect(await ticksOf('a')).toEqual([minute(1)]);
    await new TestQueue('a').jumpTo(minute(1) + 150 * SECOND);
    expect((await server.jobs('a')).map(({ state }) => state)).toEqual(['discarded', 'available']);
  });

  it('is not kept for ever: a hundred may wait', async () => {
    await create('a', { expression: '* * * * * *', overlap_policy: 'enqueue' });
    for (let n = 1; n <= 105; n++) await new TestQueue('a').jumpTo(T0 + n * SECOND);
    expect(await read('a')).toMatchObject({ waiting: 100, skipped_count: 4 });
    expect((await eventsOf('a', 'cron.skipped')).at(-1)).toMatchObject({ reason: 'waiting_full' });
  });
});

describe('fires that no one was there to see', () => {
  const late = minute(5) + 30 * SECOND;

  it('fire once by default, for the last of them', async () => {
    await create('a', { overlap_policy: 'allow' });
    await new TestQueue('a').jumpTo(late);
    expect(await ticksOf('a')).toEqual([minute(5)]);
    expect(await read('a')).toMatchObject({ missed_policy: 'fire_once', next_run_at: iso(minute(6)) });
    const { skipped } = await server.ok(200, 'GET', `${CRON}/a/history`);
    expect(skipped).toEqual([
      expect.objectContaining({ reason: 'missed', scheduled_at: iso(minute(1)), scheduled_until: iso(minute(4)) }),
    ]);
  });

  it('fire once even when the last one is long past', async () => {
    await create('a', { expression: '0 13 * * *' });
    await new TestQueue('a').jumpTo(T0 + 20 * HOUR);
    expect(await ticksOf('a')).toEqual([T0 + HOUR]);
  });

  it('are dropped under skip, unless the last one is on time', async () => {
    await create('a', { expression: '@hourly', missed_policy: 'skip', overlap_policy: 'allow' });
    await new TestQueue('a').jumpTo(T0 + 3 * HOUR + 5 * MINUTE);
    expect(await server.jobs('a')).toEqual([]);
    expect(await read('a')).toMatchObject({ run_count: 0, next_run_at: iso(T0 + 4 * HOUR) });
    await new TestQueue('a').jumpTo(T0 + 4 * HOUR + 20 * SECOND);
    expect(await ticksOf('a')).toEqual([T0 + 4 * HOUR]);
  });

  it('all fire under fire_all, oldest first, up to the bound', async () => {
    await create('a', { missed_policy: 'fire_all', overlap_policy: 'allow' });
    await create('b', { missed_fires: { policy: 'fire-all', max_catchup: 2 }, overlap_policy: 'allow' });
    await new TestQueue('a').jumpTo(late);
    await new TestQueue('b').jumpTo(late);
    expect(await ticksOf('a')).toEqual([1, 2, 3, 4, 5].map(minute));
    expect(await ticksOf('b')).toEqual([1, 2].map(minute));
    expect(await read('b')).toMatchObject({ missed_policy: 'fire_all', max_catchup: 2, next_run_at: iso(minute(6)) });
  });

  it('of every second for a day are handled at once', async () => {
    await create('a', { expression: '* * * * * *' });
    await new TestQueue('a').jumpTo(T0 + DAY + 300);
    expect(await ticksOf('a')).toEqual([T0 + DAY]);
  });

  it('fire one after the other under fire_all with enqueue', async () => {
    await create('a', { missed_policy: 'fire_all', overlap_policy: 'enqueue' });
    await new TestQueue('a').jumpTo(minute(3));
    for (let n = 0; n < 3; n++) await server.complete('a');
    expect(await ticksOf('a')).toEqual([1, 2, 3].map(minute));
  });
});

describe('a limit of fires', () => {
  it('ends the entry, which stays to be read', async () => {
    await create('a', { limit: 2, overlap_policy: 'allow' });
    expect((await read('a')).next_fires).toEqual([iso(minute(1)), iso(minute(2))]);
    for (let n = 1; n <= 4; n++) await new TestQueue('a').jumpTo(minute(n));
    expect(await ticksOf('a')).toEqual([minute(1), minute(2)]);
    expect(await read('a')).toMatchObject({
      status: 'completed',
      next_run_at: null,
      next_fires: [],
      fire_count: 2,
      limit: 2,
    });
  });

  it('counts what waits, and continues when it is raised', async () => {
    await create('a', { limit: 2, overlap_policy: 'enqueue' });
    for (let n = 1; n <= 4; n++) await new TestQueue('a').jumpTo(minute(n));
    await server.complete('a');
    await server.complete('a');
    expect(await ticksOf('a')).toEqual([minute(1), minute(2)]);
    await server.ok(200, 'PATCH', `${CRON}/a`, { limit: 3 });
    for (let n = 5; n <= 7; n++) await new TestQueue('a').jumpTo(minute(n));
    expect(await ticksOf('a')).toEqual([minute(1), minute(2), minute(5)]);
  });

  it('is not used up by fires that were skipped', async () => {
    await create('a', { limit: 2 });
    await new TestQueue('a').jumpTo(minute(1));
    await new TestQueue('a').jumpTo(minute(2));
    await server.complete('a');
    await new TestQueue('a').jumpTo(minute(3));
    expect(await ticksOf('a')).toEqual([minute(1), minute(3)]);
  });
});

describe('dates', () => {
  it('bound the fires, both included', async () => {
    await create('a', { start_at: iso(minute(3)), end_at: iso(minute(5)), overlap_policy: 'allow' });
    expect(await new TestQueue('a').armedAt()).toBe(minute(3));
    for (let n = 1; n <= 8; n++) await new TestQueue('a').jumpTo(minute(n));
    expect(await ticksOf('a')).toEqual([3, 4, 5].map(minute));
    expect(await read('a')).toMatchObject({ status: 'completed', next_run_at: null });
  });

  it('may be relative, and taken away again', async () => {
    expect(await create('a', { end_at: '+PT90S' })).toMatchObject({
      end_at: iso(T0 + 90 * SECOND),
      next_fires: [iso(minute(1))],
    });
    await server.ok(200, 'PATCH', `${CRON}/a`, { end_at: null });
    expect((await read('a')).end_at).toBeUndefined();
    expect((await read('a')).next_fires).toHaveLength(5);
  });

  it('that have passed leave an entry that does not fire', async () => {
    expect(await create('a', { end_at: '2039-01-01T00:00:00Z' })).toMatchObject({
      status: 'completed',
      next_run_at: null,
    });
    expect(await new TestQueue('a').armedAt()).toBeNull();
  });

  it('start an interval', async () => {
    await create('a', { expression: '@every 10m', start_at: iso(T0 + 90 * SECOND), overlap_policy: 'allow' });
    expect((await read('a')).next_fires).toEqual([0, 1, 2, 3, 4].map((n) => iso(T0 + 90 * SECOND + n * 10 * MINUTE)));
  });

  it('must be in order', async () => {
    const answer = await refused(entry('a', { start_at: iso(minute(2)), end_at: iso(minute(1)) }));
    expect(answer.body.error?.details).toMatchObject({ field: 'end_at' });
  });
});

describe('a pause', () => {
  it('stops fires, and none of them is made up for afterwards', async () => {
    await create('a', { overlap_policy: 'allow', missed_policy: 'fire_all' });
    await new TestQueue('a').jumpTo(minute(1));
    expect(await server.ok(200, 'POST', `${CRON}/a/pause`)).toMatchObject({
      enabled: false,
      status: 'paused',
      next_run_at: null,
    });
    for (let n = 2; n <= 4; n++) {
      clock.set(minute(n));
      await new TestQueue('a').alarm();
    }
    expect(await server.ok(200, 'POST', `${CRON}/a/resume`)).toMatchObject({
      enabled: true,
      status: 'active',
      next_run_at: iso(minute(5)),
    });
    await new TestQueue('a').jumpTo(minute(5));
    expect(await ticksOf('a')).toEqual([minute(1), minute(5)]);
  });

  it('drops fires that wait, and keeps the rhythm of an interval', async () => {
    await create('a', { expression: '@every 7m', overlap_policy: 'enqueue' });
    await new TestQueue('a').jumpTo(T0 + 7 * MINUTE);
    await new TestQueue('a').jumpTo(T0 + 14 * MINUTE);
    await server.ok(200, 'PATCH', `${CRON}/a`, { enabled: false });
    await server.complete('a');
    expect(await ticksOf('a')).toEqual([T0 + 7 * MINUTE]);
    await server.ok(200, 'PATCH', `${CRON}/a`, { enabled: true });
    expect(await read('a')).toMatchObject({ next_run_at: iso(T0 + 21 * MINUTE), waiting: 0 });
  });

  it('can be where an entry begins, and is idempotent', async () => {
    expect(await create('a', { enabled: false })).toMatchObject({
      status: 'paused',
      next_run_at: null,
      next_fires: [],
    });
    expect(await new TestQueue('a').armedAt()).toBeNull();
    await server.ok(200, 'POST', `${CRON}/a/pause`);
    await server.ok(200, 'POST', `${CRON}/a/resume`);
    const once = await read('a');
    expect(await server.ok(200, 'POST', `${CRON}/a/resume`)).toMatchObject({ updated_at: once.updated_at });
  });
});

describe('a trigger', () => {
  it('enqueues a job now, whatever the schedule says, and uses up no limit', async () => {
    await create('a', { limit: 1, enabled: false });
    const { job, job_id } = await server.ok(201, 'POST', `${CRON}/a/trigger`);
    await server.ok(201, 'POST', `${CRON}/a/trigger`);
    expect(job).toMatchObject({ id: job_id, state: 'available', meta: { cron_name: 'a', cron_triggered_at: iso(T0) } });
    expect(((job as Json).meta as Json).cron_scheduled_at).toBeUndefined();
    expect(await read('a')).toMatchObject({ run_count: 2, fire_count: 0, last_run_at: iso(T0) });
    expect(await server.jobs('a')).toHaveLength(2);
  });

  it('makes the job that later fires may overlap with', async () => {
    await create('a');
    await server.ok(201, 'POST', `${CRON}/a/trigger`);
    await new TestQueue('a').jumpTo(minute(1));
    expect(await server.jobs('a')).toHaveLength(1);
  });
});

describe('the history', () => {
  it('says what became of each job, newest first', async () => {
    await create('a', { overlap_policy: 'allow', options: { retry: { max_attempts: 1 } } });
    await new TestQueue('a').jumpTo(minute(1));
    await server.complete('a');
    await new TestQueue('a').jumpTo(minute(2));
    await server.nack((await server.takeOne('a')).id, { error: 'x' });
    await new TestQueue('a').jumpTo(minute(3));
    await server.ok(201, 'POST', `${CRON}/a/trigger`);
    const { executions, count } = await server.ok(200, 'GET', `${CRON}/a/history`);
    expect(count).toBe(4);
    expect(executions).toEqual([
      expect.objectContaining({ state: 'available', trigger: 'manual', started_at: null, completed_at: null }),
      expect.objectContaining({ state: 'available', trigger: 'schedule', scheduled_at: iso(minute(3)) }),
      expect.objectContaining({ state: 'discarded', started_at: iso(minute(2)), completed_at: iso(minute(2)) }),
      expect.objectContaining({ state: 'completed', scheduled_at: iso(minute(1)), completed_at: iso(minute(1)) }),
    ]);
    expect((await server.ok(200, 'GET', `${CRON}/a/history?limit=1`)).executions).toHaveLength(1);
  });

  it('is bounded, and outlives the jobs', async () => {
    await create('a', { overlap_policy: 'allow' });
    await server.configure('a', { retention: { completed: 'PT1M' } });
    for (let n = 1; n <= 60; n++) {
      await new TestQueue('a').jumpTo(minute(n));
      await server.complete('a');
    }
    clock.set(minute(60) + 59 * SECOND);
    await new TestQueue('a').alarm();
    const { executions } = await server.ok(200, 'GET', `${CRON}/a/history?limit=100`);
    expect(executions).toHaveLength(50);
    expect((executions as Json[]).at(-1)).toMatchObject({
      state: 'pruned',
      scheduled_at: iso(minute(11)),
      started_at: null,
    });
  });
});
