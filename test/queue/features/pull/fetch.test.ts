/** Fetching: who gets which job, in which order, and at what cost. */
import { describe, expect, it } from 'vitest';
import { unwrap } from '../../../../src/job/errors';
import type { ClaimRequest } from '../../../../src/rpc/workers';
import { clock, until } from '../../../support/clock';
import { failOnce, failureOf } from '../../../support/faults';
import { losing } from '../../../support/losing';
import { type JobChange, TestQueue } from '../../../support/queue';
import { server, V1 } from '../../../support/server';

server.emptyBeforeEach();
clock.restoreAfterEach();

/** Begins a fetch that waits in the queue; resolves once it stands in line. */
async function waitIn(
  q: TestQueue,
  place: number,
  change: Partial<ClaimRequest> = {},
): Promise<{ ids: Promise<string[]> }> {
  const waiting = q.api.claim({ count: 1, wait_ms: 20_000, ...change });
  const ids = waiting.then((outcome) => unwrap(outcome).map(({ record }) => record.id));
  ids.catch(() => undefined);
  await q.waiting('work', place);
  return { ids };
}

/** A queue that exists and has nothing to give. */
async function emptyQueue(): Promise<TestQueue> {
  const q = new TestQueue();
  await q.add();
  await q.claim();
  return q;
}

const jobs = (count: number, change: JobChange = {}): JobChange[] => Array.from({ length: count }, () => change);

describe('waiting fetches', () => {
  it('are served in the order of their arrival, as many as there are jobs', async () => {
    const q = await emptyQueue();
    const fetches = [];
    for (let n = 1; n <= 5; n++) fetches.push((await waitIn(q, n)).ids);
    const first = await q.add();
    expect(await fetches[0]).toEqual([first]);
    const [second, third] = (await q.enqueue({}, {})).map(({ id }) => id);
    expect(await Promise.all([fetches[1], fetches[2]])).toEqual([[second], [third]]);
    await q.waiting('work', 2);
  });

  it('make about as many claims as there are jobs', async () => {
    const q = await emptyQueue();
    const alone = await q.transactionsOf(() => q.add());
    await q.claim();
    const fetches = Array.from({ length: 200 }, () => q.api.claim({ count: 1, wait_ms: 20_000 }));
    await q.waiting('work', 200);
    const made = await q.transactionsOf(async () => {
      for (let n = 0; n < 3; n++) {
        await q.add();
        await q.waiting('work', 199 - n);
      }
    });
    // An enqueue and a turn for each job, which has a savepoint.
    expect(made).toBeLessThanOrEqual(3 * 3 * alone);
    await q.enqueue(...jobs(197));
    for (const fetch of await Promise.all(fetches)) expect(unwrap(fetch)).toHaveLength(1);
  });

  it('share many jobs that arrive at once, each as many as it asked for', async () => {
    const q = await emptyQueue();
    const fetches = [];
    for (let n = 1; n <= 3; n++) fetches.push((await waitIn(q, n, { count: 3 })).ids);
    const ids = (await q.enqueue(...jobs(7))).map(({ id }) => id);
    expect(await Promise.all(fetches)).toEqual([ids.slice(0, 3), ids.slice(3, 6), ids.slice(6)]);
  });

  it('come before one that arrives later and does not wait', async () => {
    const q = await emptyQueue();
    const waiting = await waitIn(q, 1);
    const [added, late] = await Promise.all([q.add(), q.claim()]);
    expect(late).toEqual([]);
    expect(await waiting.ids).toEqual([added]);
  });

  it('get what becomes due, is given back, or is released while they wait', async () => {
    const q = new TestQueue();
    const due = await q.add({ scheduledAt: Date.now() + 600 });
    expect(await (await waitIn(q, 1)).ids).toEqual([due]);
    const again = await waitIn(q, 1);
    await q.nack(due, { message: '' }, { requeue: true });
    expect(await again.ids).toEqual([due]);
    await q.api.pause();
    await q.nack(due, { message: '' }, { requeue: true });
    const paused = await waitIn(q, 1);
    await q.api.resume();
    expect(await paused.ids).toEqual([due]);
  });

  it('leave a job to the next one when one of them goes', async () => {
    const q = await emptyQueue();
    const gone = await waitIn(q, 1, { waiter: 'a' });
    const next = await waitIn(q, 2, { waiter: 'b' });
    await q.api.withdraw('a');
    expect(await gone.ids).toEqual([]);
    const id = await q.add();
    expect(await next.ids).toEqual([id]);
  });

  it('are not notified of a failure that another one met', async () => {
    const q = await emptyQueue();
    const fetches = [await waitIn(q, 1), await waitIn(q, 2)].map(({ ids }) =>
      ids.catch((error: Error) => error.message),
    );
    await q.inside(({ sql }) => failOnce(sql, /INTO leases/, 1));
    const ids = (await q.enqueue({}, {})).map(({ id }) => id);
    expect(await Promise.all(fetches)).toEqual([[ids[0]], expect.stringContaining('storage failed')]);
    expect(await q.claim()).toMatchObject([{ id: ids[1], attempt: 1 }]);
  });

  it('get a job whose key has room again, also where a request that failed has cost the memory of it', async () => {
    const q = await emptyQueue();
    const limit = { key: 'k', limits: { concurrency: 1 }, on_limit: 'wait' as const };
    const limited = { limit, body: { rate_limit: { key: 'k', concurrency: 1 } } };
    const [first, second] = await q.enqueue(limited, limited);
    expect(await q.claim({ count: 2 })).toMatchObject([{ id: first?.id }]);
    const next = await waitIn(q, 1);
    await q.inside(({ sql }) => failOnce(sql, /INSERT INTO jobs/));
    await expect(q.add({ pending: true })).rejects.toThrow('storage failed');
    await q.ack(first?.id as string);
    expect(await next.ids).toEqual([second?.id]);
  });

  it('end when their time is up', async () => {
    const q = new TestQueue();
    await q.add({ scheduledAt: Date.now() + 60_000 });
    expect(await q.claim({ wait_ms: 30 })).toEqual([]);
    await q.waiting('work', 0);
  });
});

