import { describe, expect, it } from 'vitest';
import { clock } from '../../support/clock';
import { TestQueue } from '../../support/queue';
import { type Json, server } from '../../support/server';
import { ack, addManyTo, addTo, countsOf, fetchFrom } from '../features/limits/limited';

clock.startAtT0();

const bound = (max_depth: number, rest: Json = {}) => ({ backpressure: { max_depth, ...rest } });
const jobFor = (queue: TestQueue, options: Json = {}) => ({
  type: 'test.bounded',
  args: [],
  options: { queue: queue.name, ...options },
});
/** Bytes of the body of a job of `addManyTo`. */
const BYTES_OF_ONE = JSON.stringify({ type: 'test.limited', args: [], meta: {} }).length;
const post = (job: unknown) => server.call('POST', '/ojs/v1/jobs', job);

describe('a bounded queue', () => {
  it('refuses what goes beyond the bound, and takes jobs again when others have ended', async () => {
    const queue = new TestQueue();
    await server.configure(queue.name, { max_size: 3 });
    const ids = await addManyTo(queue, 3);
    const full = await post(jobFor(queue));
    expect(full.status).toBe(429);
    expect(full.body.error).toMatchObject({
      code: 'QUEUE_FULL',
      retryable: true,
      details: { queue: queue.name, depth: 3, bound: 3 },
    });
    expect(Number(full.headers.get('Retry-After'))).toBeGreaterThan(0);
    expect(full.headers.get('X-OJS-Queue-Depth')).toBe('3');
    expect(full.headers.get('X-OJS-Queue-Bound')).toBe('3');
    await fetchFrom(queue, 1);
    expect((await post(jobFor(queue))).status).toBe(429);
    await ack(ids[0] as string);
    expect((await post(jobFor(queue))).status).toBe(201);
    expect((await post(jobFor(queue))).status).toBe(429);
  });

  it('writes no row for its bound', async () => {
    const [plain, bounded] = [new TestQueue(), new TestQueue()];
    await server.configure(bounded.name, bound(100));
    const rows = (queue: TestQueue) => queue.rowsWritten(() => post(jobFor(queue)));
    for (const queue of [plain, bounded]) await post(jobFor(queue));
    expect(await rows(bounded)).toBe(await rows(plain));
  });

  it('counts every job that has not ended, wherever it waits, and still does after it lost its memory', async () => {
    const queue = new TestQueue();
    await server.configure(queue.name, bound(7));
    await addTo(queue, { key: 'k', concurrency: 1 });
    await addTo(queue, { key: 'k', concurrency: 1 });
    await addTo(queue, undefined, { delay_until: '+PT1H' });
    await addTo(queue, undefined, { pending: true });
    await addTo(queue, undefined, { priority: 5 });
    const [running] = await fetchFrom(queue, 1);
    const failed = await addTo(queue);
    await server.nack(failed).catch(() => undefined);
    await queue.evict();
    expect((await post(jobFor(queue))).status).toBe(201);
    expect((await post(jobFor(queue))).status).toBe(429);
    await queue.stub.cancel(running as string);
    expect((await post(jobFor(queue))).status).toBe(201);
    expect((await countsOf(queue)).depth).toBe(7);
  });

  it('keeps its bound when a batch replaces the job that has waited longest', async () => {
    const queue = new TestQueue();
    const unique = { keys: ['type'], on_conflict: 'replace' };
    const replaced = await post(jobFor(queue, { unique }));
    expect(replaced.status).toBe(201);
    const [other] = await addManyTo(queue, 1);
    await server.configure(queue.name, bound(2, { strategy: 'drop_oldest' }));
    const { type, args, options } = jobFor(queue);
    const batch = { jobs: [jobFor(queue, { unique }), { type: `${type}.other`, args, options }] };
    expect((await server.call('POST', '/ojs/v1/jobs/batch', batch)).status).toBe(201);
    expect((await countsOf(queue)).depth).toBe(2);
    const stateOf = async (id: unknown) => (await server.call('GET', `/ojs/v1/jobs/${id}`)).body.job?.state;
    expect(await stateOf(replaced.body.job?.id)).toBe('cancelled');
    expect(await stateOf(other)).toBe('discarded');
  });

  it('takes a batch whole or not at all, also one over several queues', async () => {
    const [small, large] = [new TestQueue(), new TestQueue()];
    await server.configure(small.name, bound(2));
    await addTo(small);
    const batch = (a: number, b: number) => ({
      jobs: [...Array(a).fill(jobFor(small)), ...Array(b).fill(jobFor(large))],
    });
    expect((await server.call('POST', '/ojs/v1/jobs/batch', batch(2, 0))).status).toBe(429);
    expect((await server.call('POST', '/ojs/v1/jobs/batch', batch(2, 1))).status).toBe(429);
    expect((await countsOf(small)).depth).toBe(1);
    expect((await countsOf(large)).depth ?? 0).toBe(0);
    expect((await server.call('POST', '/ojs/v1/jobs/batch', batch(1, 1))).status).toBe(201);
    expect((await server.call('POST', '/ojs/v1/jobs/batch', batch(1, 1))).status).toBe(429);
  });

  it('bounds the bytes of its jobs, too', async () => {
    const queue = new TestQueue();
    await server.configure(queue.name, { max_size_bytes: 5_000 });
    const large = { ...jobFor(queue), args: ['é'.repeat(1000)] };
    expect((await post(large)).status).toBe(201);
    expect((await post(large)).status).toBe(201);
    const full = await post(large);
    expect(full.body.error).toMatchObject({ code: 'QUEUE_FULL', details: { max_bytes: 5000 } });
    expect((await post(jobFor(queue))).status).toBe(201);
    await ack(...(await fetchFrom(queue, 1)));
    expect((await post(large)).status).toBe(201);
  });

  it('takes a job that replaces another, and one that is a duplicate', async () => {
    const queue = new TestQueue();
    await server.configure(queue.name, bound(1));
    const unique = (on_conflict: string) => jobFor(queue, { unique: { keys: ['type', 'queue'], on_conflict } });
    expect((await post(unique('reject'))).status).toBe(201);
    expect((await post(unique('replace'))).status).toBe(201);
    expect((await post(unique('ignore'))).status).toBe(200);
    expect((await post(unique('reject'))).status).toBe(409);
  });

  it('can be bounded, and the bound changed, while it has jobs', async () => {
    const queue = new TestQueue();
    await addManyTo(queue, 5);
    await server.configure(queue.name, bound(4));
    expect((await post(jobFor(queue))).status).toBe(429);
    await server.configure(queue.name, { max_size: 6 });
    expect((await post(jobFor(queue))).status).toBe(201);
    expect((await server.ok(200, 'GET', `/ojs/v1/queues/${queue.name}/config`)).config).toEqual({
      max_size: 6,
      backpressure: { max_depth: 6 },
    });
    await server.configure(queue.name, { backpressure: null });
    await addManyTo(queue, 10);
  });

  it('reads nothing for its bound, however deep it is', async () => {
    const queue = new TestQueue();
    await addManyTo(queue, 3000);
    // What is pushed is looked at after each enqueue; this is about the enqueue itself.
    await server.ok(200, 'POST', `/ojs/v1/queues/${queue.name}/pause`);
    await queue.startCounting();
    await addTo(queue);
    const unbounded = (await queue.counted()).read;
    await server.configure(queue.name, bound(1_000_000));
    await addTo(queue);
    await queue.counted();
    await addTo(queue);
    expect((await queue.counted()).read).toBe(unbounded);
  });
});

