import { describe, expect, it, vi } from 'vitest';
import { clock, until } from '../../../support/clock';
import { failOnce } from '../../../support/faults';
import { Gate, runsOf } from '../../../support/handlers';
import { TestQueue } from '../../../support/queue';
import { rowsWhile } from '../../../support/rows';
import { server } from '../../../support/server';

const many = (count: number, type: string, queue: string, args: unknown[]) =>
  server.addAll(Array.from({ length: count }, () => ({ type, args, options: { queue } })));

/** From here on no alarm fires by itself: the object's clock runs an hour ahead of the one that fires alarms. */
const stopAlarms = () => clock.advance(3_600_000);
clock.restoreAfterEach();

/** Nothing is armed soon: the object can wait for what runs. */
const untilQuiet = (queue: string) =>
  until(async () => {
    const at = await new TestQueue(queue).armedAt();
    return at !== null && at > Date.now() + 5_000;
  }, 'the alarm to wait for the end of a lease');

describe('the concurrency of a queue', () => {
  it('bounds what runs at once, and a larger one starts more at once', async () => {
    const gate = new Gate('PLAIN');
    await server.configure('bounded', { concurrency: 3 });
    const ids = await many(9, 'wide.gate', 'bounded', gate.args);
    await gate.waiting(3);
    expect(await server.counts('bounded')).toMatchObject({ active: 3, available: 6 });
    await server.configure('bounded', { concurrency: 5 });
    await gate.waiting(5);
    expect(await server.counts('bounded')).toMatchObject({ active: 5, available: 4 });
    await gate.open();
    for (const id of ids) await server.jobIn(id, 'completed');
    expect((await gate.load()).most).toBe(5);
  });

  it('holds after a defect: what runs still takes its slots, and its answers still count', async () => {
    const gate = new Gate('PLAIN');
    await server.configure('defect', { concurrency: 3 });
    const queue = new TestQueue('defect');
    const pulled = await server.add('nobody.pushes', [], { queue: 'defect' });
    await queue.claim();
    const ids = await many(9, 'wide.gate', 'defect', gate.args);
    await gate.waiting(3);
    const failed = await queue.inside(async ({ instance, sql }) => {
      failOnce(sql, /INTO archive/);
      return (await Promise.allSettled([instance.settle({ kind: 'completed', job_id: pulled })]))[0]?.status;
    });
    expect(failed).toBe('rejected');
    ids.push(...(await many(3, 'wide.gate', 'defect', gate.args)));
    await queue.alarm();
    expect(await queue.inside(({ q }) => q.store.leases.active.size)).toBe(4);
    expect(await gate.load()).toEqual({ now: 3, most: 3 });
    await gate.open();
    for (const id of ids) expect(await server.jobIn(id, 'completed')).toMatchObject({ attempt: 1 });
    expect((await gate.load()).most).toBe(3);
  });

  it('has its slot in use, and not lost, when what follows from the claim fails', async () => {
    const gate = new Gate('PLAIN');
    const queue = new TestQueue('follows');
    await server.configure('follows', { concurrency: 1 });
    const fails = vi.spyOn(console, 'error').mockImplementation(() => undefined);
    await queue.inside(({ engine, q }) => {
      const { features } = engine as unknown as { features: { start?(why: string): void }[] };
      const [feature] = features.filter(({ start }) => start) as [{ start(why: string): void }];
      const { start } = feature;
      feature.start = (why) => {
        // The commit of the claim, of all that follow one another.
        if (q.store.leases.active.size === 0) return start.call(feature, why);
        feature.start = start;
        throw new Error('storage failed at what follows');
      };
    });
    const ids = await many(2, 'wide.gate', 'follows', gate.args);
    await gate.waiting(1);
    expect(fails.mock.calls).toMatchObject([['tocsin: not all due work could be done', expect.any(Error)]]);
    await gate.open();
    for (const id of ids) expect(await server.jobIn(id, 'completed')).toMatchObject({ attempt: 1 });
  });

  it('counts no job whose call could not be made: its lease ends that attempt, and the next one comes at once', async () => {
    const gate = new Gate('PLAIN');
    const queue = new TestQueue('unmade');
    await server.configure('unmade', { concurrency: 1 });
    const complaints = vi.spyOn(console, 'error').mockImplementation(() => undefined);
    await queue.inside(({ q: { store } }) => {
      const { read } = store.progress;
      store.progress.read = () => {
        store.progress.read = read;
        throw new Error('storage failed at what a runner is shown');
      };
    });
    const ids = await many(2, 'wide.gate', 'unmade', gate.args);
    await gate.waiting(1);
    expect(complaints.mock.lastCall).toMatchObject(['tocsin: a call could not be made', expect.any(Error)]);
    expect(await server.counts('unmade')).toMatchObject({ active: 2 });
    await gate.open();
    await until(async () => (await server.counts('unmade')).completed === 1, 'the other job to be done');
    clock.advance(((await queue.armedAt()) as number) - Date.now());
    await queue.alarm();
    for (const id of ids) await server.jobIn(id, 'completed');
    const lost = (await Promise.all(ids.map((id) => server.job(id)))).filter(({ attempt }) => attempt === 2);
    expect(lost).toMatchObject([{ errors: [{ code: 'visibility_timeout', backoff_ms: 0 }] }]);
  });

  it('is 10 unless it is set, over all targets together', async () => {
    const plain = new Gate('PLAIN');
    const work = new Gate('WORK');
    await many(8, 'wide.gate', 'default-bound', plain.args);
    await many(8, 'work.do', 'default-bound', work.args);
    await until(async () => (await server.counts('default-bound')).active === 10, 'ten jobs to run');
    await plain.open();
    await work.open();
    await until(async () => (await server.counts('default-bound')).completed === 16, 'all jobs to complete');
    expect((await plain.load()).most + (await work.load()).most).toBeGreaterThanOrEqual(10);
  });

  it('lets the object sleep while all slots are taken', async () => {
    const gate = new Gate('PLAIN');
    await server.configure('saturated', { concurrency: 1 });
    const ids = await many(3, 'wide.gate', 'saturated', gate.args);
    await gate.waiting(1);
    await untilQuiet('saturated');
    await gate.open();
    for (const id of ids) await server.jobIn(id, 'completed');
  });
});

