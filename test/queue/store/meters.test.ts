/** What has happened in a queue is counted once, survives every end of the object, and costs no row of its own for a job. */
import { describe, expect, it } from 'vitest';
import { countOf } from '../../../src/metrics/histogram';
import { type Counter, durationsOf, histogramOf, packed, read, sum } from '../../../src/metrics/meter';
import { clock, DAY, HOUR, MINUTE, SECOND, T0 } from '../../support/clock';
import { failAlways, failOnce } from '../../support/faults';
import { type JobChange, steady, TestQueue } from '../../support/queue';

clock.startAtT0();

type Counts = Partial<Record<Counter, number>>;

const SHOWN = ['enqueued', 'completed', 'failed', 'retried', 'cancelled', 'discarded', 'expired'] as const;

/** The counters of a type that are not 0; of all types together when none is named. */
async function counted(queue: TestQueue, type?: string): Promise<Counts> {
  const { totals } = await queue.api.activity();
  const meter = sum(totals.filter(([name]) => type === undefined || name === type).map(([, each]) => each));
  return Object.fromEntries(SHOWN.map((name) => [name, read(meter, name)] as const).filter(([, count]) => count > 0));
}

/** As {@link counted}, in a new life of the object: the same as before. */
async function countedAfterwards(queue: TestQueue, type?: string): Promise<Counts> {
  const before = await counted(queue, type);
  await queue.evict();
  expect(await counted(queue, type)).toEqual(before);
  return before;
}

const many = (n: number, change: JobChange = {}): JobChange[] => Array<JobChange>(n).fill(change);

async function dropAll(queue: TestQueue, job: JobChange, end: (id: string) => Promise<unknown>): Promise<void> {
  const [{ id } = { id: '' }] = await queue.enqueue(job);
  await end(id);
}

