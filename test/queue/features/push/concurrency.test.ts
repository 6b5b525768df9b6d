import { runDurableObjectAlarm, runInDurableObject } from 'cloudflare:test';
import { env } from 'cloudflare:workers';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { Gate, runsOf } from '../../../support/handlers';
import { counts, enqueue, enqueueAll, type Json, job, jobIn, okApi, until } from '../../../support/http';
import { rowsWhile } from '../../../support/rows';

const configure = (queue: string, config: Json) => okApi('PUT', `/ojs/v1/queues/${queue}/config`, config);
const stub = (queue: string) => env.QUEUES.getByName(queue);
const many = (count: number, type: string, queue: string, args: unknown[]) =>
  enqueueAll(Array.from({ length: count }, () => ({ type, args, options: { queue } })));

/** From here on no alarm fires by itself: the object's clock runs an hour ahead of the one that fires alarms. */
const stopAlarms = () => vi.setSystemTime(Date.now() + 3_600_000);
afterEach(() => {
  vi.useRealTimers();
});

/** Nothing is armed soon: the object can wait for what runs. */
const untilQuiet = (queue: string) =>
  until(async () => {
    const at = await runInDurableObject(stub(queue), (_, state) => state.storage.getAlarm());
    return at !== null && at > Date.now() + 5_000;
  }, 'the alarm to wait for the end of a lease');

describe('the concurrency of a queue', () => {
  it('bounds what runs at once, and a larger one starts more at once', async () => {
    const gate = new Gate('PLAIN');
    await configure('bounded', { concurrency: 3 });
    const ids = await many(9, 'wide.gate', 'bounded', gate.args);
    await gate.waiting(3);
    expect(await counts('bounded')).toMatchObject({ active: 3, available: 6 });
    await configure('bounded', { concurrency: 5 });
    await gate.waiting(5);
    expect(await counts('bounded')).toMatchObject({ active: 5, available: 4 });
    await gate.open();
    for (const id of ids) await jobIn(id, 'completed');
    expect((await gate.load()).most).toBe(5);
  });

  it('is 10 unless it is set, over all targets together', async () => {
    const plain = new Gate('PLAIN');
    const work = new Gate('WORK');
    await many(8, 'wide.gate', 'default-bound', plain.args);
    await many(8, 'work.do', 'default-bound', work.args);
    await until(async () => (await counts('default-bound')).active === 10, 'ten jobs to run');
    await plain.open();
    await work.open();
    await until(async () => (await counts('default-bound')).completed === 16, 'all jobs to complete');
    expect((await plain.load()).most + (await work.load()).most).toBeGreaterThanOrEqual(10);
  });

  it('lets the object sleep while all slots are taken', async () => {
    const gate = new Gate('PLAIN');
    await configure('saturated', { concurrency: 1 });
    const ids = await many(3, 'wide.gate', 'saturated', gate.args);
    await gate.waiting(1);
    await untilQuiet('saturated');
    await gate.open();
    for (const id of ids) await jobIn(id, 'completed');
  });
});

describe('the concurrency of a target and of a type', () => {
  it('`max_concurrency` bounds what runs in one target', async () => {
    const gate = new Gate('PLAIN');
    const ids = await many(6, 'patient.gate', 'target-bound', gate.args);
    await gate.waiting(2);
    expect(await counts('target-bound')).toMatchObject({ active: 2, available: 4 });
    await gate.open();
    for (const id of ids) await jobIn(id, 'completed');
    expect((await gate.load()).most).toBe(2);
  });

  it('an announced one bounds its type and holds up no other', async () => {
    const gate = new Gate('WORK');
    const ids = await many(4, 'work.narrow', 'type-bound', gate.args);
    await gate.waiting(1);
    await jobIn(await enqueue('work.do', [{}], { queue: 'type-bound' }), 'completed');
    expect(await counts('type-bound')).toMatchObject({ active: 1, available: 3 });
    await untilQuiet('type-bound');
    await gate.open();
    for (const id of ids) await jobIn(id, 'completed');
    expect((await gate.load()).most).toBe(1);
  });
});

describe('a crowd of one type', () => {
  it('keeps no other type from its handler, and is not read again for each job that ends', {
    timeout: 60_000,
  }, async () => {
    const gate = new Gate('WORK');
    const queue = 'crowded';
    for (let n = 0; n < 5; n++) await many(1000, 'work.narrow', queue, gate.args);
    await many(100, 'work.narrow', queue, gate.args);
    await gate.waiting(1);
    const behind = await enqueue('work.do', [{}], { queue });
    const urgent = await enqueue('work.do', [{}], { queue, priority: 5 });
    await jobIn(behind, 'completed');
    await jobIn(urgent, 'completed');
    const { read } = await rowsWhile(stub(queue), async () => {
      for (let n = 0; n < 5; n++) await jobIn(await enqueue('work.do', [{}], { queue }), 'completed');
    });
    expect(read / 5).toBeLessThan(150);
    expect(await counts(queue)).toMatchObject({ active: 1, available: 5099 });
    await okApi('DELETE', `/ojs/v1/queues/${queue}`, { strategy: 'discard' });
    await gate.open();
  });

  it('runs on in its order when one of it has ended', async () => {
    const gate = new Gate('WORK');
    const queue = 'crowded-order';
    const ids = await many(6, 'work.narrow', queue, gate.args);
    await gate.waiting(1);
    await jobIn(await enqueue('work.do', [{}], { queue }), 'completed');
    // It comes first among those that wait, and one that failed comes back at its time.
    const urgent = await enqueue('work.narrow', gate.args, { queue, priority: 9 });
    const later = await enqueue('work.narrow', gate.args, { queue, delay_until: '+PT0.2S' });
    await gate.open();
    for (const id of [...ids, urgent, later]) await jobIn(id, 'completed');
    const started = async (id: string) => Date.parse((await job(id)).started_at as string);
    const times = await Promise.all([ids[0] as string, urgent, ...ids.slice(1)].map(started));
    expect(times).toEqual([...times].sort((a, b) => a - b));
    expect((await gate.load()).most).toBe(1);
  });
});

