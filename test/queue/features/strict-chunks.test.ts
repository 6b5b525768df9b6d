/** A chunk of a strict group whose jobs are reported in any order, and what remains when memory does not. */
import { describe, expect, it } from 'vitest';
import { clock, SECOND } from '../../support/clock';
import { TestQueue } from '../../support/queue';
import { type Json, server, V1 } from '../../support/server';

clock.startAtT0();

const HANDLERS = [{ type: 'rows.insert', batch: { size: 3, wait_ms: 1_000 } }];

async function fetch(queue: TestQueue, rest: Json = {}): Promise<Json[]> {
  const body = { queues: [queue.name], count: 10, handlers: HANDLERS, types: ['rows.insert'], ...rest };
  return (await server.ok(200, 'POST', `${V1}/workers/fetch`, body)).jobs as Json[];
}

const idsOf = (jobs: readonly Json[]) => jobs.map(({ id }) => id);

/** A chunk of three that runs, and a job behind it. */
async function running(
  rest: Json = {},
  prepare: Parameters<TestQueue['inside']>[0] = () => {},
): Promise<{ queue: TestQueue; ids: string[] }> {
  const queue = new TestQueue();
  await server.configure(queue.name, { groups: { order: 'strict' } });
  const options = { queue: queue.name, group: 'g', retry: { initial_interval: 'PT10S', jitter: false } };
  const ids = await server.addAll(Array.from({ length: 4 }, () => ({ type: 'rows.insert', args: [], options })));
  await queue.inside(prepare);
  expect(idsOf(await fetch(queue, rest))).toEqual(ids.slice(0, 3));
  return { queue, ids };
}

type Report = (id: string) => Promise<unknown>;
const fails: Report = (id) => server.nack(id);
const failsSoon: Report = (id) => server.nack(id, { error: { code: 'E', message: 'm', retry_in: 1 } });
const returns: Report = (id) => server.nack(id, { requeue: true, attempt_used: false });
const requeues: Report = (id) => server.nack(id, { requeue: true });

/** Something else in the same object fails once it has changed something: memory is rebuilt. */
const rollBack = (queue: TestQueue) =>
  queue.inside(({ engine }) => {
    try {
      engine.writeNow(() => {
        engine.q.store.changes++;
        throw new Error('a neighbour fails');
      });
    } catch {}
  });

const between: [what: string, act: (queue: TestQueue) => Promise<unknown>][] = [
  ['nothing', async () => {}],
  ['an eviction', (queue) => queue.evict()],
  ['a rollback', rollBack],
  // The lease row is written again.
  [
    'a heartbeat, and an eviction',
    async (queue) => {
      await server.heartbeat('w', { visibility_timeout_ms: 60_000 });
      await queue.evict();
    },
  ],
];

describe.each(between)('a chunk of a strict group, with %s between its reports', (_, act) => {
  it.each([[[0, 1, 2]], [[0, 2, 1]], [[1, 0, 2]], [[1, 2, 0]], [[2, 0, 1]], [[2, 1, 0]]])(
    'is the same afterwards when its jobs are reported in the order %j',
    async (order) => {
      const { queue, ids } = await running({ worker_id: 'w' });
      const reports: Report[] = [fails, failsSoon, failsSoon];
      for (const at of order) {
        await reports[at]?.(ids[at] as string);
        await act(queue);
      }
      expect(await server.job(ids[0])).toMatchObject({ state: 'retryable', attempt: 1 });
      for (const id of ids.slice(1, 3)) {
        const job = await server.job(id);
        expect(job).toMatchObject({ state: 'available', attempt: 0 });
        expect(job).not.toHaveProperty('error');
      }
      clock.advance(5 * SECOND);
      expect(await fetch(queue)).toEqual([]);
      clock.advance(6 * SECOND);
      expect(idsOf(await fetch(queue))).toEqual(ids.slice(0, 3));
    },
  );

  it.each([
    ['was given back', returns],
    ['was requeued', requeues],
  ])('runs the first job before one that failed, when the first %s', async (_, first) => {
    const { queue, ids } = await running({ worker_id: 'w' });
    const [a, b, c] = ids as [string, string, string];
    await failsSoon(b);
    await act(queue);
    await server.ack(c);
    await act(queue);
    await first(a);
    await act(queue);
    clock.advance(2 * SECOND);
    expect(idsOf(await fetch(queue)).slice(0, 2)).toEqual([a, b]);
  });

  it('counts a failure behind a job that has completed, and holds the group up with it', async () => {
    const { queue, ids } = await running({ worker_id: 'w' });
    const [a, b, c] = ids as [string, string, string];
    await fails(b);
    await act(queue);
    await server.ack(a);
    await act(queue);
    await fails(c);
    await act(queue);
    expect(await server.job(b)).toMatchObject({ state: 'retryable', attempt: 1 });
    expect(await server.job(c)).toMatchObject({ state: 'available', attempt: 0 });
    clock.advance(5 * SECOND);
    expect(await fetch(queue)).toEqual([]);
    clock.advance(6 * SECOND);
    expect(idsOf(await fetch(queue))).toEqual(ids.slice(1));
  });
});

