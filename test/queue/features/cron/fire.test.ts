/** Entries that fire: at their time, once for each, whatever happens to the object in between. */

import { describe, expect, it, vi } from 'vitest';
import { clock, HOUR, iso, MINUTE, SECOND, T0 } from '../../../support/clock';
import { failOnce } from '../../../support/faults';
import { TestQueue } from '../../../support/queue';
import { server } from '../../../support/server';
import { create, eventsOf, read, ticksOf } from './entries';

server.emptyBeforeEach();
clock.startAtT0();

describe('a new entry', () => {
  it('arms the alarm for its first fire and enqueues nothing before', async () => {
    const cron = await create('a');
    expect(cron).toMatchObject({
      enabled: true,
      status: 'active',
      next_run_at: iso(T0 + MINUTE),
      last_run_at: null,
      run_count: 0,
    });
    expect(await new TestQueue('a').armedAt()).toBe(T0 + MINUTE);
    expect(await server.jobs('a')).toEqual([]);
  });

  it('fires when its time comes, and says so in the job, in the entry and in an event', async () => {
    await create('a');
    await new TestQueue('a').jumpTo(T0 + MINUTE);
    const [job] = await server.jobs('a');
    expect(job).toMatchObject({
      type: 'test.cron',
      state: 'available',
      meta: { cron_name: 'a', cron_triggered_at: iso(T0 + MINUTE), cron_scheduled_at: iso(T0 + MINUTE) },
    });
    expect(await read('a')).toMatchObject({
      run_count: 1,
      last_run_at: iso(T0 + MINUTE),
      next_run_at: iso(T0 + 2 * MINUTE),
      last_job_id: job?.id,
    });
    expect(await eventsOf('a', 'cron.triggered')).toEqual([
      expect.objectContaining({ cron_name: 'a', job_id: job?.id, run_count: 1, scheduled_time: iso(T0 + MINUTE) }),
    ]);
    expect(await new TestQueue('a').armedAt()).toBe(T0 + 2 * MINUTE);
  });

  it('fires every minute for hours', async () => {
    await create('a', { overlap_policy: 'allow' });
    for (let minute = 1; minute <= 120; minute++) await new TestQueue('a').jumpTo(T0 + minute * MINUTE);
    expect(await ticksOf('a')).toEqual(Array.from({ length: 120 }, (_, index) => T0 + (index + 1) * MINUTE));
  });
});

describe('time is a comparison', () => {
  it('a fetch after the time finds the job, though no alarm has rung', async () => {
    await create('a');
    clock.set(T0 + MINUTE + 5);
    expect((await server.takeOne('a')).meta).toMatchObject({ cron_scheduled_at: iso(T0 + MINUTE) });
  });

  it('a read of the entry fires it as well', async () => {
    await create('a');
    clock.set(T0 + MINUTE);
    expect(await read('a')).toMatchObject({ run_count: 1, next_run_at: iso(T0 + 2 * MINUTE) });
  });

  it('an alarm that rings twice, early or after a read fires nothing twice', async () => {
    await create('a', { overlap_policy: 'allow' });
    await new TestQueue('a').alarm();
    expect(await server.jobs('a')).toEqual([]);
    clock.set(T0 + MINUTE);
    await read('a');
    await new TestQueue('a').alarm();
    await new TestQueue('a').alarm();
    expect(await ticksOf('a')).toEqual([T0 + MINUTE]);
  });

  it('an object that is evicted before and after each fires each time once', async () => {
    await create('a', { overlap_policy: 'allow' });
    for (let minute = 1; minute <= 5; minute++) {
      await new TestQueue('a').evict();
      clock.set(T0 + minute * MINUTE);
      await new TestQueue('a').alarm();
      if (minute % 2 === 0) {
        await new TestQueue('a').evict();
        await new TestQueue('a').alarm();
      }
    }
    expect(await ticksOf('a')).toEqual([1, 2, 3, 4, 5].map((minute) => T0 + minute * MINUTE));
  });

  it('an object that is woken by anything at all has its alarm set for the next fire', async () => {
    await create('a');
    await new TestQueue('a').inside(({ sql }) => sql.exec('SELECT 1'));
    await new TestQueue('a').evict();
    expect(await new TestQueue('a').armedAt()).toBe(T0 + MINUTE);
  });
});