describe('the concurrency of a target and of a type', () => {
  it('`max_concurrency` bounds what runs in one target', async () => {
    const gate = new Gate('PLAIN');
    const ids = await many(6, 'patient.gate', 'target-bound', gate.args);
    await gate.waiting(2);
    expect(await server.counts('target-bound')).toMatchObject({ active: 2, available: 4 });
    await gate.open();
    for (const id of ids) await server.jobIn(id, 'completed');
    expect((await gate.load()).most).toBe(2);
  });

  it('an announced one bounds its type and holds up no other', async () => {
    const gate = new Gate('WORK');
    const ids = await many(4, 'work.narrow', 'type-bound', gate.args);
    await gate.waiting(1);
    await server.jobIn(await server.add('work.do', [{}], { queue: 'type-bound' }), 'completed');
    expect(await server.counts('type-bound')).toMatchObject({ active: 1, available: 3 });
    await untilQuiet('type-bound');
    await gate.open();
    for (const id of ids) await server.jobIn(id, 'completed');
    expect((await gate.load()).most).toBe(1);
  });

  it('gives a job that comes back to one call, also when it is the last of its type that waits', async () => {
    const gate = new Gate('WORK');
    const queue = 'pair-bound';
    // On its last attempt it travels alone.
    const retry = { max_attempts: 2, backoff_strategy: 'constant', initial_interval: 0, jitter: false };
    const args = [{ do: 'gate-throw', gate: gate.name, until: 1 }];
    const pair = { type: 'work.pair', args, options: { queue, retry } };
    const ids = await server.addAll([pair, { ...pair, args: gate.args }]);
    await gate.waiting(2);
    // It has waited for the concurrency of its type, and waits no more.
    const third = await server.add('work.pair', gate.args, { queue });
    await server.setMode(queue, 'pause');
    await server.ok(200, 'DELETE', `/ojs/v1/jobs/${third}`);
    await gate.open();
    await server.jobIn(ids[1] as string, 'completed');
    await server.jobIn(ids[0] as string, 'available');
    await server.ok(200, 'POST', `/ojs/v1/queues/${queue}/resume`);
    await server.jobIn(ids[0] as string, 'completed');
    expect(await runsOf('WORK', ids[0] as string)).toMatchObject([{ attempt: 1 }, { attempt: 2 }]);
  });

  it('looks at a limited job of its type once, also when it is the last that waits', async () => {
    const [held, free] = [new Gate('WORK'), new Gate('WORK')];
    const queue = 'pair-limited';
    const rate_limit = { key: 'pair-limited', concurrency: 1 };
    const first = await server.add('work.pair', held.args, { queue, rate_limit });
    const second = await server.add('work.pair', free.args, { queue });
    await held.waiting(1);
    await free.waiting(1);
    const third = await server.add('work.pair', free.args, { queue });
    await server.setMode(queue, 'pause');
    await server.ok(200, 'DELETE', `/ojs/v1/jobs/${third}`);
    await free.open();
    await server.jobIn(second, 'completed');
    const limited = await server.add('work.pair', held.args, { queue, rate_limit, delay_until: '+PT0.2S' });
    await server.jobIn(limited, 'available');
    // From here on the counts are in memory.
    await server.counts(queue);
    await server.ok(200, 'POST', `/ojs/v1/queues/${queue}/resume`);
    const [kept, counted] = await new TestQueue(queue).inside(({ q }) => {
      const read = () => structuredClone(q.store.tally.read(q.store.priorities, Date.now()).standing);
      const before = read();
      q.store.tally.forget();
      return [before, read()];
    });
    expect(kept).toEqual(counted);
    await held.open();
    for (const id of [first, limited]) await server.jobIn(id, 'completed');
  });
});