describe('a fetch by type', () => {
  it('takes only these, in order, and leaves the others to others', async () => {
    const [a, b, c] = [
      await server.enqueue('q', { type: 'a.x' }),
      await server.enqueue('q', { type: 'b.x' }),
      await server.enqueue('q', { type: 'a.x' }),
    ];
    expect(await server.takeIds('q', { types: ['b.x', 'c.x'], count: 10 })).toEqual([b]);
    expect(await server.job(a)).toMatchObject({ state: 'available', attempt: 0 });
    expect(await server.takeIds('q', { types: ['a.x'] })).toEqual([a]);
    expect(await server.takeIds('q', { count: 10 })).toEqual([c]);
  });

  it('is not woken by other types, and gets its own', async () => {
    const q = await emptyQueue();
    const alone = await q.transactionsOf(() => q.add({ type: 'd.x' }));
    const fetches = [];
    for (const type of ['a.x', 'b.x', 'c.x']) fetches.push(await waitIn(q, fetches.length + 1, { types: [type] }));
    let other = '';
    const made = await q.transactionsOf(async () => {
      other = await q.add({ type: 'd.x' });
    });
    expect(made).toBe(alone);
    const id = await q.add({ type: 'b.x' });
    expect(await fetches[1]?.ids).toEqual([id]);
    await q.waiting('work', 2);
    expect(await q.state(other)).toBe('available');
  });

  it('finds its job behind a long backlog of other types, and does not read that again', async () => {
    const q = new TestQueue();
    for (let n = 0; n < 20; n++) await q.enqueue(...jobs(1000, { type: 'other.x' }));
    const id = await q.add({ type: 'mine.x' });
    expect(await q.claim({ types: ['mine.x'] })).toMatchObject([{ id }]);
    const later = await q.add({ type: 'mine.x' });
    await q.startCounting();
    expect(await q.claim({ types: ['mine.x'] })).toMatchObject([{ id: later }]);
    expect((await q.counted()).read).toBeLessThan(50);
    expect(await q.claim()).toMatchObject([{ type: 'other.x' }]);
  });

  it('finds jobs that come back and jobs of higher priority', async () => {
    const q = new TestQueue();
    const [first] = await q.enqueue({ type: 'mine.x' }, { type: 'other.x' });
    const types = ['mine.x'];
    await q.claim({ types });
    expect(await q.claim({ types })).toEqual([]);
    await q.nack(first?.id as string, { message: '', retry_in: 0 });
    const urgent = await q.add({ type: 'mine.x', priority: 10 });
    expect((await q.claim({ types, count: 5 })).map(({ id }) => id)).toEqual([urgent, first?.id]);
  });

  it.each([
    ['a text', 'a.x', 'types'],
    ['none', [], 'types'],
    ['what is no type', ['a.x', 'No Type'], 'types[1]'],
    ['a number', [7], 'types[0]'],
    ['too many', Array.from({ length: 1001 }, (_, n) => `a${n}`), 'types'],
  ])('that names %s is refused and takes nothing', async (_, types, field) => {
    const id = await server.enqueue('q');
    const body = { queues: ['q'], types };
    expect(await server.refusal('POST', `${V1}/workers/fetch`, body)).toEqual({
      status: 400,
      code: 'invalid_request',
      field,
    });
    expect(await server.job(id)).toMatchObject({ state: 'available', attempt: 0 });
  });
});