describe('counters', () => {
  it('say what happened to the jobs of each type', async () => {
    const queue = new TestQueue();
    await queue.enqueue(...many(3, { type: 'a' }), { type: 'b' }, { type: 'b', priority: 2 });
    const jobs = await queue.claim({ count: 5 });
    for (const { id, type } of jobs) await (type === 'a' ? queue.ack(id) : queue.nack(id));
    expect(await counted(queue, 'a')).toEqual({ enqueued: 3, completed: 3 });
    expect(await counted(queue, 'b')).toEqual({ enqueued: 2, failed: 2, retried: 2 });
  });

  it.each<[string, Counts, (queue: TestQueue) => Promise<unknown>]>([
    ['a job that waits', { enqueued: 1 }, (queue) => queue.add()],
    ['a delayed job', { enqueued: 1 }, (queue) => queue.add({ scheduledAt: T0 + HOUR })],
    ['jobs of one request', { enqueued: 50 }, (queue) => queue.enqueue(...many(50))],
    ['a job that runs', { enqueued: 1 }, (queue) => queue.add().then(() => queue.claim())],
    [
      'a completed job',
      { enqueued: 1, completed: 1 },
      (queue) => dropAll(queue, {}, async () => queue.ack((await queue.claim())[0]?.id as string)),
    ],
    [
      'a completed job of which nothing is kept',
      { enqueued: 1, completed: 1 },
      (queue) =>
        dropAll(queue, { body: { retention: { completed: 0 } } }, async () =>
          queue.ack((await queue.claim())[0]?.id as string),
        ),
    ],
    [
      'a completed job that says how long it is kept',
      { enqueued: 1, completed: 1 },
      (queue) =>
        dropAll(queue, { body: { retention: { completed: DAY } } }, async () =>
          queue.ack((await queue.claim())[0]?.id as string),
        ),
    ],
    [
      'a job that failed and waits for its retry',
      { enqueued: 1, failed: 1, retried: 1 },
      (queue) =>
        dropAll(queue, { retry: steady(3, HOUR) }, async () => queue.nack((await queue.claim())[0]?.id as string)),
    ],
    [
      'a job that failed for good',
      { enqueued: 1, failed: 1, discarded: 1 },
      (queue) => dropAll(queue, { retry: steady(1) }, async () => queue.nack((await queue.claim())[0]?.id as string)),
    ],
    ['a cancelled job', { enqueued: 1, cancelled: 1 }, (queue) => dropAll(queue, {}, (id) => queue.cancel(id))],
    [
      'a job that runs and is cancelled',
      { enqueued: 1, cancelled: 1 },
      (queue) => dropAll(queue, {}, (id) => queue.claim().then(() => queue.cancel(id))),
    ],
    [
      'an expired job',
      { enqueued: 1, expired: 1 },
      async (queue) => {
        await queue.add({ expiresAt: T0 + SECOND });
        clock.advance(2 * SECOND);
        await queue.alarm();
      },
    ],
    [
      'a second life of a dead letter',
      { enqueued: 1, failed: 1, discarded: 1 },
      (queue) =>
        dropAll(queue, { retry: steady(1) }, async (id) => {
          await queue.nack((await queue.claim())[0]?.id as string);
          await queue.redrive(id);
        }),
    ],
    [
      'many ends in one transaction',
      { enqueued: 40, cancelled: 40 },
      async (queue) => {
        const jobs = await queue.enqueue(...many(40));
        await queue.inside(({ instance }) => Promise.all(jobs.map(({ id }) => instance.cancel(id))));
      },
    ],
  ])('survive the sleep of the object, with %s as the last thing', async (_, expected, happen) => {
    const queue = new TestQueue();
    await queue.add({ scheduledAt: T0 + 9 * DAY, type: 'other' });
    await happen(queue);
    expect(await countedAfterwards(queue, 'test.job')).toEqual(expected);
    // What comes then is added to it.
    await queue.add();
    const { enqueued = 0 } = expected;
    expect(await countedAfterwards(queue, 'test.job')).toEqual({ ...expected, enqueued: enqueued + 1 });
  });

  it('survive the removal of whatever carried them', async () => {
    const queue = new TestQueue();
    await queue.add({ scheduledAt: T0 + 30 * DAY });
    for (let n = 0; n < 3; n++) {
      await queue.add();
      await queue.ack((await queue.claim())[0]?.id as string);
    }
    await queue.passTo(T0 + 9 * DAY);
    expect(await queue.rows('SELECT chunk FROM archive')).toEqual([]);
    expect(await countedAfterwards(queue)).toEqual({ enqueued: 4, completed: 3 });
  });

  it('survive a sleep after every single step of a long history', async () => {
    const queue = new TestQueue();
    const expected = { enqueued: 0, completed: 0, failed: 0, retried: 0, cancelled: 0, discarded: 0 };
    for (let n = 0; n < 30; n++) {
      clock.advance(20 * SECOND);
      const id = await queue.add({ type: `type.${n % 3}`, retry: steady(n % 2 === 0 ? 1 : 2) });
      expected.enqueued++;
      await queue.evict();
      if (n % 5 === 4) {
        await queue.cancel(id);
        expected.cancelled++;
      } else {
        const [job] = await queue.claim();
        await queue.evict();
        if (n % 3 === 0) {
          await queue.ack(job?.id as string);
          expected.completed++;
        } else {
          const { state } = await queue.nack(job?.id as string);
          expected.failed++;
          expected[state === 'discarded' ? 'discarded' : 'retried']++;
          await queue.evict();
          if (state !== 'discarded') {
            await queue.cancel(id);
            expected.cancelled++;
          }
        }
      }
      const happened = Object.entries(expected).filter(([, count]) => count > 0);
      expect(await countedAfterwards(queue)).toEqual(Object.fromEntries(happened));
    }
  });

  it('count nothing of what is rolled back, alone or with its transaction', async () => {
    const queue = new TestQueue();
    const first = await queue.add();
    await queue.add();
    await queue.inside(({ sql }) => failOnce(sql, /INSERT INTO jobs/));
    await expect(queue.cancel(first)).rejects.toThrow();
    expect(await counted(queue)).toEqual({ enqueued: 2 });
    await queue.inside(({ sql }) => failOnce(sql, /INSERT INTO archive/));
    const [job] = await queue.claim();
    await expect(queue.ack(job?.id as string)).rejects.toThrow();
    expect(await countedAfterwards(queue)).toEqual({ enqueued: 2 });
    await queue.ack(job?.id as string);
    expect(await countedAfterwards(queue)).toEqual({ enqueued: 2, completed: 1 });
  });

  it('are of few types by name, and of the others together', async () => {
    const queue = new TestQueue();
    for (let n = 0; n < 3; n++) {
      await queue.enqueue(...Array.from({ length: 100 }, (_, index) => ({ type: `type.${n * 100 + index}` })));
    }
    await queue.claim();
    const { totals } = await queue.api.activity();
    expect(totals.filter(([type]) => type !== '')).toHaveLength(201);
    expect(await counted(queue, '_other')).toEqual({ enqueued: 100 });
    expect(await countedAfterwards(queue)).toEqual({ enqueued: 300 });
  });
});

