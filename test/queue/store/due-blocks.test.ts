/** Jobs that wait together for one moment are a row together, and nothing but the rows written tells them from others. */
import { v7 as uuidv7 } from 'uuid';
import { describe, expect, it } from 'vitest';
import { unwrap } from '../../../src/job/errors';
import type { JobState } from '../../../src/job/states';
import { read } from '../../../src/metrics/meter';
import { answers } from '../../support/answers';
import { clock, DAY, T0 } from '../../support/clock';
import { isLong } from '../../support/long';
import { type JobChange, newJob, refusal, steady, TestQueue } from '../../support/queue';

clock.startAtT0();

const many = (n: number, change: JobChange = {}): JobChange[] => Array<JobChange>(n).fill(change);
const at = (ms: number, change: JobChange = {}): JobChange => ({ scheduledAt: T0 + ms, ...change });

/** Blocks that are stored. */
const blocks = (queue: TestQueue) =>
  queue.rows<{ jobs: number; priority: number; due_at: number; gone: string | null }>(
    'SELECT jobs, priority, due_at, gone FROM due_blocks',
  );

const ownRows = async (queue: TestQueue) => (await queue.rows('SELECT key FROM jobs')).length;

const JOBS: JobChange[] = [
  ...many(4, { type: 'a' }),
  ...[0, 1, 2, 3, 4, 5].map((n) => at(1000, { type: n % 2 ? 'a' : 'b', body: { args: [n === 3 ? 'needle' : n] } })),
  at(1000, { type: 'b', id: '01962222-bbbb-7ccc-8ddd-000000000001' }),
  at(1000, { type: 'b', expiresAt: T0 + DAY }),
  ...many(3, at(1000, { retry: steady(3, 1000) })),
  ...many(3, at(1000, { priority: 4 })),
  ...many(4, at(2000)),
  at(1500),
  ...many(3, { priority: 4, type: 'b' }),
  at(2000),
  { type: 'b', body: { args: ['needle'] } },
  ...many(2, at(2000)),
].map((job) => ({ retry: steady(3, 700), ...job }));

/** What happens to the jobs, by their places. */
const STEPS: [string, (queue: TestQueue, id: (place: number) => string) => Promise<unknown>][] = [
  ['nothing', async () => undefined],
  ['one is cancelled before its time', (queue, id) => queue.cancel(id(5))],
  [
    'others are to run earlier, later, at another priority, or must start by a moment',
    async (queue, id) => {
      for (const [place, change] of [
        [6, { scheduled_at: T0 + 500 }],
        [7, { scheduled_at: T0 + 3000 }],
        [8, { priority: 9 }],
        [9, { expires_at: T0 + 1400 }],
        [19, { scheduled_at: null }],
      ] as const) {
        unwrap(await queue.api.patch({ id: id(place), ...change }));
      }
    },
  ],
  [
    'two are removed',
    async (queue, id) => unwrap(await queue.api.bulk({ action: 'purge', ids: [id(4), id(18)], atomic: false })),
  ],
  ['the first moment is near', async () => clock.set(T0 + 999)],
  ['the first moment is there', async () => clock.set(T0 + 1000)],
  ['some are claimed', (queue) => queue.claim({ count: 12, worker_id: 'w', visibility_timeout_ms: 700 })],
  [
    'of these one completes, one fails, one goes back',
    async (queue) => {
      const running = (await queue.listAll()).filter(({ state }) => state === 'active');
      await queue.ack(running[0]?.id as string, { result: '1' });
      await queue.nack(running[1]?.id as string);
      await queue.nack(running[2]?.id as string, {}, { requeue: true });
    },
  ],
  ['one is too late', (queue) => queue.jumpTo(T0 + 1450)],
  ['one job more is due', (queue) => queue.jumpTo(T0 + 1600)],
  ['the leases end', (queue) => queue.jumpTo(T0 + 1701)],
  ['the second moment is there', async () => clock.set(T0 + 2000)],
  [
    'those of one type are removed',
    async (queue) =>
      unwrap(await queue.api.operate({ id: uuidv7(), action: 'purge', filter: { types: ['b'] } }, 20_000)),
  ],
  ['all moments are there', async () => clock.set(T0 + 4000)],
  [
    'all are claimed',
    async (queue) => {
      for (let n = 0; n < 30; n++) await queue.claim({ count: 2, visibility_timeout_ms: DAY });
    },
  ],
  [
    'all complete',
    async (queue) => {
      for (const { id, state } of await queue.listAll()) if (state === 'active') await queue.ack(id);
    },
  ],
  ['all is pruned', (queue) => queue.passTo(T0 + 60 * DAY)],
];