describe('the warning', () => {
  it('comes with the answer from the threshold on', async () => {
    const queue = new TestQueue();
    await server.configure(queue.name, bound(10, { warning_threshold: 0.5 }));
    await addManyTo(queue, 3);
    const below = await post(jobFor(queue));
    expect(below.headers.get('X-OJS-Queue-Pressure')).toBeNull();
    const reached = await post(jobFor(queue));
    expect(reached.status).toBe(201);
    expect(reached.headers.get('X-OJS-Queue-Depth')).toBe('5');
    expect(reached.headers.get('X-OJS-Queue-Bound')).toBe('10');
    expect(reached.headers.get('X-OJS-Queue-Pressure')).toBe('0.5');
    const batch = await server.call('POST', '/ojs/v1/jobs/batch', { jobs: Array(5).fill(jobFor(queue)) });
    expect(batch.headers.get('X-OJS-Queue-Pressure')).toBe('1');
  });

  it('is about the bound that is nearer: of jobs, or of bytes', async () => {
    const queue = new TestQueue();
    await server.configure(queue.name, { max_size: 1000, max_size_bytes: 2000 });
    const large = { ...jobFor(queue), args: ['x'.repeat(1600)] };
    const taken = await post(large);
    expect(taken.status).toBe(201);
    expect(taken.headers.get('X-OJS-Queue-Bound')).toBe('2000');
    expect(Number(taken.headers.get('X-OJS-Queue-Depth'))).toBeGreaterThan(1600);
    expect(Number(taken.headers.get('X-OJS-Queue-Pressure'))).toBeGreaterThanOrEqual(0.8);
    const full = await post(large);
    expect(full.status).toBe(429);
    expect(full.headers.get('X-OJS-Queue-Bound')).toBe('2000');
    expect(full.headers.get('X-OJS-Queue-Depth')).toBe(taken.headers.get('X-OJS-Queue-Depth'));
  });

  it('comes at four fifths unless the queue says otherwise', async () => {
    const queue = new TestQueue();
    await server.configure(queue.name, bound(5));
    await addManyTo(queue, 2);
    expect((await post(jobFor(queue))).headers.get('X-OJS-Queue-Pressure')).toBeNull();
    expect((await post(jobFor(queue))).headers.get('X-OJS-Queue-Pressure')).toBe('0.8');
  });
});