describe('times', () => {
  it('are how long attempts took, by how they ended, and how long jobs waited for their first', async () => {
    const queue = new TestQueue();
    await queue.enqueue({ retry: steady(2, 0) }, { scheduledAt: T0 + 10 * SECOND });
    clock.at(2 * SECOND);
    const [job] = await queue.claim();
    clock.at(3 * SECOND);
    await queue.nack(job?.id as string);
    clock.at(11 * SECOND);
    for (const { id } of await queue.claim({ count: 2 })) await queue.ack(id);
    await queue.evict();
    const { totals } = await queue.api.activity();
    const meter = sum(totals.map(([, each]) => each));
    const waited = histogramOf(meter, 'queue_time');
    expect([countOf(waited), waited.sum]).toEqual([2, 3 * SECOND]);
    expect(countOf(histogramOf(meter, 'completed'))).toBe(2);
    expect(histogramOf(meter, 'failed').sum).toBe(SECOND);
    expect(countOf(durationsOf(meter))).toBe(3);
  });

  it('are kept by minute for a day and by hour for a month', async () => {
    const queue = new TestQueue();
    const busy = async () => {
      await queue.enqueue(...many(2));
      for (const { id } of await queue.claim({ count: 2 })) await queue.ack(id);
    };
    // Often enough that what was counted is put away several times.
    for (let n = 0; n < 60; n++) {
      clock.set(T0 + n * 30 * MINUTE);
      await busy();
    }
    const all = { from: T0 - HOUR, to: T0 + 60 * DAY };
    const byHour = await queue.api.points({ ...all, period_ms: HOUR });
    expect(byHour.map(({ at, meter }) => [(at - T0) / HOUR, read(meter, 'completed')])).toEqual(
      Array.from({ length: 30 }, (_, hour) => [hour, 4]),
    );
    const minutes = await queue.api.points({ ...all, from: Date.now() - 12 * HOUR, period_ms: MINUTE });
    expect(minutes.map(({ at }) => at)).toContain(T0 + 59 * 30 * MINUTE);
    expect(minutes).toHaveLength(25);
    clock.set(T0 + 40 * DAY);
    for (let n = 0; n < 30; n++) {
      clock.advance(MINUTE);
      await busy();
    }
    const later = await queue.api.points({ ...all, period_ms: DAY });
    expect(later.map(({ meter }) => read(meter, 'completed'))).toEqual([60]);
    expect(await countedAfterwards(queue)).toEqual({ enqueued: 180, completed: 180 });
  });
});

