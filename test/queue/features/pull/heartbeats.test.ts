/** What a worker hears about its jobs: which are still its own, and which were cancelled or taken from it. */
import { describe, expect, it } from 'vitest';
import { clock, iso, T0 } from '../../../support/clock';
import { TestQueue } from '../../../support/queue';
import { rowsWhile } from '../../../support/rows';
import { type Json, server, TestServer, UNKNOWN_ID, V1 } from '../../../support/server';

server.emptyBeforeEach();
clock.restoreAfterEach();

describe('a job that a worker holds', () => {
  it('shows when its worker was last seen and when its lease ends, when it is read alone', async () => {
    const id = await server.enqueue('held');
    const claimed = T0;
    clock.set(claimed);
    await server.takeOne('held', { worker_id: 'w1', visibility_timeout_ms: 60_000 });
    const lease = (at: number, end: number) => ({ last_heartbeat_at: iso(at), lease_expires_at: iso(end) });
    expect(await server.job(id)).toMatchObject(lease(claimed, claimed + 60_000));
    clock.advance(20_000);
    await server.heartbeat('w1', { active_jobs: [id] });
    clock.advance(5_000);
    expect(await server.job(id)).toMatchObject(lease(claimed + 20_000, claimed + 80_000));
    await server.heartbeat('w1', { active_jobs: [id], visibility_timeout_ms: 600_000 });
    expect(await server.job(id)).toMatchObject(lease(claimed + 25_000, claimed + 625_000));
    const [listed] = (await server.ok(200, 'GET', `${V1}/jobs?queue=held`)).jobs as Json[];
    expect(listed).toMatchObject({ id, state: 'active' });
    expect(listed).not.toHaveProperty('lease_expires_at');
    await server.ack(id);
    expect(await server.job(id)).not.toHaveProperty('last_heartbeat_at');
  });
});

describe('a heartbeat names', () => {
  it('the jobs that were cancelled and those that were taken away, over several queues', async () => {
    const held = await server.enqueue('q1');
    const cancelled = await server.enqueue('q2');
    const late = await server.enqueue('q3');
    const foreign = await server.enqueue('q4');
    const done = await server.enqueue('q5');
    await server.take(['q1', 'q2', 'q5'], { count: 3, worker_id: 'w1' });
    await server.takeOne('q3', { worker_id: 'w1', visibility_timeout_ms: 1_000 });
    await server.takeOne('q4', { worker_id: 'w2' });
    await server.ok(200, 'DELETE', `${V1}/jobs/${cancelled}`);
    await server.ack(done);
    clock.advance(2_000);
    const active_jobs = [held, cancelled, late, foreign, done];
    const answer = await server.heartbeat('w1', { active_jobs });
    expect(answer).toMatchObject({ jobs_extended: [held], jobs_cancelled: [cancelled] });
    expect([...(answer.jobs_lost as string[])].sort()).toEqual([late, foreign, done].sort());
  });

  it('only jobs that the worker named', async () => {
    const id = await server.enqueue('q');
    await server.takeOne('q', { worker_id: 'w1' });
    await server.ok(200, 'DELETE', `${V1}/jobs/${id}`);
    const none = { jobs_extended: [], jobs_cancelled: [], jobs_lost: [] };
    expect(await server.heartbeat('w1')).toMatchObject(none);
    expect(await server.heartbeat('w1', { active_jobs: [] })).toMatchObject(none);
    expect(await server.heartbeat('w1', { active_jobs: [id] })).toMatchObject({ ...none, jobs_cancelled: [id] });
  });

  it('a job of which nothing is left as lost, to a worker that names its queues', async () => {
    const active_jobs = [UNKNOWN_ID];
    expect(await server.heartbeat('w1', { active_jobs, queues: ['q'] })).toMatchObject({ jobs_lost: [UNKNOWN_ID] });
    expect(await server.heartbeat('w1', { active_jobs })).toMatchObject({ jobs_lost: [] });
  });

  it('are read at a bounded cost, however many it named', async () => {
    const q = new TestQueue();
    const [first] = await q.enqueue(...Array.from({ length: 50 }, () => ({ body: { args: ['x'.repeat(10_000)] } })));
    await q.claim({ count: 50, worker_id: 'w1' });
    const ids = Array.from({ length: 10_000 }, (_, n) => `${UNKNOWN_ID.slice(0, -5)}${String(n).padStart(5, '0')}`);
    const { read, written } = await rowsWhile(q.stub, () =>
      q.api.heartbeat({ worker_id: 'w1', job_ids: [first?.id as string, ...ids] }),
    );
    expect(written).toBeLessThanOrEqual(2);
    expect(read).toBeLessThan(3 * ids.length);
  });
});