describe('what fails', () => {
  it('leaves neither a job nor a fire behind, and is made up for', async () => {
    vi.spyOn(console, 'error').mockImplementation(() => undefined);
    // A job with a priority has a row of its own, written at once.
    await create('a', { overlap_policy: 'allow', options: { queue: 'a', priority: 1 } });
    for (const pattern of [/INSERT INTO jobs/, /INTO cron_runs/]) {
      await new TestQueue('a').inside(({ sql }) => failOnce(sql, pattern));
      clock.set(T0 + MINUTE);
      await new TestQueue('a').alarm();
      expect(await server.jobs('a')).toEqual([]);
      expect(await read('a')).toMatchObject({ run_count: 0 });
      await new TestQueue('a').evict();
    }
    await new TestQueue('a').alarm();
    expect(await ticksOf('a')).toEqual([T0 + MINUTE]);
    vi.restoreAllMocks();
  });

  it('is seen to again at once when an operator has triggered the entry', async () => {
    vi.spyOn(console, 'error').mockImplementation(() => undefined);
    await create('a', { overlap_policy: 'allow', options: { queue: 'a', priority: 1 } });
    const queue = new TestQueue('a');
    await queue.inside(({ sql }) => failOnce(sql, /INTO cron_runs/));
    clock.set(T0 + MINUTE);
    await queue.alarm();
    expect(await queue.armedAt()).toBeGreaterThan(T0 + MINUTE + 10 * SECOND);
    await server.ok(201, 'POST', '/ojs/v1/cron/a/trigger');
    expect(await queue.armedAt()).toBeLessThan(T0 + MINUTE + SECOND);
    vi.restoreAllMocks();
  });

  it('does not undo what the same transaction counted before it', async () => {
    const complaints = vi.spyOn(console, 'error').mockImplementation(() => undefined);
    await create('a', { overlap_policy: 'enqueue' });
    const queue = new TestQueue('a');
    for (const minutes of [1, 2]) {
      clock.set(T0 + minutes * MINUTE);
      await queue.alarm();
    }
    expect(await ticksOf('a')).toEqual([T0 + MINUTE]);
    const rate_limit = { key: 'k', rate: { limit: 1, period: 'PT1H' } };
    const add = () => server.add('test.limited', [], { queue: 'a', priority: 9, rate_limit });
    const first = await add();
    // The fire that waits is looked into last in every transaction, after the claim.
    await queue.inside(({ sql }) => failOnce(sql, /FROM crons WHERE name/));
    expect(await server.takeIds('a', { count: 1 })).toEqual([first]);
    expect(complaints).toHaveBeenCalledWith(expect.stringContaining('cron a'), expect.anything());
    const second = await add();
    expect(await server.takeIds('a', { count: 9 })).not.toContain(second);
    vi.restoreAllMocks();
  });

  it('holds up no other entry, and nothing else', async () => {
    const complaints = vi.spyOn(console, 'error').mockImplementation(() => undefined);
    await create('a');
    await create('b', { options: { queue: 'a' } });
    await new TestQueue('a').inside(({ sql }) =>
      sql.exec("UPDATE crons SET data = '{broken' WHERE name = 'a'").toArray(),
    );
    clock.set(T0 + MINUTE);
    expect((await server.takeOne('a')).meta).toMatchObject({ cron_name: 'b' });
    await new TestQueue('a').alarm();
    expect(await new TestQueue('a').armedAt()).toBe(T0 + 2 * MINUTE);
    expect(complaints).toHaveBeenCalledTimes(1);
    vi.restoreAllMocks();
  });
});

describe('a paused queue', () => {
  it('takes the jobs of its entries, and gives none out', async () => {
    await create('a');
    await server.ok(200, 'POST', '/ojs/v1/queues/a/pause');
    await new TestQueue('a').jumpTo(T0 + MINUTE);
    expect((await server.jobs('a')).filter(({ state }) => state === 'available')).toHaveLength(1);
    const jobs = await server.take('a');
    expect(jobs).toEqual([]);
  });
});

describe('many entries at once', () => {
  it('all fire, over as many turns as it takes', async () => {
    const entries = Array.from({ length: 250 }, (_, index) => ({
      name: `m-${index}`,
      expression: '@hourly',
      type: 'test.cron',
      options: { queue: 'many' },
    }));
    await server.ok(200, 'PUT', '/ojs/v1/cron-groups/g', { entries });
    clock.set(T0 + HOUR);
    for (let turns = 0; turns < 3; turns++) {
      await new TestQueue('many').alarm();
      clock.set(T0 + HOUR + turns * SECOND);
    }
    expect(await server.ok(200, 'GET', '/ojs/v1/queues/many/stats')).toMatchObject({ available: 250 });
    expect(await new TestQueue('many').armedAt()).toBe(T0 + 2 * HOUR);
  });
});
