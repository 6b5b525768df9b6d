/** Fires that wait, for a job to end or for what other queues say: they count, and go on, whatever becomes of them. */

import { describe, expect, it, vi } from 'vitest';
import { clock, DAY, iso, MINUTE, T0, until } from '../../../support/clock';
import { failOnce } from '../../../support/faults';
import { TestQueue } from '../../../support/queue';
import { server } from '../../../support/server';
import { create, read, ticksOf } from './entries';

server.emptyBeforeEach();
clock.startAtT0();

const minute = (n: number) => T0 + n * MINUTE;

/** Waits until the other queues have been asked. */
function settled(): Promise<boolean> {
  return until(
    () => new TestQueue('a').inside(({ engine: { q } }) => q.store.crons.across().length === 0),
    'the other queues to be asked',
  );
}

describe('a limit', () => {
  it('does not count a fire that waited and then enqueued nothing', async () => {
    const unique = { keys: ['type', 'queue'], states: ['completed'], period: '2m' };
    await create('a', { overlap_policy: 'enqueue', limit: 2, options: { unique } });
    await new TestQueue('a').jumpTo(minute(1));
    await new TestQueue('a').jumpTo(minute(2));
    expect(await read('a')).toMatchObject({ fire_count: 1, waiting: 1, status: 'completed' });
    await server.complete('a');
    expect(await read('a')).toMatchObject({
      fire_count: 1,
      skipped_count: 1,
      status: 'active',
      next_run_at: iso(minute(3)),
    });
    await new TestQueue('a').jumpTo(minute(3));
    expect(await read('a')).toMatchObject({ fire_count: 2, status: 'completed' });
    expect(await ticksOf('a')).toEqual([minute(1), minute(3)]);
  });

  it('does not count a fire that another queue had a job in the way of', async () => {
    const options = { unique: { keys: ['type'] } };
    const { job } = await server.ok(201, 'POST', '/ojs/v1/jobs', {
      type: 'test.cron',
      args: [],
      options: { queue: 'b', ...options },
    });
    await create('a', { limit: 1, options });
    await new TestQueue('a').jumpTo(minute(1));
    await settled();
    expect(await read('a')).toMatchObject({ fire_count: 0, skipped_count: 1, next_run_at: iso(minute(2)) });
    await server.ok(200, 'DELETE', `/ojs/v1/jobs/${job?.id}`);
    await new TestQueue('a').jumpTo(minute(2));
    await settled();
    expect(await read('a')).toMatchObject({ fire_count: 1, status: 'completed' });
  });
});

describe('a fire that waits', () => {
  it('is tried again a minute after it failed, though nothing else happens in the queue', async () => {
    vi.spyOn(console, 'error').mockImplementation(() => undefined);
    await create('a', { overlap_policy: 'enqueue', limit: 2 });
    await new TestQueue('a').jumpTo(minute(1));
    await new TestQueue('a').jumpTo(minute(2));
    const job = await server.takeOne('a');
    await new TestQueue('a').inside(({ sql }) => failOnce(sql, /INTO cron_runs/));
    await server.ack(job.id);
    expect(await ticksOf('a')).toEqual([minute(1)]);
    expect(await new TestQueue('a').armedAt()).toBe(minute(3));
    await new TestQueue('a').jumpTo(minute(3));
    expect(await ticksOf('a')).toEqual([minute(1), minute(2)]);
    // Nothing is due before the retention of the first job ends.
    expect(await new TestQueue('a').armedAt()).toBeGreaterThan(minute(3) + DAY);
    vi.restoreAllMocks();
  });
});

describe('a fire that cancels the one before', () => {
  it('cancels also the job of one that died before it could say that it had enqueued it', async () => {
    await create('a', { overlap_policy: 'cancel_previous', options: { unique: { keys: ['type', 'args'] } } });
    await new TestQueue('a').jumpTo(minute(1));
    await settled();
    const [job] = await server.jobs('a');
    await new TestQueue('a').inside(({ engine: { q }, sql }) => {
      const run = JSON.parse(sql.exec<{ data: string }>("SELECT data FROM cron_runs WHERE name = 'a'").one().data);
      delete run.last_job;
      Object.assign(run, { runs: 0, fires: 0, history: [], across: [{ id: job?.id, tick: minute(1), at: minute(1) }] });
      q.store.crons.writeRun('a', run);
    });
    await new TestQueue('a').evict();
    await new TestQueue('a').armedAt();
    await new TestQueue('a').jumpTo(minute(2));
    await settled();
    expect((await server.jobs('a')).map(({ state }) => state)).toEqual(['cancelled', 'available']);
  });
});