describe('a crowd of one type', () => {
  it('keeps no other type from its handler, and is not read again for each job that ends', async () => {
    const gate = new Gate('WORK');
    const queue = 'crowded';
    for (let n = 0; n < 5; n++) await many(1000, 'work.narrow', queue, gate.args);
    await many(100, 'work.narrow', queue, gate.args);
    await gate.waiting(1);
    const behind = await server.add('work.do', [{}], { queue });
    const urgent = await server.add('work.do', [{}], { queue, priority: 5 });
    await server.jobIn(behind, 'completed');
    await server.jobIn(urgent, 'completed');
    const { read } = await rowsWhile(new TestQueue(queue).stub, async () => {
      for (let n = 0; n < 5; n++) await server.jobIn(await server.add('work.do', [{}], { queue }), 'completed');
    });
    // Each of the deployment's two dozen targets looks at the few rows that are new.
    expect(read / 5).toBeLessThan(300);
    expect(await server.counts(queue)).toMatchObject({ active: 1, available: 5099 });
    await server.ok(202, 'DELETE', `/ojs/v1/queues/${queue}`, { strategy: 'discard' });
    await gate.open();
  });

  it('runs on in its order when one of it has ended', async () => {
    const gate = new Gate('WORK');
    const queue = 'crowded-order';
    const ids = await many(6, 'work.narrow', queue, gate.args);
    await gate.waiting(1);
    await server.jobIn(await server.add('work.do', [{}], { queue }), 'completed');
    // It comes first among those that wait, and one that failed comes back at its time.
    const urgent = await server.add('work.narrow', gate.args, { queue, priority: 9 });
    const later = await server.add('work.narrow', gate.args, { queue, delay_until: '+PT0.2S' });
    await gate.open();
    for (const id of [...ids, urgent, later]) await server.jobIn(id, 'completed');
    const started = async (id: string) => Date.parse((await server.job(id)).started_at as string);
    const times = await Promise.all([ids[0] as string, urgent, ...ids.slice(1)].map(started));
    expect(times).toEqual([...times].sort((a, b) => a - b));
    expect((await gate.load()).most).toBe(1);
  });
});

describe('a slot', () => {
  it('that a cancelled job leaves is taken by the next one', async () => {
    const [first, second] = [new Gate('PLAIN'), new Gate('PLAIN')];
    await server.configure('cancelled-slot', { concurrency: 1 });
    const running = await server.add('wide.gate', first.args, { queue: 'cancelled-slot' });
    const waiting = await server.add('wide.gate', second.args, { queue: 'cancelled-slot' });
    await first.waiting(1);
    await server.ok(200, 'DELETE', `/ojs/v1/jobs/${running}`);
    await second.waiting(1);
    await second.open();
    await server.jobIn(waiting, 'completed');
    await first.open();
    expect(await server.job(running)).toMatchObject({ state: 'cancelled' });
  });
});

describe('a paused queue', () => {
  it('pushes nothing, and starts at once when it is resumed', async () => {
    await server.setMode('paused-push', 'pause');
    const id = await server.add('plain.order', [{}], { queue: 'paused-push' });
    await new TestQueue('paused-push').alarm();
    expect(await server.job(id)).toMatchObject({ state: 'available', attempt: 0 });
    expect(await runsOf('PLAIN', id)).toEqual([]);
    stopAlarms();
    await server.ok(200, 'POST', '/ojs/v1/queues/paused-push/resume');
    await server.jobIn(id, 'completed');
  });
});