describe('a slot', () => {
  it('that a cancelled job leaves is taken by the next one', async () => {
    const [first, second] = [new Gate('PLAIN'), new Gate('PLAIN')];
    await configure('cancelled-slot', { concurrency: 1 });
    const running = await enqueue('wide.gate', first.args, { queue: 'cancelled-slot' });
    const waiting = await enqueue('wide.gate', second.args, { queue: 'cancelled-slot' });
    await first.waiting(1);
    await okApi('DELETE', `/ojs/v1/jobs/${running}`);
    await second.waiting(1);
    await second.open();
    await jobIn(waiting, 'completed');
    await first.open();
    expect(await job(running)).toMatchObject({ state: 'cancelled' });
  });
});

describe('a paused queue', () => {
  it('pushes nothing, and starts at once when it is resumed', async () => {
    await okApi('POST', '/ojs/v1/queues/paused-push/pause');
    const id = await enqueue('plain.order', [{}], { queue: 'paused-push' });
    await runDurableObjectAlarm(stub('paused-push'));
    expect(await job(id)).toMatchObject({ state: 'available', attempt: 0 });
    expect(await runsOf('PLAIN', id)).toEqual([]);
    stopAlarms();
    await okApi('POST', '/ojs/v1/queues/paused-push/resume');
    await jobIn(id, 'completed');
  });
});

describe('an event', () => {
  it('that enqueues starts delivery at once, without any alarm', async () => {
    stopAlarms();
    await jobIn(await enqueue('plain.order', [{}], { queue: 'at-once' }), 'completed');
    await jobIn(await enqueue('work.do', [{}], { queue: 'at-once' }), 'completed');
  });

  it('makes 30 calls to handlers, and the alarm continues in events of its own', async () => {
    const gate = new Gate('PLAIN');
    stopAlarms();
    await configure('many-calls', { concurrency: 200 });
    const ids = await many(100, 'wide.gate', 'many-calls', gate.args);
    // One of the 30 calls asked the Worker what it takes.
    for (const running of [29, 59, 89, 100]) {
      await gate.waiting(running);
      expect(await counts('many-calls')).toMatchObject({ active: running, available: 100 - running });
      await runDurableObjectAlarm(stub('many-calls'));
    }
    await gate.open();
    for (const id of ids) await jobIn(id, 'completed');
  });

  it('counts the calls that follow from its answers', async () => {
    stopAlarms();
    await configure('chained-calls', { concurrency: 5 });
    await many(100, 'wide.order', 'chained-calls', [{}]);
    for (const completed of [29, 59, 89, 100]) {
      await until(
        async () => (await counts('chained-calls')).completed === completed,
        `${completed} jobs to be completed`,
      );
      expect(await counts('chained-calls')).toMatchObject({ active: 0, available: 100 - completed });
      await runDurableObjectAlarm(stub('chained-calls'));
    }
  });

  it('continues by itself while alarms fire', async () => {
    await configure('self-driven', { concurrency: 50 });
    await many(200, 'wide.order', 'self-driven', [{}]);
    await until(async () => (await counts('self-driven')).completed === 200, 'all jobs to be completed');
  });
});

describe('workers that pull beside pushes', () => {
  it('neither take what is pushed nor lose what they hold', async () => {
    const gate = new Gate('PLAIN');
    await configure('both', { concurrency: 1 });
    const pushed = await enqueue('wide.gate', gate.args, { queue: 'both' });
    await gate.waiting(1);
    const pulled = await enqueue('wide.gate', gate.args, { queue: 'both' });
    const fetched = (await okApi('POST', '/ojs/v1/workers/fetch', { queues: ['both'], count: 9, worker_id: 'w' })).jobs;
    expect(fetched).toMatchObject([{ id: pulled, worker_id: 'w', attempt: 1 }]);
    await gate.open();
    await jobIn(pushed, 'completed');
    expect(await job(pulled)).toMatchObject({ state: 'active', worker_id: 'w', attempt: 1 });
    await okApi('POST', '/ojs/v1/workers/ack', { job_id: pulled, worker_id: 'w' });
    expect(await runsOf('PLAIN', pulled)).toEqual([]);
  });

  it('share a backlog without running any job twice', async () => {
    const ids = await many(40, 'wide.order', 'shared-backlog', [{}]);
    const held: string[] = [];
    for (let n = 0; n < 5; n++) {
      const { jobs } = await okApi('POST', '/ojs/v1/workers/fetch', { queues: ['shared-backlog'], count: 5 });
      for (const { id } of jobs as { id: string }[]) held.push(id);
    }
    for (const id of held) await okApi('POST', '/ojs/v1/workers/ack', { job_id: id, attempt: 1 });
    for (const id of ids) expect(await jobIn(id, 'completed')).toMatchObject({ attempt: 1 });
    for (const id of ids) expect(await runsOf('PLAIN', id)).toHaveLength(held.includes(id) ? 0 : 1);
  });
});
