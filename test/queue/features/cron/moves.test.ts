/** An entry whose jobs go to another queue from now on: it moves, and whoever dies on the way, no time fires twice and none is lost. */

import { runInDurableObject } from 'cloudflare:test';
import { env } from 'cloudflare:workers';
import { describe, expect, it, vi } from 'vitest';
import { unwrap } from '../../../../src/job/errors';
import type { DirectoryApi } from '../../../../src/rpc/directory';
import type { QueueApi } from '../../../../src/rpc/queue';
import type { CronDefinition } from '../../../../src/schedules/definition';
import { clock, iso, MINUTE, SECOND, T0, until } from '../../../support/clock';
import { failOnce } from '../../../support/faults';
import { TestQueue } from '../../../support/queue';
import { type Json, server } from '../../../support/server';
import { CRON, create, entry, read, ticksOf } from './entries';

server.emptyBeforeEach();
clock.startAtT0();

const minute = (n: number) => T0 + n * MINUTE;
const queue = (name: string) => env.QUEUES.getByName(name) as unknown as QueueApi;
const directory = () => env.DIRECTORY.getByName('directory') as unknown as DirectoryApi;

/** Creates the entry `m` in queue `from`. */
const start = () => create('m', { overlap_policy: 'allow', options: { queue: 'from' } });
const moved = (change: Json = {}) => entry('m', { overlap_policy: 'allow', options: { queue: 'to' }, ...change });

/** The definition under which the entry goes to another queue. */
async function definitionFor(target: string): Promise<CronDefinition> {
  const { definition } = unwrap(await queue('from').cron('m'));
  return { ...definition, queue: target, template: { ...definition.template, options: { queue: target } } };
}

/** Both queues see the time pass. */
async function passBoth(time: number): Promise<void> {
  await new TestQueue('from').jumpTo(time);
  await new TestQueue('to').jumpTo(time);
}

/** Times for which there is a job, in whatever queue. */
const allTicks = async () => [...(await ticksOf('from')), ...(await ticksOf('to'))].sort((a, b) => a - b);

describe('an entry that is given another queue', () => {
  it('fires there from then on, with its history, and no longer where it was', async () => {
    await start();
    await passBoth(minute(1));
    expect(await server.call('POST', CRON, moved())).toMatchObject({
      status: 200,
      body: { cron: { queue: 'to', run_count: 1 } },
    });
    for (let n = 2; n <= 4; n++) await passBoth(minute(n));
    expect(await ticksOf('from')).toEqual([minute(1)]);
    expect(await ticksOf('to')).toEqual([2, 3, 4].map(minute));
    expect(await read('m')).toMatchObject({ run_count: 4, created_at: iso(T0) });
    expect((await server.ok(200, 'GET', CRON)).count).toBe(1);
    expect(await queue('from').cronSummaries()).toEqual([]);
  });

  it('may come back, and go again', async () => {
    await start();
    for (const [index, target] of ['to', 'from', 'to', 'from'].entries()) {
      await server.ok(200, 'PATCH', `${CRON}/m`, { queue: target });
      await passBoth(minute(index + 1));
    }
    expect(await allTicks()).toEqual([1, 2, 3, 4].map(minute));
    expect(await ticksOf('to')).toEqual([1, 3].map(minute));
    await server.ok(200, 'DELETE', `${CRON}/m`);
    await passBoth(minute(6));
    expect(await allTicks()).toHaveLength(4);
  });

  it('fires what it has missed in the new queue', async () => {
    await start();
    clock.set(minute(1));
    // Noticed by nobody yet: the replacement is the first to touch the queue.
    await server.ok(200, 'POST', CRON, moved());
    await passBoth(minute(1));
    expect(await allTicks()).toEqual([minute(1)]);
  });

  it('stays where it is when the other queue would not take its jobs', async () => {
    await start();
    const refusal = await server.call(
      'POST',
      CRON,
      moved({ job_template: { type: 'x', options: { queue: 'to', retry: { backoff_coefficient: 0.1 } } } }),
    );
    expect(refusal.status).toBe(422);
    await passBoth(minute(1));
    expect(await ticksOf('from')).toEqual([minute(1)]);
    expect(await read('m')).toMatchObject({ queue: 'from' });
  });

  it('is moved once by many who move it at the same time', async () => {
    await start();
    const targets = ['to', 'from', 'to', 'from', 'to', 'to'];
    await Promise.all(
      targets.map((target) =>
        server.call('POST', CRON, entry('m', { overlap_policy: 'allow', options: { queue: target } })),
      ),
    );
    for (let n = 1; n <= 4; n++) await passBoth(minute(n));
    expect(await allTicks()).toEqual([1, 2, 3, 4].map(minute));
    expect((await server.ok(200, 'GET', CRON)).count).toBe(1);
  });
});