describe('a progress report', () => {
  it('says whether the job was cancelled', async () => {
    const id = await server.enqueue('q');
    await server.takeOne('q');
    const report = () => server.ok(200, 'PUT', `${V1}/jobs/${id}/progress`, { progress: 0.5 });
    expect(await report()).toMatchObject({ state: 'active', cancelled: false });
    await server.ok(200, 'DELETE', `${V1}/jobs/${id}`);
    expect(await report()).toMatchObject({ state: 'cancelled', cancelled: true });
  });
});

describe('a test directive', () => {
  it('of any size stops no fetch, and is heard only where it is one', async () => {
    const q = new TestQueue();
    const metadata = { test_directive: 'x'.repeat(900_000) };
    await q.enqueue(...Array.from({ length: 3 }, () => ({ body: { metadata } })));
    const jobs = await q.claim({ count: 3, worker_id: 'w1' });
    expect(jobs).toHaveLength(3);
    const stored = await q.inside(
      ({ sql }) => sql.exec<{ n: number }>('SELECT max(length(data)) AS n FROM leases').one().n,
    );
    expect(stored).toBeLessThan(1_000);
    const beat = { worker_id: 'w1', directives: true };
    expect(await q.api.heartbeat(beat)).toMatchObject({ ok: true });
    expect(await q.api.heartbeat(beat)).not.toHaveProperty('value.directive');
    await q.enqueue({ body: { metadata: { test_directive: 'quiet' } } });
    await q.claim({ count: 1, worker_id: 'w1' });
    expect(await q.api.heartbeat(beat)).toMatchObject({ value: { directive: 'quiet' } });
    expect(await q.api.heartbeat({ worker_id: 'w1' })).not.toHaveProperty('value.directive');
  });

  it('is not heard by a deployment without test hooks', async () => {
    const plain = TestServer.with({ TEST_HOOKS: undefined });
    const options = { queue: 'q', metadata: { test_directive: 'terminate' } };
    await server.ok(201, 'POST', `${V1}/jobs`, { type: 'test.echo', args: [], options });
    await server.takeOne('q', { worker_id: 'w1' });
    expect(await plain.heartbeat('w1')).toMatchObject({ state: 'running' });
    expect(await server.heartbeat('w1')).toMatchObject({ state: 'terminate' });
  });
});

describe('a lease', () => {
  it('takes as many rows as it needs', async () => {
    const q = new TestQueue();
    const type = `a${'b'.repeat(254)}`;
    await q.enqueue(...Array.from({ length: 20 }, () => ({ type })));
    await q.inside(({ q: state }) => {
      state.store.leases.maxRowBytes = 2_000;
    });
    const ids = (await q.claim({ count: 20, worker_id: 'w1' })).map(({ id }) => id);
    const sizes = await q.inside(({ sql }) =>
      sql.exec<{ n: number }>('SELECT length(data) AS n FROM leases').toArray(),
    );
    expect(sizes).toHaveLength(5);
    for (const { n } of sizes) expect(n).toBeLessThan(2_000);
    await q.evict();
    expect((await q.api.heartbeat({ worker_id: 'w1' })) as unknown).toMatchObject({
      value: { extended: expect.arrayContaining(ids) },
    });
  });
});
