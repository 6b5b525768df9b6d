import { describe, expect, it } from 'vitest';
import { until } from '../../../support/clock';
import { runsOf } from '../../../support/handlers';
import { TestQueue } from '../../../support/queue';
import { server } from '../../../support/server';

const TRACE = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';

describe('a delivery with the payload `envelope`', () => {
  it('carries the full envelope, who delivers it, and what its headers promise', async () => {
    const meta = { traceparent: TRACE, note: 'ü' };
    const id = await server.add('plain.order', [{}, 'ü', null], { queue: 'delivery', priority: 3, meta, tags: ['t'] });
    await server.jobIn(id, 'completed');
    const [run] = await runsOf('PLAIN', id);
    expect(run?.body).toMatchObject({
      worker_id: 'push_plain',
      delivery_id: expect.stringMatching(/^del_/),
      job: {
        ...{ specversion: '1.0', id, type: 'plain.order', queue: 'delivery', state: 'active', attempt: 1, priority: 3 },
        ...{ args: [{}, 'ü', null], meta, tags: ['t'], max_attempts: 3, worker_id: 'push_plain', timeout_ms: 300 },
        started_at: expect.any(String),
      },
    });
    expect(run?.headers).toMatchObject({
      'content-type': 'application/json',
      'x-ojs-delivery-id': run?.body.delivery_id,
      'x-ojs-job-id': id,
      'x-ojs-attempt': '1',
      'x-ojs-idempotency-window': expect.stringMatching(/^\d+$/),
      traceparent: TRACE,
    });
    expect(Number(run?.headers['x-ojs-idempotency-window'])).toBeGreaterThanOrEqual(1);
  });

  it('has a new delivery id for each attempt, and names the attempt', async () => {
    const retry = { initial_interval: 0, jitter: false };
    const id = await server.add('plain.order', [{ status: 500 }], { queue: 'delivery', retry });
    await server.jobIn(id, 'discarded');
    const runs = await runsOf('PLAIN', id);
    expect(runs.map(({ headers }) => headers['x-ojs-attempt'])).toEqual(['1', '2', '3']);
    expect(new Set(runs.map(({ headers }) => headers['x-ojs-delivery-id'])).size).toBe(3);
    const failure = { attempt: 1, message: 'The handler answered 500.' };
    expect(runs[1]).toMatchObject({ body: { job: { error: failure } } });
  });

  it('leaves out a traceparent that is not a valid header value', async () => {
    for (const traceparent of ['a\nb', 'ü', 7, 'x'.repeat(300)]) {
      const id = await server.add('plain.order', [{}], { queue: 'delivery', meta: { traceparent } });
      await server.jobIn(id, 'completed');
      expect((await runsOf('PLAIN', id))[0]?.headers).not.toHaveProperty('traceparent');
    }
  });
});

describe('a job that is alone', () => {
  it('takes three transactions: it is enqueued, claimed and completed, then no other is looked for', async () => {
    const q = new TestQueue('delivery-alone');
    const runOne = async () => {
      await server.jobIn(await server.add('plain.order', [{}], { queue: q.name }), 'completed');
    };
    await runOne();
    // And the savepoint of the claim.
    expect(await q.transactionsOf(runOne)).toBe(4);
  });
});

describe('a delivery with the payload `job`', () => {
  it('carries the bare envelope, and the rest in headers', async () => {
    const id = await server.add('bare.order', [{}], { queue: 'delivery' });
    await server.jobIn(id, 'completed');
    const [run] = await runsOf('PLAIN', id);
    expect(run?.body).toMatchObject({ id, type: 'bare.order', state: 'active', attempt: 1 });
    expect(run?.headers).toMatchObject({ 'x-ojs-delivery-id': expect.stringMatching(/^del_/), 'x-ojs-attempt': '1' });
  });
});

describe('a delivery by the library', () => {
  it('hands the handler its delivery id and attempt', async () => {
    const retry = { initial_interval: 0, jitter: false };
    const id = await server.add('work.do', [{ do: 'throw', until: 1 }], { queue: 'delivery', retry });
    await server.jobIn(id, 'completed');
    const runs = await runsOf('WORK', id);
    expect(runs.map(({ attempt }) => attempt)).toEqual([1, 2]);
    expect(new Set(runs.map(({ delivery_id }) => delivery_id)).size).toBe(2);
  });
});

describe('targets of one queue', () => {
  it('each get their own jobs, also when two of them are the same Worker with other options', async () => {
    const types = ['plain.order', 'bare.order', 'work.do', 'raw.order', 'wide.order'];
    const jobs = Array.from({ length: 100 }, (_, n) => ({
      type: types[n % types.length] as string,
      args: [{}],
      options: { queue: 'several' },
    }));
    const ids = await server.addAll(jobs);
    for (const id of ids) expect(await server.jobIn(id, 'completed')).toMatchObject({ attempt: 1 });
    const bare = await runsOf('PLAIN', ids[1] as string);
    expect(bare).toMatchObject([{ body: { type: 'bare.order' } }]);
    await until(async () => (await runsOf('PLAIN', ids[0] as string)).length === 1, 'one delivery for one job');
  });
});
