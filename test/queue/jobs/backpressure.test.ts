import { describe, expect, it } from 'vitest';
import { api, events, type Json, okApi } from '../../support/http';
import { at, LimitedQueue, refusal, virtualClock } from '../features/limits/limited-queue';

virtualClock();

const bound = (max_depth: number, rest: Json = {}) => ({ backpressure: { max_depth, ...rest } });
const jobFor = (queue: LimitedQueue, options: Json = {}) => ({
  type: 'test.bounded',
  args: [],
  options: { queue: queue.name, ...options },
});
const post = (job: unknown) => api('POST', '/ojs/v1/jobs', job);

describe('a bounded queue', () => {
  it('refuses what goes beyond the bound, and takes jobs again when others have ended', async () => {
    const queue = new LimitedQueue();
    await queue.configure({ max_size: 3 });
    const ids = await queue.addMany(3);
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
    await queue.fetch(1);
    expect((await post(jobFor(queue))).status).toBe(429);
    await queue.ack(ids[0] as string);
    expect((await post(jobFor(queue))).status).toBe(201);
    expect((await post(jobFor(queue))).status).toBe(429);
  });

  it('counts every job that has not ended, wherever it waits, and still does after it lost its memory', async () => {
    const queue = new LimitedQueue();
    await queue.configure(bound(7));
    await queue.add({ key: 'k', concurrency: 1 });
    await queue.add({ key: 'k', concurrency: 1 });
    await queue.add(undefined, { delay_until: '+PT1H' });
    await queue.add(undefined, { pending: true });
    await queue.add(undefined, { priority: 5 });
    const [running] = await queue.fetch(1);
    const failed = await queue.add();
    await queue.nack(failed).catch(() => undefined);
    await queue.evict();
    expect((await post(jobFor(queue))).status).toBe(201);
    expect((await post(jobFor(queue))).status).toBe(429);
    await queue.stub.cancel(running as string);
    expect((await post(jobFor(queue))).status).toBe(201);
    expect((await queue.counts()).depth).toBe(7);
  });

  it('takes a batch whole or not at all, also one over several queues', async () => {
    const [small, large] = [new LimitedQueue(), new LimitedQueue()];
    await small.configure(bound(2));
    await small.add();
    const batch = (a: number, b: number) => ({
      jobs: [...Array(a).fill(jobFor(small)), ...Array(b).fill(jobFor(large))],
    });
    expect((await api('POST', '/ojs/v1/jobs/batch', batch(2, 0))).status).toBe(429);
    expect((await api('POST', '/ojs/v1/jobs/batch', batch(2, 1))).status).toBe(429);
    expect((await small.counts()).depth).toBe(1);
    expect((await large.counts()).depth ?? 0).toBe(0);
    expect((await api('POST', '/ojs/v1/jobs/batch', batch(1, 1))).status).toBe(201);
    expect((await api('POST', '/ojs/v1/jobs/batch', batch(1, 1))).status).toBe(429);
  });

  it('bounds the bytes of its jobs, too', async () => {
    const queue = new LimitedQueue();
    await queue.configure({ max_size_bytes: 5_000 });
    const large = { ...jobFor(queue), args: ['é'.repeat(1000)] };
    expect((await post(large)).status).toBe(201);
    expect((await post(large)).status).toBe(201);
    const full = await post(large);
    expect(full.body.error).toMatchObject({ code: 'QUEUE_FULL', details: { max_bytes: 5000 } });
    expect((await post(jobFor(queue))).status).toBe(201);
    await queue.ack(...(await queue.fetch(1)));
    expect((await post(large)).status).toBe(201);
  });

  it('takes a job that replaces another, and one that is a duplicate', async () => {
    const queue = new LimitedQueue();
    await queue.configure(bound(1));
    const unique = (on_conflict: string) => jobFor(queue, { unique: { keys: ['type', 'queue'], on_conflict } });
    expect((await post(unique('reject'))).status).toBe(201);
    expect((await post(unique('replace'))).status).toBe(201);
    expect((await post(unique('ignore'))).status).toBe(200);
    expect((await post(unique('reject'))).status).toBe(409);
  });

  it('can be bounded, and the bound changed, while it has jobs', async () => {
    const queue = new LimitedQueue();
    await queue.addMany(5);
    await queue.configure(bound(4));
    expect((await post(jobFor(queue))).status).toBe(429);
    await queue.configure({ max_size: 6 });
    expect((await post(jobFor(queue))).status).toBe(201);
    expect((await okApi('GET', `/ojs/v1/queues/${queue.name}/config`)).config).toEqual({
      max_size: 6,
      backpressure: { max_depth: 6 },
    });
    await queue.configure({ backpressure: null });
    await queue.addMany(10);
  });

  it('reads nothing for its bound, however deep it is', async () => {
    const queue = new LimitedQueue();
    await queue.addMany(3000);
    // What is pushed is looked at after each enqueue; this is about the enqueue itself.
    await okApi('POST', `/ojs/v1/queues/${queue.name}/pause`);
    await queue.startCounting();
    await queue.add();
    const unbounded = (await queue.rows()).read;
    await queue.configure(bound(1_000_000));
    await queue.add();
    await queue.rows();
    await queue.add();
    expect((await queue.rows()).read).toBe(unbounded);
  });
});

