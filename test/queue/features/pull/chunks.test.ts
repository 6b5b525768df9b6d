/** Chunked handlers of workers that pull: a fetch brings whole chunks, once they are full or have waited long enough. */
import { describe, expect, it } from 'vitest';
import { clock, iso, SECOND, T0, until } from '../../../support/clock';
import { TestQueue } from '../../../support/queue';
import { type Json, server, V1 } from '../../../support/server';
import { WorkerSocket } from '../../../support/worker-socket';

clock.startAtT0();

/** Rows come by five, or after five seconds; single jobs one by one. */
const HANDLERS = [{ type: 'rows.insert', batch: { size: 5, wait_ms: 5_000 } }, { type: 'single.one' }];
const BY_GROUP = [{ type: 'rows.insert', batch: { size: 5, wait_ms: 5_000, by: 'group' } }];

const wants = (handlers: Json[]): Json => ({ handlers, types: handlers.map(({ type }) => type) });

const addAll = (queue: TestQueue, count: number, options: Json = {}, type = 'rows.insert') =>
  server.addAll(Array.from({ length: count }, () => ({ type, args: [], options: { queue: queue.name, ...options } })));

const fetch = async (queue: TestQueue, count = 10, handlers: Json[] = HANDLERS): Promise<Json[]> => {
  const body = { queues: [queue.name], count, ...wants(handlers) };
  return (await server.ok(200, 'POST', `${V1}/workers/fetch`, body)).jobs as Json[];
};

const idsOf = (jobs: readonly Json[]) => jobs.map(({ id }) => id);

describe('a chunk that a worker fetches', () => {
  it('is there once it is full, and counts as one job', async () => {
    const queue = new TestQueue();
    const first = await addAll(queue, 4);
    expect(await fetch(queue, 1)).toEqual([]);
    const ids = [...first, ...(await addAll(queue, 4))];
    const jobs = await fetch(queue, 1);
    expect(idsOf(jobs)).toEqual(ids.slice(0, 5));
    const [{ chunk }] = jobs as [Json];
    expect(chunk).toEqual({ id: jobs[0]?.delivery_id, jobs: 5 });
    for (const job of jobs) expect(job.chunk).toEqual(chunk);
    expect(await fetch(queue)).toEqual([]);
  });

  it('is there once its oldest job has waited long enough, and comes beside single jobs', async () => {
    const queue = new TestQueue();
    const ids = await addAll(queue, 2);
    const [single] = await addAll(queue, 1, {}, 'single.one');
    expect(idsOf(await fetch(queue))).toEqual([single]);
    clock.at(5 * SECOND - 1);
    expect(await fetch(queue)).toEqual([]);
    clock.at(5 * SECOND);
    const jobs = await fetch(queue);
    expect(idsOf(jobs)).toEqual(ids);
    expect(jobs[0]?.chunk).toMatchObject({ jobs: 2 });
  });

  it('leaves a job alone that is on its last attempt since it was changed', async () => {
    const queue = new TestQueue();
    const ids = await addAll(queue, 4);
    expect(await fetch(queue)).toEqual([]);
    await server.ok(200, 'PATCH', `${V1}/jobs/${ids[1]}`, { max_attempts: 1 });
    const jobs = await fetch(queue);
    expect(idsOf(jobs)).toEqual([ids[1]]);
    expect(jobs[0]).not.toHaveProperty('chunk');
    ids.push(...(await addAll(queue, 2)));
    expect(idsOf(await fetch(queue))).toEqual(ids.filter((id) => id !== ids[1]));
  });

  it('is gathered for this worker alone: one that says nothing of chunks gets jobs at once', async () => {
    const queue = new TestQueue();
    const ids = await addAll(queue, 3);
    expect(await fetch(queue)).toEqual([]);
    const plain = await fetch(queue, 2, [{ type: 'rows.insert' }]);
    expect(idsOf(plain)).toEqual(ids.slice(0, 2));
    for (const job of plain) expect(job).not.toHaveProperty('chunk');
    clock.at(5 * SECOND);
    expect(idsOf(await fetch(queue))).toEqual(ids.slice(2));
  });

  it('has jobs of one group where the handler says so', async () => {
    const queue = new TestQueue();
    const ids: string[] = [];
    for (const group of ['a', 'b', 'a', 'b', 'a', 'a', 'a']) ids.push(...(await addAll(queue, 1, { group })));
    expect(idsOf(await fetch(queue, 10, BY_GROUP))).toEqual([0, 2, 4, 5, 6].map((at) => ids[at]));
    clock.at(5 * SECOND);
    expect(idsOf(await fetch(queue, 10, BY_GROUP))).toEqual([ids[1], ids[3]]);
  });

  it('may be of any type that has no handler of its own', async () => {
    const queue = new TestQueue();
    const rest = [{ type: '*', batch: { size: 2, wait_ms: 5_000 } }, { type: 'single.one' }];
    const fetchAny = async () =>
      (await server.ok(200, 'POST', `${V1}/workers/fetch`, { queues: [queue.name], count: 10, handlers: rest }))
        .jobs as Json[];
    const [a] = await addAll(queue, 1, {}, 'any.a');
    const [single] = await addAll(queue, 1, {}, 'single.one');
    await addAll(queue, 1, {}, 'any.b');
    expect(idsOf(await fetchAny())).toEqual([single]);
    const [other] = await addAll(queue, 1, {}, 'any.a');
    expect(idsOf(await fetchAny())).toEqual([a, other]);
  });

  it('has up to 4 MiB of jobs', async () => {
    const queue = new TestQueue();
    const handlers = [{ type: 'rows.insert', batch: { size: 1000, wait_ms: 3_600_000 } }];
    const args = ['x'.repeat(900_000)];
    for (let n = 0; n < 5; n++) await server.add('rows.insert', args, { queue: queue.name });
    expect(await fetch(queue, 10, handlers)).toHaveLength(4);
  });

  it('continues to wait after an eviction', async () => {
    const queue = new TestQueue();
    const ids = await addAll(queue, 4);
    expect(await fetch(queue)).toEqual([]);
    await queue.evict();
    expect(await fetch(queue)).toEqual([]);
    ids.push(...(await addAll(queue, 1)));
    expect(idsOf(await fetch(queue))).toEqual(ids);
  });

  it('runs alone in a strict group, and gives back unused what fails after its first failure', async () => {
    const queue = new TestQueue();
    await server.configure(queue.name, { groups: { order: 'strict' } });
    const retry = { initial_interval: 'PT10S', jitter: false };
    const ids = await addAll(queue, 6, { group: 'a', retry });
    const jobs = await fetch(queue);
    expect(idsOf(jobs)).toEqual(ids.slice(0, 5));
    clock.at(5 * SECOND);
    expect(await fetch(queue)).toEqual([]);
    await queue.evict();
    await server.ack(ids[0] as string);
    await server.ok(200, 'POST', `${V1}/workers/nack`, { job_id: ids[1], error: { message: 'no' } });
    for (const id of ids.slice(2, 5)) {
      await server.ok(200, 'POST', `${V1}/workers/nack`, { job_id: id, error: { message: 'no' } });
      expect(await server.job(id)).toMatchObject({ state: 'available', attempt: 0 });
    }
    expect(await fetch(queue)).toEqual([]);
    clock.at(25 * SECOND);
    expect(idsOf(await fetch(queue))).toEqual(ids.slice(1));
  });
});