describe('drop_oldest', () => {
  const drop = (max_depth: number) => bound(max_depth, { strategy: 'drop_oldest' });

  it('discards the jobs that waited longest, with a reason and an event, and never one that runs', async () => {
    const queue = new TestQueue();
    await server.configure(queue.name, drop(3));
    const [running, oldest, second] = await addManyTo(queue, 3);
    expect(await fetchFrom(queue, 1)).toEqual([running]);
    const [third, fourth] = await addManyTo(queue, 2);
    expect(await server.job(oldest as string)).toMatchObject({ state: 'discarded', discard_reason: 'queue_full' });
    expect(await server.state(second as string)).toBe('discarded');
    expect(await fetchFrom(queue)).toEqual([third, fourth]);
    expect(await server.state(running as string)).toBe('active');
    const told = await server.events({ queue: queue.name, types: 'job.discarded' });
    expect(told.map(({ subject }) => subject)).toEqual([oldest, second]);
    expect(told[0]).toMatchObject({ data: { reason: 'queue_full' } });
  });

  it('goes by when a job became available, wherever it waits', async () => {
    const queue = new TestQueue();
    await server.configure(queue.name, drop(5));
    const later = await addTo(queue, undefined, { delay_until: '+PT1H' });
    const pending = await addTo(queue, undefined, { pending: true });
    clock.at(10);
    const prioritised = await addTo(queue, undefined, { priority: 9 });
    clock.at(20);
    const line = await addTo(queue);
    clock.at(30);
    const limited = await addTo(queue, { key: 'stopped', concurrency: 1 });
    const order = [prioritised, line, limited, later];
    for (const [index, id] of order.entries()) {
      clock.at(100 + index);
      await addTo(queue, undefined, { delay_until: '+PT2H' });
      expect(await server.state(id)).toBe('discarded');
    }
    expect(await server.state(pending)).toBe('pending');
  });

  it('refuses when there is nothing to discard, or the request alone is too large', async () => {
    const queue = new TestQueue();
    await server.configure(queue.name, drop(2));
    await addManyTo(queue, 2);
    await fetchFrom(queue);
    expect((await post(jobFor(queue))).status).toBe(429);
    const many = { jobs: Array(3).fill(jobFor(queue)) };
    expect(await server.refusal('POST', '/ojs/v1/jobs/batch', many)).toMatchObject({ status: 429, code: 'QUEUE_FULL' });
  });

  it('keeps the last ones of a stream that no worker drains, at the same price for each', async () => {
    const queue = new TestQueue();
    await server.configure(queue.name, drop(50));
    await server.ok(200, 'POST', `/ojs/v1/queues/${queue.name}/pause`);
    const stream = async (rounds: number) => {
      let ids: string[] = [];
      for (let round = 0; round < rounds; round++) ids = await addManyTo(queue, 25);
      return ids;
    };
    await stream(4);
    await queue.startCounting();
    await stream(4);
    const early = await queue.counted();
    await stream(30);
    await queue.counted();
    await stream(3);
    const last = await stream(1);
    const late = await queue.counted();
    expect(late.read).toBeLessThanOrEqual(early.read * 1.1);
    // The new job's row, and the old one's twice; now and then the counters are put away.
    expect((late.written - late.alarms) / 100).toBeLessThanOrEqual(3.05);
    expect((await countsOf(queue)).depth).toBe(50);
    await server.ok(200, 'POST', `/ojs/v1/queues/${queue.name}/resume`);
    expect((await fetchFrom(queue)).slice(-25)).toEqual(last);
  });

  describe.each<[string, Json, number]>([
    ['jobs', { max_size: 100 }, 100],
    ['bytes', { max_size_bytes: 100 * BYTES_OF_ONE }, 100],
  ])('with a bound of %s far below what waits', (_, terms, left) => {
    it('takes new jobs at the usual price, and comes down to the bound in turns', async () => {
      const queue = new TestQueue();
      const ids = await addManyTo(queue, 3_000);
      await server.configure(queue.name, { ...terms, overflow_policy: 'drop_oldest' });
      await queue.alarm();
      await queue.startCounting();
      const first = await addTo(queue);
      expect((await queue.counted()).written).toBeLessThan(20);
      // One has taken the place of one.
      expect((await countsOf(queue)).depth).toBe(3_000);
      expect(await server.state(ids[0] as string)).toBe('discarded');
      expect(await server.state(ids[1] as string)).toBe('available');
      await queue.counted();
      await queue.alarm();
      const turn = await queue.counted();
      expect(turn.written).toBeGreaterThan(500);
      expect(turn.written).toBeLessThan(1_100);
      const second = await addTo(queue);
      await queue.evict();
      for (let n = 0; n < 20 && ((await countsOf(queue)).depth as number) > left; n++) await queue.alarm();
      expect((await countsOf(queue)).depth).toBe(left);
      expect(await fetchFrom(queue, left)).toEqual([...ids.slice(2 - left), first, second]);
      // All that is left runs, and has its place.
      expect((await post(jobFor(queue))).status).toBe(429);
    });
  });

  it('stops when the bound is raised again, and sheds no more than is too much', async () => {
    const queue = new TestQueue();
    const ids = await addManyTo(queue, 1_200);
    await server.configure(queue.name, drop(10));
    await addTo(queue);
    await queue.alarm();
    const depth = (await countsOf(queue)).depth as number;
    expect(depth).toBe(950);
    await server.configure(queue.name, drop(650));
    await queue.alarm();
    await queue.alarm();
    expect((await countsOf(queue)).depth).toBe(650);
    expect(await server.state(ids.at(-649) as string)).toBe('available');
    expect(await queue.rows("SELECT value FROM meta WHERE key = 'shedding'")).toEqual([]);
  });
});
