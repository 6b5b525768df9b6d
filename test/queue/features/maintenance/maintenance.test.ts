/** Maintenance: nothing is handed out and no schedule fires; what is due waits, asleep, and goes on when it ends. */
import { evictDurableObject } from 'cloudflare:test';
import { describe, expect, it } from 'vitest';
import { clock, HOUR, iso, MINUTE, SECOND, T0, until } from '../../../support/clock';
import { directory } from '../../../support/directory';
import { Gate } from '../../../support/handlers';
import { TestQueue } from '../../../support/queue';
import { type Json, server } from '../../../support/server';
import { create, ticksOf } from '../cron/entries';

server.emptyBeforeEach();
clock.startAtT0();

const PATH = '/ojs/v1/admin/system/maintenance';
const declare = (body: Json) => server.ok(200, 'POST', PATH, body);
const begin = (duration?: string) => declare({ enabled: true, ...(duration && { duration }) });
const end = () => declare({ enabled: false });
const waitingFor = async (id: string) => (await server.job(id)).waiting_for as Json;

/** A queue that exists, with nothing in it. */
const newQueue = (name: string) => server.ok(201, 'POST', '/ojs/v1/queues', { name });

describe('a queue in maintenance', () => {
  it('accepts jobs and hands none out, says why, and continues when it is ended', async () => {
    const before = await server.add('pull.job', [], { queue: 'pulled' });
    await declare({ enabled: true, reason: 'new database', duration: '1h' });
    const during = await server.add('pull.job', [], { queue: 'pulled' });
    expect(await server.take('pulled', { count: 2 })).toEqual([]);
    expect(await waitingFor(before)).toEqual({
      reason: 'maintenance',
      since: iso(T0),
      until: iso(T0 + HOUR),
      detail: `The deployment is in maintenance until ${iso(T0 + HOUR)} (new database), and no job starts.`,
    });
    await end();
    expect((await server.take('pulled', { count: 2 })).map(({ id }) => id)).toEqual([before, during]);
  });

  it('ends at its time, by comparison, whether an alarm rings or not', async () => {
    const id = await server.add('pull.job', [], { queue: 'pulled' });
    await begin('1h');
    clock.at(HOUR - 1);
    expect(await server.take('pulled', { count: 1 })).toEqual([]);
    clock.at(HOUR);
    expect((await server.take('pulled', { count: 1 })).map((job) => job.id)).toEqual([id]);
  });

  it('may also be created during maintenance', async () => {
    await begin();
    const id = await server.add('pull.job', [], { queue: 'later' });
    expect(await server.take('later', { count: 1 })).toEqual([]);
    expect(await waitingFor(id)).toMatchObject({ reason: 'maintenance' });
    expect(await waitingFor(id)).not.toHaveProperty('until');
    await end();
    expect(await server.take('later', { count: 1 })).toHaveLength(1);
  });

  it('stays shut when its object and the directory are evicted', async () => {
    await server.add('pull.job', [], { queue: 'pulled' });
    await begin('1h');
    await new TestQueue('pulled').evict();
    await evictDurableObject(directory());
    expect(await server.take('pulled', { count: 1 })).toEqual([]);
    expect(await server.ok(200, 'GET', PATH)).toMatchObject({ enabled: true, ends_at: iso(T0 + HOUR) });
  });

  it('answers a worker that waits as soon as it is ended', async () => {
    await newQueue('pulled');
    await begin();
    const id = await server.add('pull.job', [], { queue: 'pulled' });
    const fetched = server.ok(200, 'POST', '/ojs/v1/workers/fetch', { queues: ['pulled'], wait_ms: 20_000 });
    await new TestQueue('pulled').waiting('work', 1);
    await end();
    expect((await fetched).jobs?.map((job) => job.id)).toEqual([id]);
  });

  it('lets attempts that run come to their end, and a lease that runs out is not a reason to hand the job out', async () => {
    await server.add('pull.job', [], { queue: 'pulled' });
    await server.add('pull.job', [], { queue: 'pulled' });
    const [first, second] = await server.take('pulled', { count: 2, visibility_timeout_ms: MINUTE });
    await begin('1h');
    await server.ok(200, 'POST', '/ojs/v1/workers/ack', { job_id: first?.id });
    await new TestQueue('pulled').passTo(T0 + 2 * MINUTE);
    expect(await server.job(second?.id as string)).toMatchObject({ state: 'available', attempt: 1 });
    expect(await server.take('pulled', { count: 1 })).toEqual([]);
    clock.at(HOUR);
    expect(await server.take('pulled', { count: 1 })).toMatchObject([{ id: second?.id, attempt: 2 }]);
  });
});