it('a chunk that is larger than a row of leases runs its first job first, whichever is reported first', async () => {
  const { queue, ids } = await running({}, (open) => {
    open.q.store.leases.maxRowBytes = 200;
  });
  const [a, b, c] = ids as [string, string, string];
  await failsSoon(b);
  await server.ack(c);
  await queue.evict();
  await returns(a);
  expect(await server.job(b)).toMatchObject({ state: 'available', attempt: 0 });
  expect(idsOf(await fetch(queue)).slice(0, 2)).toEqual([a, b]);
});

it('a chunk of a strict group runs its first job first though the lease of a later one has ended before', async () => {
  const { queue, ids } = await running({ worker_id: 'w', visibility_timeout_ms: 30_000 });
  const [a, b, c] = ids as [string, string, string];
  clock.advance(20 * SECOND);
  await server.heartbeat('w', { active_jobs: [a, c], visibility_timeout_ms: 30_000 });
  await queue.passTo(Date.now() + 11 * SECOND);
  await server.ack(c);
  await failsSoon(a);
  await queue.passTo(Date.now() + 10 * SECOND);
  expect(idsOf(await fetch(queue)).slice(0, 2)).toEqual([a, b]);
  // The end of its lease used no attempt up.
  expect(await server.job(b)).toMatchObject({ state: 'active', attempt: 1 });
});

it.each([[[0, 1, 2]], [[0, 2, 1]], [[1, 0, 2]], [[1, 2, 0]], [[2, 0, 1]], [[2, 1, 0]]])(
  'a chunk of a strict group keeps its order when it is given back unused again and again, in the order %j',
  async (order) => {
    const { queue, ids } = await running({ worker_id: 'w' });
    for (let times = 1; times <= 4; times++) {
      for (const at of order) await returns(ids[at] as string);
      for (const id of ids) expect(await server.job(id)).toMatchObject({ attempt: 0 });
      // From the second time on the first job pauses, and no other one goes before it.
      let found = idsOf(await fetch(queue, { worker_id: 'w' }));
      for (let waited = 0; found.length === 0 && waited < 60; waited++) {
        clock.advance(SECOND / 4);
        found = idsOf(await fetch(queue, { worker_id: 'w' }));
      }
      expect(found).toEqual(ids.slice(0, 3));
    }
  },
);

it('a chunk of a strict group runs a job that was put off behind the first one, which must run again', async () => {
  const { queue, ids } = await running({ worker_id: 'w' });
  const [a, b, c] = ids as [string, string, string];
  await server.nack(b, { requeue: true, attempt_used: false, snooze: { in: '1h' } });
  await server.ack(c);
  await failsSoon(a);
  clock.advance(2 * SECOND);
  expect(idsOf(await fetch(queue)).slice(0, 2)).toEqual([a, b]);
});