describe('an event', () => {
  it('that enqueues starts delivery at once, without any alarm', async () => {
    stopAlarms();
    await server.jobIn(await server.add('plain.order', [{}], { queue: 'at-once' }), 'completed');
    await server.jobIn(await server.add('work.do', [{}], { queue: 'at-once' }), 'completed');
  });

  it('makes 30 calls to handlers, and the alarm continues in events of its own', async () => {
    const gate = new Gate('PLAIN');
    stopAlarms();
    await server.configure('many-calls', { concurrency: 200 });
    const ids = await many(100, 'wide.gate', 'many-calls', gate.args);
    // One of the 30 calls asked the Worker what it takes.
    for (const running of [29, 59, 89, 100]) {
      await gate.waiting(running);
      expect(await server.counts('many-calls')).toMatchObject({ active: running, available: 100 - running });
      await new TestQueue('many-calls').alarm();
    }
    await gate.open();
    for (const id of ids) await server.jobIn(id, 'completed');
  });

  it('counts the calls that follow from its answers', async () => {
    stopAlarms();
    await server.configure('chained-calls', { concurrency: 5 });
    await many(100, 'wide.order', 'chained-calls', [{}]);
    for (const completed of [29, 59, 89, 100]) {
      await until(
        async () => (await server.counts('chained-calls')).completed === completed,
        `${completed} jobs to be completed`,
      );
      expect(await server.counts('chained-calls')).toMatchObject({ active: 0, available: 100 - completed });
      await new TestQueue('chained-calls').alarm();
    }
  });

  it('continues by itself while alarms fire', async () => {
    await server.configure('self-driven', { concurrency: 50 });
    await many(200, 'wide.order', 'self-driven', [{}]);
    await until(async () => (await server.counts('self-driven')).completed === 200, 'all jobs to be completed');
  });
});

describe('workers that pull beside pushes', () => {
  it('neither take what is pushed nor lose what they hold', async () => {
    const gate = new Gate('PLAIN');
    await server.configure('both', { concurrency: 1 });
    const pushed = await server.add('wide.gate', gate.args, { queue: 'both' });
    await gate.waiting(1);
    const pulled = await server.add('wide.gate', gate.args, { queue: 'both' });
    const fetched = await server.take('both', { count: 9, worker_id: 'w' });
    expect(fetched).toMatchObject([{ id: pulled, worker_id: 'w', attempt: 1 }]);
    await gate.open();
    await server.jobIn(pushed, 'completed');
    expect(await server.job(pulled)).toMatchObject({ state: 'active', worker_id: 'w', attempt: 1 });
    await server.ack(pulled, { worker_id: 'w' });
    expect(await runsOf('PLAIN', pulled)).toEqual([]);
  });

  it('share a backlog without running any job twice', async () => {
    const ids = await many(40, 'wide.order', 'shared-backlog', [{}]);
    const held: string[] = [];
    for (let n = 0; n < 5; n++) {
      const jobs = await server.take('shared-backlog', { count: 5 });
      for (const { id } of jobs as { id: string }[]) held.push(id);
    }
    for (const id of held) await server.ack(id, { attempt: 1 });
    for (const id of ids) expect(await server.jobIn(id, 'completed')).toMatchObject({ attempt: 1 });
    for (const id of ids) expect(await runsOf('PLAIN', id)).toHaveLength(held.includes(id) ? 0 : 1);
  });
});

describe('a job that waits for the concurrency of its type', () => {
  it('is found by a new object, also when the one before it was taken after a transaction had failed', async () => {
    const [first, second] = [new Gate('WORK'), new Gate('WORK')];
    const queue = new TestQueue('narrow-after-defect');
    const narrow = (args: unknown[]) => server.add('work.narrow', args, { queue: queue.name });
    const pulled = await server.add('nobody.pushes', [], { queue: queue.name });
    await queue.claim();
    const running = await narrow(first.args);
    await first.waiting(1);
    await narrow(second.args);
    const waiting = await narrow(second.args);
    const failed = await queue.inside(async ({ instance, sql }) => {
      failOnce(sql, /INTO archive/);
      return (await Promise.allSettled([instance.settle({ kind: 'completed', job_id: pulled })]))[0]?.status;
    });
    expect(failed).toBe('rejected');
    await first.open();
    await server.jobIn(running, 'completed');
    await second.waiting(1);
    await queue.die();
    expect(await server.take(queue.name, { count: 9 })).toMatchObject([{ id: waiting, attempt: 1 }]);
    await second.open();
  });
});