describe('a move that is cut off', () => {
  it('after it was noted leaves the entry where it is', async () => {
    await start();
    await directory().placeCron('m', 'to');
    await passBoth(minute(1));
    expect(await read('m')).toMatchObject({ queue: 'from', run_count: 1 });
    expect(await server.ok(200, 'POST', `${CRON}/m/pause`)).toMatchObject({ enabled: false });
    expect(await server.ok(200, 'POST', `${CRON}/m/resume`)).toMatchObject({ enabled: true });
    await server.ok(200, 'POST', CRON, moved());
    await passBoth(minute(2));
    expect(await ticksOf('to')).toEqual([minute(2)]);
    expect(await ticksOf('from')).toEqual([minute(1)]);
  });

  it('after the old queue let go: that queue hands it over by itself', async () => {
    await start();
    const { version } = await directory().placeCron('m', 'to');
    unwrap(await queue('from').handOffCron(await definitionFor('to'), version));
    await new TestQueue('from').evict();
    expect(await read('m')).toMatchObject({ queue: 'to', run_count: 0 });
    clock.set(minute(1));
    await new TestQueue('from').alarm();
    await until(async () => (await queue('to').cronSummaries()).length === 1, 'the entry to be handed over');
    await until(
      () => new TestQueue('from').inside(({ engine: { q } }) => !q.store.outbox.has('cron')),
      'the old queue to forget it',
    );
    await passBoth(minute(1));
    expect(await allTicks()).toEqual([minute(1)]);
    expect(await ticksOf('to')).toEqual([minute(1)]);
  });

  it('after the new queue took over: what it is offered again changes nothing', async () => {
    await start();
    const { version } = await directory().placeCron('m', 'to');
    const definition = await definitionFor('to');
    const left = unwrap(await queue('from').handOffCron(definition, version));
    unwrap(await queue('to').putCron({ definition, version, run: left?.run as NonNullable<typeof left>['run'] }));
    await new TestQueue('to').jumpTo(minute(1));
    await server.ok(200, 'POST', `${CRON}/m/pause`);
    await new TestQueue('from').alarm();
    await until(
      () => new TestQueue('from').inside(({ engine: { q } }) => !q.store.outbox.has('cron')),
      'the old queue to forget it',
    );
    expect(await read('m')).toMatchObject({ queue: 'to', run_count: 1, enabled: false });
    expect(await allTicks()).toEqual([minute(1)]);
  });

  it('and then deleted stays deleted, however late it is offered', async () => {
    await start();
    const { version } = await directory().placeCron('m', 'to');
    const definition = await definitionFor('to');
    const left = unwrap(await queue('from').handOffCron(definition, version));
    const late = { definition, version, run: left?.run as NonNullable<typeof left>['run'] };
    await server.ok(200, 'DELETE', `${CRON}/m`);
    expect(await queue('to').putCron(late)).toMatchObject({ ok: false, error: { code: 'conflict' } });
    await new TestQueue('from').alarm();
    await passBoth(minute(2));
    expect(await allTicks()).toEqual([]);
    expect(await server.call('GET', `${CRON}/m`)).toMatchObject({ status: 404 });
  });

  it('and then repeated ends with the later one', async () => {
    await start();
    const { version } = await directory().placeCron('m', 'to');
    const definition = await definitionFor('to');
    unwrap(await queue('from').handOffCron(definition, version));
    await server.ok(200, 'POST', CRON, moved({ description: 'second try' }));
    await new TestQueue('from').alarm();
    await passBoth(minute(1));
    expect(await allTicks()).toEqual([minute(1)]);
    expect(await read('m')).toMatchObject({ queue: 'to', description: 'second try' });
  });

  it('is finished later when the new queue cannot be reached', async () => {
    const complaints = vi.spyOn(console, 'error').mockImplementation(() => undefined);
    await start();
    await server.ok(201, 'POST', '/ojs/v1/jobs', { type: 'x', args: [], options: { queue: 'to' } });
    const { version } = await directory().placeCron('m', 'to');
    unwrap(await queue('from').handOffCron(await definitionFor('to'), version));
    await new TestQueue('to').inside(({ sql }) => failOnce(sql, /INTO crons /));
    clock.set(T0 + 10 * SECOND);
    await new TestQueue('from').alarm();
    await until(() => complaints.mock.calls.length > 0, 'the hand-over to fail');
    expect(await read('m')).toMatchObject({ queue: 'to', run_count: 0 });
    clock.set(T0 + 11 * SECOND);
    await new TestQueue('from').alarm();
    await until(async () => (await queue('to').cronSummaries()).length === 1, 'the entry to be handed over');
    vi.restoreAllMocks();
  });
});

describe('a name', () => {
  it('whose creation was cut off is free, and forgotten after a while', async () => {
    await directory().placeCron('m', 'to');
    expect(await server.call('GET', `${CRON}/m`)).toMatchObject({ status: 404 });
    expect(await directory().cronPlace('m')).not.toBeNull();
    clock.set(minute(3));
    expect(await server.call('GET', `${CRON}/m`)).toMatchObject({ status: 404 });
    expect(await directory().cronPlace('m')).toBeNull();
    await create('m');
  });

  it('of a creation that was under way for too long is refused, since it may have been given away', async () => {
    const { version } = await directory().placeCron('m', 'from');
    await start();
    const { definition } = unwrap(await queue('from').cron('m'));
    clock.set(minute(2));
    expect(await queue('from').putCron({ definition: { ...definition, description: 'late' }, version })).toMatchObject({
      ok: false,
      error: { status: 503 },
    });
  });

  it('is numbered ever higher, also after it was deleted', async () => {
    const numbers: number[] = [];
    for (let n = 0; n < 3; n++) {
      const { version } = await directory().placeCron('m', 'to');
      numbers.push(version);
      await directory().dropCron('m', version);
      await runInDurableObject(env.DIRECTORY.getByName('directory'), () => undefined);
    }
    expect(numbers).toEqual([...new Set(numbers)].sort((a, b) => a - b));
  });
});

it('jobs of a deleted queue owner stay where they are', async () => {
  await start();
  await new TestQueue('from').jumpTo(minute(1));
  await server.ok(200, 'POST', CRON, moved());
  await server.ok(200, 'DELETE', `${CRON}/m`);
  expect((await server.jobs('from')).filter(({ state }) => state === 'available')).toHaveLength(1);
});