describe('a job that waits for a worker to fetch its chunk', () => {
  it('says so, and until when', async () => {
    const queue = new TestQueue();
    const [id] = await addAll(queue, 2);
    await fetch(queue);
    expect((await server.job(id)).waiting_for).toMatchObject({ reason: 'chunk', until: iso(T0 + 5 * SECOND) });
  });
});

describe('a fetch that waits for a chunk', () => {
  it('is answered when the chunk is full', async () => {
    const queue = new TestQueue();
    await addAll(queue, 4);
    const body = { queues: [queue.name], count: 10, wait_ms: 20_000, ...wants(HANDLERS) };
    const answer = server.ok(200, 'POST', `${V1}/workers/fetch`, body);
    await queue.waiting('work', 1);
    await addAll(queue, 1);
    expect((await answer).jobs).toHaveLength(5);
  });
});

describe('a socket of a worker with chunked handlers', () => {
  const open = (queue: TestQueue) =>
    WorkerSocket.open(queue.name, {
      types: HANDLERS.map(({ type }) => type).join(','),
      handlers: JSON.stringify(HANDLERS),
    });

  it('brings a chunk when its time has come, also after an eviction, and uses up one of what it is ready for', async () => {
    const queue = new TestQueue();
    await addAll(queue, 1, {}, 'single.one');
    const socket = await open(queue);
    socket.ready(2);
    await socket.given(1);
    const ids = await addAll(queue, 3);
    await until(async () => (await queue.armedAt()) !== null, 'the alarm');
    await queue.evict();
    await queue.passTo(T0 + 5 * SECOND - 1);
    expect(socket.jobs).toHaveLength(1);
    await queue.passTo(T0 + 5 * SECOND);
    expect(idsOf(await socket.given(4)).slice(1)).toEqual(ids);
    await addAll(queue, 1, {}, 'single.one');
    await socket.heartbeat();
    expect(socket.jobs).toHaveLength(4);
    socket.ready(1);
    await socket.given(5);
  });
});

describe('what a worker says of its chunks', () => {
  it.each([
    ['a size of 0', { size: 0, wait_ms: 1 }, 'size'],
    ['a size of 1001', { size: 1001, wait_ms: 1 }, 'size'],
    ['no wait', { size: 10 }, 'wait_ms'],
    ['a wait above an hour', { size: 10, wait_ms: 3_600_001 }, 'wait_ms'],
    ['another key', { size: 10, wait_ms: 1, by: 'tenant' }, 'by'],
    ['an unknown member', { size: 10, wait_ms: 1, bytes: 5 }, 'bytes'],
  ])('is refused with its field: %s', async (_, batch, member) => {
    const body = { queues: ['any'], handlers: [{ type: 'a.b', batch }] };
    expect(await server.refusal('POST', `${V1}/workers/fetch`, body)).toEqual({
      status: 422,
      code: 'invalid_request',
      field: `handlers[0].batch.${member}`,
    });
  });

  it('is refused unless it is an object', async () => {
    const body = { queues: ['any'], handlers: [{ type: 'a.b', batch: 5 }] };
    expect(await server.refusal('POST', `${V1}/workers/fetch`, body)).toMatchObject({ status: 400 });
  });
});