describe('jobs that are pushed', () => {
  it('are pushed at the end, by the one alarm that stands for it; the queue sleeps until then', async () => {
    const queue = new TestQueue('pushed');
    await newQueue('pushed');
    await begin('1h');
    const now = await server.add('plain.order', [{}], { queue: 'pushed' });
    const delayed = await server.add('plain.order', [{}], { queue: 'pushed', delay_until: '+PT10M' });
    await queue.passTo(T0 + 10 * MINUTE);
    expect(await queue.armedAt()).toBe(T0 + HOUR);
    expect([(await server.job(now)).state, (await server.job(delayed)).state]).toEqual(['available', 'available']);
    await queue.startCounting();
    await queue.passTo(T0 + HOUR - 1);
    expect((await queue.counted()).written).toBe(0);
    await queue.jumpTo(T0 + HOUR);
    for (const id of [now, delayed]) expect(await server.jobIn(id, 'completed')).toMatchObject({ attempt: 1 });
  });

  it('arm no alarm where there is nothing to push', async () => {
    const queue = new TestQueue('idle');
    await server.jobIn(await server.add('plain.order', [{}], { queue: 'idle' }), 'completed');
    await begin('1h');
    await queue.passTo(T0 + MINUTE);
    expect(await queue.armedAt()).toBeGreaterThan(T0 + HOUR);
  });

  it('that had no room before are pushed at the end, though the jobs before them ended during it', async () => {
    const queue = new TestQueue('full');
    await server.ok(201, 'POST', '/ojs/v1/queues', { name: 'full', config: { concurrency: 1 } });
    const gate = new Gate('WORK');
    const first = await server.add('work.do', gate.args, { queue: 'full' });
    await gate.waiting(1);
    const second = await server.add('plain.order', [{}], { queue: 'full' });
    await begin('1h');
    await queue.passTo(T0 + SECOND);
    await gate.open();
    await server.jobIn(first, 'completed');
    expect(await server.job(second)).toMatchObject({ state: 'available', attempt: 0 });
    await queue.passTo(T0 + HOUR);
    expect(await server.jobIn(second, 'completed')).toMatchObject({ attempt: 1 });
  });

  it('are pushed at once when it is ended early, and where it had no end', async () => {
    await newQueue('pushed');
    await begin();
    const id = await server.add('plain.order', [{}], { queue: 'pushed' });
    await new TestQueue('pushed').passTo(T0 + MINUTE);
    expect(await new TestQueue('pushed').armedAt()).toBeNull();
    await end();
    await until(async () => (await server.job(id)).state === 'completed', 'the push');
  });
});

describe('schedules', () => {
  it('fire nothing, and what they missed at the end as their policy says', async () => {
    const queue = new TestQueue('crons');
    await create('crons', { overlap_policy: 'allow' });
    await queue.jumpTo(T0 + MINUTE);
    await begin('10m');
    await queue.passTo(T0 + 10 * MINUTE);
    expect(await ticksOf('crons')).toEqual([T0 + MINUTE]);
    expect(await queue.armedAt()).toBe(T0 + 11 * MINUTE);
    await queue.jumpTo(T0 + 11 * MINUTE);
    const ticks = await ticksOf('crons');
    expect(ticks).toHaveLength(2);
    await queue.jumpTo(T0 + 12 * MINUTE);
    expect(await ticksOf('crons')).toEqual([...ticks, T0 + 12 * MINUTE]);
  });

  it('whose fire waits for a job fire when the job ended during it', async () => {
    const queue = new TestQueue('crons');
    await create('crons', { overlap_policy: 'enqueue', limit: 2 });
    await queue.jumpTo(T0 + MINUTE);
    const running = await server.takeOne('crons');
    await queue.jumpTo(T0 + 2 * MINUTE);
    await begin('10m');
    await server.ok(200, 'POST', '/ojs/v1/workers/ack', { job_id: running.id });
    expect(await ticksOf('crons')).toEqual([T0 + MINUTE]);
    await queue.passTo(T0 + 12 * MINUTE);
    expect(await ticksOf('crons')).toEqual([T0 + MINUTE, T0 + 2 * MINUTE]);
  });
});