describe('jobs that wait together', () => {
  it.each([
    ...(isLong ? [['as long as the object lives', false] as const] : []),
    ['whenever the object has lost its memory', true] as const,
  ])('are reported as those that came one by one, %s', async (_, evicted) => {
    const [together, apart] = [new TestQueue(), new TestQueue()];
    const idsOf = {
      together: (await together.enqueue(...JOBS)).map(({ id }) => id),
      apart: [] as string[],
    };
    for (const job of JOBS) idsOf.apart.push(...(await apart.enqueue(job)).map(({ id }) => id));
    expect(await blocks(together)).toMatchObject([
      { jobs: 10, priority: 0, due_at: T0 + 1000 },
      { jobs: 3, priority: 4, due_at: T0 + 1000 },
      { jobs: 4, priority: 0, due_at: T0 + 2000 },
      { jobs: 3, priority: 4, due_at: T0 },
      { jobs: 3, priority: 0, due_at: T0 + 2000 },
    ]);
    expect(await ownRows(together)).toBe(2);
    expect(await blocks(apart)).toEqual([]);
    for (const [name, step] of STEPS) {
      const told: string[] = [];
      for (const [queue, ids] of [
        [together, idsOf.together],
        [apart, idsOf.apart],
      ] as const) {
        const now = Date.now();
        await step(queue, (place) => ids[place] as string);
        if (evicted) await queue.evict();
        told.push(await answers(queue, ids));
        if (queue === together) clock.set(now);
      }
      expect(JSON.parse(told[0] as string), name).toEqual(JSON.parse(told[1] as string));
    }
    expect(await blocks(together)).toEqual([]);
    expect(await ownRows(together)).toBe(0);
    expect(await together.armedAt()).toBeNull();
  });

  it('come in the order of becoming available, between single ones, retried ones and those of the line', async () => {
    const queue = new TestQueue();
    const late = (await queue.enqueue(...many(3, at(300)))).map(({ id }) => id);
    const early = (await queue.enqueue(...many(3, at(100)))).map(({ id }) => id);
    const single = await queue.add(at(300));
    const more = (await queue.enqueue(...many(2, at(300)))).map(({ id }) => id);
    const failing = await queue.add({ retry: steady(3, 300) });
    await queue.claim();
    await queue.nack(failing);
    clock.set(T0 + 150);
    const line = await queue.enqueue(...many(2));
    clock.set(T0 + 299);
    const [before] = await queue.enqueue(...many(2, { priority: 1 }));
    expect(await queue.claim()).toMatchObject([{ id: before?.id }]);
    expect(await queue.claim({ count: 2 })).toMatchObject([{ priority: 1 }, { id: early[0] }]);
    clock.set(T0 + 300);
    const here = (await queue.enqueue(...many(2))).map(({ id }) => id);
    const order = [...early.slice(1), ...line.map(({ id }) => id), ...late, single, ...more];
    // Jobs that became available at one moment are told apart by attempts and numbers, and the line comes by its numbers.
    expect((await queue.claimAll()).filter((id) => id !== failing)).toEqual([...order, ...here]);
  });

  it('are run at their time by an object that has lost its memory, and not before', async () => {
    const queue = new TestQueue();
    const ids = (await queue.enqueue(...many(5, at(5000)), ...many(3, at(9000, { priority: 2 })))).map(({ id }) => id);
    expect(await ownRows(queue)).toBe(0);
    for (const moment of [T0 + 5000, T0 + 9000]) {
      await queue.evict();
      expect(await queue.armedAt()).toBe(moment);
      clock.set(moment - 1);
      expect(await queue.claimAll()).toEqual([]);
      // A worker waits, and nothing but the alarm tells of them.
      const claimed = queue.api.claim({ count: 10, wait_ms: 60_000 });
      await queue.waiting('work', 1);
      clock.set(moment);
      await queue.alarm();
      const due = moment === T0 + 5000 ? ids.slice(0, 5) : ids.slice(5);
      expect(unwrap(await claimed).map(({ record }) => record.id)).toEqual(due);
      for (const id of due) await queue.ack(id);
    }
    expect(await blocks(queue)).toEqual([]);
  });

  it('are a block only where nothing tells them apart but what a block says', async () => {
    const queue = new TestQueue();
    await queue.enqueue(
      ...many(2, at(1000, { pending: true })),
      ...many(2, at(1000, { expiresAt: T0 + DAY })),
      ...many(2, at(1000, { limit: { key: 'k', limits: { concurrency: 1 }, on_limit: 'drop' } })),
    );
    expect(await blocks(queue)).toEqual([]);
    expect(await ownRows(queue)).toBe(6);
    // Neighbours whose times differ gain nothing by a block.
    await queue.enqueue(...[1, 2, 3, 1, 2, 3].map((ms) => at(ms * 1000)));
    expect(await blocks(queue)).toEqual([]);
    // Those of the line between them, and other numbers up to a bound, do not matter.
    await queue.enqueue(at(1000), ...many(12), at(1000), ...many(20), at(1000));
    expect(await blocks(queue)).toMatchObject([{ jobs: 2, due_at: T0 + 1000 }]);
    expect(await ownRows(queue)).toBe(6 + 6 + 1);
  });

  it('are found by state where an index must help, however many there are in other states', async () => {
    const queue = new TestQueue();
    const idsOf = async (...changes: JobChange[]) => (await queue.enqueue(...changes)).map(({ id }) => id).reverse();
    const late = await idsOf(...many(3, at(9000)));
    const early = await idsOf(...many(3, at(1000)));
    for (const ms of [5000, 6000]) await queue.enqueue(...many(700, at(ms)));
    const find = async (...states: JobState[]) => {
      // An index knows all that is available only where it is known that nothing stands in the line.
      await queue.stats();
      const page = unwrap(await queue.api.list({ limit: 2000, filter: { states }, total: false }));
      return page.jobs.map(({ record }) => record.id);
    };
    clock.set(T0 + 1000);
    expect(await find('available')).toEqual(early);
    await queue.claim({ count: 2 });
    expect(await find('available')).toEqual(early.slice(0, 1));
    expect(await find('active')).toEqual(early.slice(1));
    expect(await find('active', 'available')).toEqual(early);
    clock.set(T0 + 8000);
    expect(await find('scheduled')).toEqual(late);
    await queue.claim({ count: 1 });
    expect(await find('active', 'scheduled')).toEqual([...early, ...late]);
    expect(await find('scheduled', 'available')).toHaveLength(1403);
  });

  it('count their rows in a new life as in the one that wrote them', async () => {
    const queue = new TestQueue();
    await queue.add({ type: 'other' });
    await queue.claim();
    const rowsOf = async () => {
      const { totals } = await queue.api.activity();
      return totals
        .filter(([type]) => type === 'together')
        .map(([, meter]) => [read(meter, 'rows'), read(meter, 'enqueued')]);
    };
    await queue.enqueue(...many(50, at(1000, { type: 'together' })), ...many(50, { type: 'together', priority: 1 }));
    expect(await rowsOf()).toEqual([[4, 100]]);
    await queue.evict();
    expect(await rowsOf()).toEqual([[4, 100]]);
  });

  it('make room as others do where a queue is full: those that became available first, then those that are due next', async () => {
    const queue = new TestQueue();
    const later = (await queue.enqueue(...many(2, at(9000)))).map(({ id }) => id);
    const first = (await queue.enqueue(...many(2, at(1000)))).map(({ id }) => id);
    unwrap(await queue.api.configure({ max_depth: 5, overflow: 'drop_oldest' }));
    clock.set(T0 + 2000);
    const line = await queue.add();
    const gone = async () => {
      await queue.add(at(20_000));
      const all = await Promise.all([...first, line, ...later].map((id) => queue.state(id)));
      return all.filter((state) => state === 'discarded').length;
    };
    for (let n = 1; n <= 5; n++) {
      expect(await gone()).toBe(n);
      expect(await queue.state([...first, line, ...later][n - 1] as string)).toBe('discarded');
    }
  });

  it('count once against the bound when their reports share a transaction with an enqueue', async () => {
    const queue = new TestQueue();
    unwrap(await queue.api.configure({ max_depth: 10 }));
    await queue.enqueue(...many(5, at(1000, { priority: 1 })), ...many(5));
    clock.set(T0 + 1000);
    const ids = (await queue.claim({ count: 5 })).map(({ id }) => id);
    await queue.evict();
    const refused = await queue.inside(({ instance }) => {
      for (const job_id of ids) void instance.settle({ kind: 'completed', job_id });
      return instance.enqueue(Array.from({ length: 10 }, () => newJob()));
    });
    expect(refusal(refused)).toMatchObject({ code: 'QUEUE_FULL', details: { depth: 5 } });
    await queue.enqueue(...many(5));
    expect(refusal(await queue.api.enqueue([newJob()]))).toMatchObject({ code: 'QUEUE_FULL' });
  });

  it('go with their block, at a price for the block, when the queue is purged or deleted', async () => {
    const queue = new TestQueue();
    await queue.startCounting();
    for (let n = 1; n <= 6; n++) await queue.enqueue(...many(500, at(n * 1000)));
    await queue.counted();
    const filter = { scheduled: { min: T0, max: T0 + 3000 } };
    expect(unwrap(await queue.api.operate({ id: uuidv7(), action: 'purge', filter }, 20_000))).toMatchObject({
      succeeded: 1500,
    });
    expect(await blocks(queue)).toMatchObject(many(3, {}).map(() => ({ jobs: 500, gone: null })));
    expect((await queue.counted()).written).toBeLessThan(30);
    unwrap(await queue.api.remove({ strategy: 'discard' }, 0));
    for (let alarms = 0; alarms < 20 && (await queue.armedAt()) !== null; alarms++) await queue.alarm();
    expect((await queue.counted()).written).toBeLessThan(60);
  });

  it('move to another queue when theirs is deleted, and keep their time there', async () => {
    const [queue, target] = [new TestQueue(), new TestQueue()];
    const ids = (await queue.enqueue(...many(5, at(5000)), ...many(2, { priority: 3 }))).map(({ id }) => id);
    unwrap(await queue.api.remove({ strategy: 'move', target_queue: target.name }, 0));
    for (let alarms = 0; alarms < 20 && (await queue.armedAt()) !== null; alarms++) await queue.alarm();
    expect(await target.counts()).toEqual({ scheduled: 5, available: 2 });
    clock.set(T0 + 5000);
    expect(await target.claimAll()).toEqual([...ids.slice(5), ...ids.slice(0, 5)]);
  });

  it('stand in the way of others with the same fingerprint, and can be replaced', async () => {
    const queue = new TestQueue();
    const one = (fingerprint: string, on_conflict: 'ignore' | 'replace'): JobChange =>
      at(5000, {
        unique: { fingerprint, scope: 'queue', states: ['scheduled', 'available', 'active'], on_conflict },
        body: { fingerprint },
      });
    const first = await queue.enqueue(...['f1', 'f2', 'f3'].map((fingerprint) => one(fingerprint, 'ignore')));
    expect(await blocks(queue)).toMatchObject([{ jobs: 3 }]);
    expect(await queue.enqueue(one('f3', 'ignore'))).toMatchObject([{ id: first[2]?.id }]);
    const [other] = await queue.enqueue(one('f1', 'replace'), one('f4', 'replace'));
    expect(await queue.state(first[0]?.id as string)).toBe('cancelled');
    await queue.cancel(first[1]?.id as string);
    expect(await queue.counts()).toEqual({ scheduled: 3, cancelled: 2 });
    clock.set(T0 + 5000);
    expect((await queue.claimAll()).slice(0, 2)).toEqual([first[2]?.id, other?.id]);
  });
});