describe('the warning', () => {
  it('comes with the answer from the threshold on', async () => {
    const queue = new LimitedQueue();
    await queue.configure(bound(10, { warning_threshold: 0.5 }));
    await queue.addMany(3);
    const below = await post(jobFor(queue));
    expect(below.headers.get('X-OJS-Queue-Pressure')).toBeNull();
    const reached = await post(jobFor(queue));
    expect(reached.status).toBe(201);
    expect(reached.headers.get('X-OJS-Queue-Depth')).toBe('5');
    expect(reached.headers.get('X-OJS-Queue-Bound')).toBe('10');
    expect(reached.headers.get('X-OJS-Queue-Pressure')).toBe('0.5');
    const batch = await api('POST', '/ojs/v1/jobs/batch', { jobs: Array(5).fill(jobFor(queue)) });
    expect(batch.headers.get('X-OJS-Queue-Pressure')).toBe('1');
  });

  it('is about the bound that is nearer: of jobs, or of bytes', async () => {
    const queue = new LimitedQueue();
    await queue.configure({ max_size: 1000, max_size_bytes: 2000 });
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
    const queue = new LimitedQueue();
    await queue.configure(bound(5));
    await queue.addMany(2);
    expect((await post(jobFor(queue))).headers.get('X-OJS-Queue-Pressure')).toBeNull();
    expect((await post(jobFor(queue))).headers.get('X-OJS-Queue-Pressure')).toBe('0.8');
  });
});

describe('drop_oldest', () => {
  const drop = (max_depth: number) => bound(max_depth, { strategy: 'drop_oldest' });

  it('discards the jobs that waited longest, with a reason and an event, and never one that runs', async () => {
    const queue = new LimitedQueue();
    await queue.configure(drop(3));
    const [running, oldest, second] = await queue.addMany(3);
    expect(await queue.fetch(1)).toEqual([running]);
    const [third, fourth] = await queue.addMany(2);
    expect(await queue.job(oldest as string)).toMatchObject({ state: 'discarded', discard_reason: 'queue_full' });
    expect(await queue.state(second as string)).toBe('discarded');
    expect(await queue.fetch()).toEqual([third, fourth]);
    expect(await queue.state(running as string)).toBe('active');
    const told = await events(queue.name, 'job.discarded');
    expect(told.map(({ subject }) => subject)).toEqual([oldest, second]);
    expect(told[0]).toMatchObject({ data: { reason: 'queue_full' } });
  });

  it('goes by when a job became available, wherever it waits', async () => {
    const queue = new LimitedQueue();
    await queue.configure(drop(5));
    const later = await queue.add(undefined, { delay_until: '+PT1H' });
    const pending = await queue.add(undefined, { pending: true });
    at(10);
    const prioritised = await queue.add(undefined, { priority: 9 });
    at(20);
    const line = await queue.add();
    at(30);
    const limited = await queue.add({ key: 'stopped', concurrency: 1 });
    const order = [prioritised, line, limited, later];
    for (const [index, id] of order.entries()) {
      at(100 + index);
      await queue.add(undefined, { delay_until: '+PT2H' });
      expect(await queue.state(id)).toBe('discarded');
    }
    expect(await queue.state(pending)).toBe('pending');
  });

  it('refuses when there is nothing to discard, or the request alone is too large', async () => {
    const queue = new LimitedQueue();
    await queue.configure(drop(2));
    await queue.addMany(2);
    await queue.fetch();
    expect((await post(jobFor(queue))).status).toBe(429);
    const many = { jobs: Array(3).fill(jobFor(queue)) };
    expect(await refusal('POST', '/ojs/v1/jobs/batch', many)).toMatchObject({ status: 429, code: 'QUEUE_FULL' });
  });

  it('keeps the last ones of a stream that nobody drains, at the same price for each', async () => {
    const queue = new LimitedQueue();
    await queue.configure(drop(50));
    await okApi('POST', `/ojs/v1/queues/${queue.name}/pause`);
    const stream = async (rounds: number) => {
      let ids: string[] = [];
      for (let round = 0; round < rounds; round++) ids = await queue.addMany(25);
      return ids;
    };
    await stream(4);
    await queue.startCounting();
    await stream(4);
    const early = await queue.rows();
    await stream(30);
    await queue.rows();
    await stream(3);
    const last = await stream(1);
    const late = await queue.rows();
    expect(late.read).toBeLessThanOrEqual(early.read * 1.1);
    // The new job's row, and the old one's twice.
    expect((late.written - late.alarms) / 100).toBeLessThanOrEqual(3);
    expect((await queue.counts()).depth).toBe(50);
    await okApi('POST', `/ojs/v1/queues/${queue.name}/resume`);
    expect((await queue.fetch()).slice(-25)).toEqual(last);
  });
});