describe('a queue with very many busy types', () => {
  const TYPES = Array.from({ length: 30 }, (_, n) => `reports.of-a-busy-kind.${n}`);
  /** Pairs of a meter in which all that can happen has happened. */
  const PAIRS = packed(Array.from({ length: 60 }, (_, place) => (place < 8 ? 10 : 1000 + place)));
  /** As many points as an earlier release has stored: 1.9 MB of them. */
  const stored = (data: string) => {
    const lately = JSON.parse(data) as object;
    const hours: unknown[] = [];
    const point = (n: number) => [T0 / HOUR - 600 + Math.floor(n / 12), TYPES[n % 12], ...PAIRS];
    for (let bytes = data.length; bytes < 1_950_000; bytes += JSON.stringify(hours.at(-1)).length + 1) {
      hours.push(point(hours.length));
    }
    return { text: JSON.stringify({ ...lately, hours }), count: hours.length };
  };
  const busy = async (queue: TestQueue) => {
    await queue.enqueue(...TYPES.map((type) => ({ type })));
    const ids = (await queue.claim({ count: TYPES.length })).map(({ id }) => id);
    await queue.api.report(ids.map((job_id) => ({ kind: 'completed' as const, job_id })));
  };
  const sizes = (queue: TestQueue) => queue.rows<{ bytes: number }>('SELECT length(data) AS bytes FROM meters');

  it('does not die of them: what is stored comes down to a bound, and its sums stay', async () => {
    const queue = new TestQueue();
    for (let n = 1; n <= 3; n++) {
      clock.advance(MINUTE);
      await busy(queue);
    }
    const [row] = await queue.rows<{ data: string }>('SELECT data FROM meters WHERE id = 1');
    const { text, count } = stored(row?.data as string);
    expect(text.length).toBeGreaterThan(1_900_000);
    await queue.inside(({ sql }) => void sql.exec('UPDATE meters SET data = ? WHERE id = 1', text));
    await queue.evict();
    for (let n = 1; n <= 40; n++) {
      clock.advance(MINUTE);
      await busy(queue);
    }
    for (const { bytes } of await sizes(queue)) expect(bytes).toBeLessThan(1_300_000);
    expect(await countedAfterwards(queue)).toEqual({ enqueued: 43 * 30, completed: 43 * 30 });
    const all = await queue.api.points({ from: T0 - 31 * DAY, to: T0 + DAY, period_ms: HOUR });
    expect(read(sum(all.map(({ meter }) => meter)), 'completed')).toBe(43 * 30 + count * 10);
    // The busiest keep their names in the hours that came last.
    const late = await queue.api.points({ from: T0, to: T0 + HOUR, period_ms: HOUR, type: TYPES[0] as string });
    expect(read(sum(late.map(({ meter }) => meter)), 'completed')).toBe(43);
  });

  it('continues where nothing can be counted, and counts again when that is over', async () => {
    const queue = new TestQueue();
    await busy(queue);
    const heal = await queue.inside(({ sql }) => failAlways(sql, /INTO meters/));
    for (let n = 0; n < 20; n++) {
      clock.advance(MINUTE);
      await busy(queue);
    }
    const carried = 'SELECT max(length(data)) AS bytes FROM leases UNION ALL SELECT max(length(meters)) FROM archive';
    for (const { bytes } of await queue.rows<{ bytes: number }>(carried)) expect(bytes).toBeLessThan(64 * 1024);
    heal();
    const before = (await counted(queue)).completed as number;
    await busy(queue);
    expect((await countedAfterwards(queue)).completed).toBe(before + 30);
  });

  it('wakes where a text of what was counted cannot be read', async () => {
    const queue = new TestQueue();
    await queue.enqueue(...many(2));
    for (const { id } of await queue.claim({ count: 2 })) await queue.nack(id);
    await queue.inside(({ sql }) => void sql.exec("UPDATE jobs SET meters = '{'"));
    await queue.evict();
    expect((await queue.listAll()).map(({ state }) => state)).toEqual(['retryable', 'retryable']);
    await queue.add({ type: 'later' });
    expect(await countedAfterwards(queue, 'later')).toEqual({ enqueued: 1 });
  });

  it('wakes where what was counted cannot be looked for at all', async () => {
    const queue = new TestQueue();
    await busy(queue);
    await queue.inside(({ sql }) => void sql.exec('ALTER TABLE meters RENAME COLUMN version TO gone'));
    await queue.evict();
    await busy(queue);
    expect(await queue.counts()).toEqual({ completed: 60 });
  });
});

describe('rows', () => {
  it('of what was counted are none for a job, and one now and then', async () => {
    const queue = new TestQueue();
    await queue.add({ scheduledAt: T0 + 1 });
    clock.at(SECOND);
    await queue.ack((await queue.claim())[0]?.id as string);
    await queue.startCounting();
    // A job each hour, with sleep in between: its place in a block, lease, and a chunk with its index entry.
    for (let n = 0; n < 100; n++) {
      clock.advance(HOUR);
      await queue.add();
      await queue.ack((await queue.claim())[0]?.id as string);
    }
    const { written, alarms } = await queue.counted();
    expect(written - alarms).toBeGreaterThanOrEqual(400);
    expect(written - alarms).toBeLessThanOrEqual(400 + 8);
  });

  it('are counted for the types that a transaction is about', async () => {
    const queue = new TestQueue();
    await queue.add({ scheduledAt: T0 + DAY, type: 'other' });
    await queue.startCounting();
    await queue.enqueue(...many(100));
    for (const { id } of await queue.claim({ count: 100 })) await queue.ack(id);
    const { written, alarms } = await queue.counted();
    const { totals } = await queue.api.activity();
    const rows = Object.fromEntries(totals.map(([type, meter]) => [type, read(meter, 'rows')]));
    expect(Math.abs((rows['test.job'] as number) - (written - alarms))).toBeLessThanOrEqual(1);
    await queue.evict();
    const after = Object.fromEntries(
      (await queue.api.activity()).totals.map(([type, meter]) => [type, read(meter, 'rows')]),
    );
    expect(Math.abs((after['test.job'] as number) - (written - alarms))).toBeLessThanOrEqual(4);
  });

  it('are none for a queue that is looked at and does nothing', async () => {
    const queue = new TestQueue();
    await queue.enqueue(...many(10));
    await queue.startCounting();
    for (let n = 0; n < 5; n++) {
      clock.advance(MINUTE);
      await queue.api.activity();
      await queue.api.points({ from: T0, to: T0 + HOUR, period_ms: MINUTE });
    }
    expect((await queue.counted()).written).toBe(0);
  });
});