describe('a fetch over several queues', () => {
  it('gives what it has claimed when a later queue fails, and what a later one has when the first fails', async () => {
    const first = await server.enqueue('q1');
    const second = await server.enqueue('q2');
    expect(await losing('claim', 2).takeIds(['q1', 'q2'], { count: 2 })).toEqual([first]);
    const third = await server.enqueue('q1');
    expect(await losing('claim', 1).takeIds(['q1', 'q2'], { count: 2 })).toEqual([second]);
    const none = await losing('claim', 2).call('POST', `${V1}/workers/fetch`, { queues: ['q3', 'q1'] });
    expect(none.status).toBe(500);
    expect(await server.takeIds(['q1'])).toEqual([third]);
  });
});

it('a fetch fails when storage fails before its turn, and keeps no worker busy', async () => {
  const q = await emptyQueue();
  const waiting = q.api.claim({ count: 1, wait_ms: 20_000 });
  const failed = failureOf(waiting);
  await q.waiting('work', 1);
  const heal = await q.inside(({ engine, sql }) => {
    const { committer } = engine as unknown as { committer: { hooks: { before(now: number): void } } };
    const { before } = committer.hooks;
    committer.hooks.before = () => {
      sql.exec('SELECT * FROM not_there');
    };
    engine.pull.start('alarm');
    return () => {
      committer.hooks.before = before;
    };
  });
  expect((await failed).message).toContain('not_there');
  await q.waiting('work', 0);
  await q.inside(heal);
  const id = await q.add();
  expect((await q.claim()).map((job) => job.id)).toEqual([id]);
});

describe('a fetch whose client has gone', () => {
  const begin = async (queue: string) =>
    server.send(
      new Request(`http://localhost${V1}/workers/fetch`, {
        method: 'POST',
        headers: { 'Content-Type': 'application/json' },
        body: JSON.stringify({ queues: [queue], worker_id: 'w1', wait_ms: 20_000 }),
      }),
    );

  it('waits no longer and takes no job', async () => {
    const q = new TestQueue('q');
    await server.enqueue('q');
    await server.takeOne('q');
    const { body } = await begin('q');
    const reader = (body as ReadableStream<Uint8Array>).getReader();
    expect(new TextDecoder().decode((await reader.read()).value)).toBe(' ');
    await q.waiting('work', 1);
    await reader.cancel();
    await q.waiting('work', 0);
    const id = await server.enqueue('q');
    expect(await server.job(id)).toMatchObject({ state: 'available', attempt: 0 });
  });

  it('gives back what was on its way', async () => {
    const q = new TestQueue('q');
    await server.enqueue('q');
    await server.takeOne('q');
    const { body } = await begin('q');
    const reader = (body as ReadableStream<Uint8Array>).getReader();
    await reader.read();
    const id = await server.enqueue('q');
    await q.waiting('work', 0);
    expect(await server.job(id)).toMatchObject({ state: 'active', attempt: 1 });
    await reader.cancel();
    await until(async () => (await server.state(id)) === 'available', 'the job to come back');
    expect(await server.take('q')).toMatchObject([{ id, attempt: 1 }]);
  });

  it('is answered as if it had found nothing when its claim fails after the first blank', async () => {
    const q = new TestQueue('q');
    await server.enqueue('q');
    await server.takeOne('q');
    // Both are past the first blank.
    const [waiting, response] = [await begin('q'), await begin('q')];
    await q.inside(({ sql }) => failOnce(sql, /INTO leases/));
    const id = await server.enqueue('q');
    expect(await waiting.json()).toEqual({ jobs: [] });
    expect(await response.json()).toMatchObject({ jobs: [{ id }] });
  });
});
