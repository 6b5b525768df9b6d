/** What entries cost: written rows are the dear part of an object's bill, an alarm that is set counts as one. */

import { describe, expect, it } from 'vitest';
import { clock, MINUTE, T0, until } from '../../../support/clock';
import { TestQueue } from '../../../support/queue';
import { rowsWhile } from '../../../support/rows';
import { server } from '../../../support/server';
import { CRON, create, entry } from './entries';

server.emptyBeforeEach();
clock.startAtT0();

/** Rows that the object writes and alarms that it sets while `act` runs. */
async function cost(queue: string, act: () => Promise<unknown>): Promise<{ rows: number; alarms: number }> {
  const { written, alarms } = await rowsWhile(new TestQueue(queue).stub, act);
  return { rows: written - alarms, alarms };
}

describe('a fire', () => {
  it('costs its job and one row, and the alarm for the next one', async () => {
    await create('a', { overlap_policy: 'allow' });
    await new TestQueue('a').jumpTo(T0 + MINUTE);
    expect(await cost('a', () => new TestQueue('a').jumpTo(T0 + 2 * MINUTE))).toEqual({ rows: 2, alarms: 1 });
  });

  it('that is skipped costs one row and the alarm', async () => {
    await create('a');
    await new TestQueue('a').jumpTo(T0 + MINUTE);
    expect(await cost('a', () => new TestQueue('a').jumpTo(T0 + 2 * MINUTE))).toEqual({ rows: 1, alarms: 1 });
  });

  it('of several entries at once costs a row each, one for their jobs together, and one alarm', async () => {
    for (let n = 0; n < 5; n++) await create(`a-${n}`, { overlap_policy: 'allow', options: { queue: 'a' } });
    await new TestQueue('a').jumpTo(T0 + MINUTE);
    expect(await cost('a', () => new TestQueue('a').jumpTo(T0 + 2 * MINUTE))).toEqual({ rows: 6, alarms: 1 });
  });

  it('of a long history costs no more', async () => {
    await create('a', {
      overlap_policy: 'allow',
      job_template: { type: 'x', args: ['y'.repeat(100_000)], options: { queue: 'a' } },
    });
    for (let n = 1; n <= 60; n++) await new TestQueue('a').jumpTo(T0 + n * MINUTE);
    expect(await cost('a', () => new TestQueue('a').jumpTo(T0 + 61 * MINUTE))).toEqual({ rows: 2, alarms: 1 });
  });

  it('each minute costs at most five rows, with the alarm and with its job, run alone', async () => {
    await create('a');
    const round = async (n: number) => {
      await new TestQueue('a').jumpTo(T0 + n * MINUTE);
      for (const { id } of await server.take('a')) await server.ack(id as string);
    };
    await round(1);
    const { rows, alarms } = await cost('a', async () => {
      for (let n = 2; n <= 61; n++) await round(n);
    });
    expect((rows + alarms) / 60).toBeLessThanOrEqual(5.1);
  });

  it('of a job that is unique in its queue costs one more', async () => {
    await create('a', { options: { unique: { keys: ['type', 'queue'] } } });
    expect(await cost('a', () => new TestQueue('a').jumpTo(T0 + MINUTE))).toEqual({ rows: 3, alarms: 1 });
  });
});

describe('a fire that other queues are asked about', () => {
  it('costs its job with the row of its id, and two rows of the entry; the alarm stands by, and does not ring all the time', async () => {
    await create('a', { options: { unique: { keys: ['type'] } } });
    const { rows, alarms } = await cost('a', async () => {
      await new TestQueue('a').jumpTo(T0 + MINUTE);
      await until(
        () => new TestQueue('a').inside(({ engine: { q } }) => q.store.crons.across().length === 0),
        'the other queues to be asked',
      );
    });
    // Job, its alias, its fingerprint; the entry when it fires and when that is settled.
    expect(rows).toBe(5);
    expect(alarms).toBeLessThanOrEqual(2);
  });
});

describe('nothing to do', () => {
  it('costs nothing: reading, an alarm that comes early, declaring the same again', async () => {
    await create('a');
    const nothing = { rows: 0, alarms: 0 };
    expect(await cost('a', () => server.ok(200, 'GET', `${CRON}/a`))).toEqual(nothing);
    expect(await cost('a', () => server.ok(200, 'GET', `${CRON}/a/history`))).toEqual(nothing);
    expect(await cost('a', () => server.ok(200, 'POST', CRON, entry('a')))).toEqual(nothing);
    expect(await cost('a', () => server.ok(200, 'POST', `${CRON}/a/resume`))).toEqual(nothing);
    expect(await cost('a', () => new TestQueue('a').alarm())).toEqual({ rows: 0, alarms: 1 });
  });
});

describe('a change', () => {
  it('costs two rows in the queue', async () => {
    await create('a');
    expect(await cost('a', () => server.ok(200, 'PATCH', `${CRON}/a`, { description: 'x' }))).toEqual({
      rows: 2,
      alarms: 0,
    });
    expect(await cost('a', () => server.ok(200, 'POST', `${CRON}/a/pause`))).toEqual({ rows: 2, alarms: 0 });
  });
});
