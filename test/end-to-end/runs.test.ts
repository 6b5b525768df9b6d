/** Handlers that wait for jobs: pushed over a binding, and pulled; in one queue and in two. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { defineHandlers } from '../../src/handler';
import { liveClient } from '../client/live-client';
import { clock, HOUR, T0, until } from '../support/clock';
import { child, family } from '../support/durable';
import { freshName, TestQueue } from '../support/queue';
import { type Json, server } from '../support/server';

server.emptyBeforeEach();
clock.startAtT0();
const client = liveClient();

type Worker = { socket: boolean } | undefined;

describe.each<[string, string, Worker]>([
  ['pushed', 'work', undefined],
  ['pulled over HTTP', 'pulled', { socket: false }],
  ['pulled over a socket', 'pulled', { socket: true }],
])('a handler that is %s', (_, kind, worker) => {
  let queue: string;
  let other: string;
  let stop: AbortController;
  let running: Promise<unknown> | undefined;

  beforeEach(() => {
    queue = freshName('runs');
    other = freshName('runs');
    stop = new AbortController();
    const handlers = defineHandlers({ 'pulled.family': family, 'pulled.child': child }, { log: () => undefined });
    const options = { signal: stop.signal, waitMs: 50, ...worker };
    // A fetch from several queues waits by the clock, which stands still.
    const workers = worker ? [queue, other] : [];
    running = Promise.all(workers.map((name) => client.worker(`w-${name}`, { queues: [name] }).run(handlers, options)));
  });

  afterEach(async () => {
    stop.abort();
    await running;
  });

  const enqueue = async (how: string, where = queue) =>
    (await client.enqueue(`${kind}.family`, [how, `${kind}.child`, where], { queue })).id;
  const ended = async (id: string) => {
    await until(async () => ['completed', 'discarded'].includes((await client.get(id)).state), 'the job has ended');
    const job = await client.get(id);
    expect(job.attempt).toBe(1);
    return job;
  };
  const childrenOf = async (id: string) => (await client.jobs.page({ parent: id })).jobs;
  const asleepWith = (id: string, name: string) =>
    until(async () => {
      const [{ state }, steps] = await Promise.all([client.get(id), client.jobs.steps(id)]);
      return state === 'scheduled' && name in steps;
    }, `the job sleeps with ${name}`);

  it.each([
    ['its own queue', () => queue],
    ['another queue', () => other],
  ])('gets the result of a job in %s', async (_, where) => {
    const id = await enqueue('one', where());
    expect(await ended(id)).toMatchObject({ state: 'completed', result: { text: 'only', parent: id } });
    expect(await childrenOf(id)).toMatchObject([{ type: `${kind}.child`, queue: where(), state: 'completed' }]);
    expect(await client.jobs.steps(id)).toMatchObject({
      only: { result: { text: 'only' }, run: { queue: where(), type: `${kind}.child` } },
    });
  });

  it('gets the error of a job', async () => {
    const caught = await enqueue('fails');
    expect(await ended(caught)).toMatchObject({ state: 'completed', result: ['ChildError', 'discarded', 'FAIL'] });
    const id = await enqueue('ends', other);
    expect(await ended(id)).toMatchObject({
      state: 'discarded',
      error: { message: expect.stringContaining('was discarded: no only') },
    });
    expect(await client.deadLetters.get(id)).toMatchObject({ id });
  });

  it.each([
    ['several jobs', 'all', ['a', 'discarded', 'c']],
    ['jobs and steps', 'mix', ['one', 'two', 'three']],
  ])('gets the results of %s in order', async (_, how, result) => {
    expect(await ended(await enqueue(how))).toMatchObject({ state: 'completed', result });
  });

  it('waits no more for a job that lost a race, which is cancelled at the end', async () => {
    const object = new TestQueue(queue);
    const id = await enqueue('race');
    await asleepWith(id, 'nap');
    await object.passTo(T0 + HOUR + 5_000);
    expect(await ended(id)).toMatchObject({ state: 'completed', result: ['slept', 'then'] });
    await until(
      async () => (await childrenOf(id)).some(({ state }) => state === 'cancelled'),
      'the one that lost is cancelled',
    );
  });

  it('waits no longer than its timeout', async () => {
    const object = new TestQueue(queue);
    const id = await enqueue('late', other);
    await asleepWith(id, 'late');
    await object.passTo(T0 + HOUR + 5_000);
    expect(await ended(id)).toMatchObject({ state: 'completed', result: 'RunTimeoutError' });
    await until(async () => (await childrenOf(id))[0]?.state === 'cancelled', 'the other job is cancelled');
  });
});

it('a URL waits for jobs by what it answers', async () => {
  const queue = freshName('runs');
  const order = { body: '{"status":"completed","result":7}' };
  const jobs: Json[] = [{ type: 'web.order', args: [order], options: { queue } }];
  const runs = [
    { name: 'one', jobs },
    { name: 'two', jobs: [...jobs, ...jobs], all: true, timeout_ms: HOUR },
  ];
  const body = JSON.stringify({ status: 'snoozed', runs });
  const id = await server.add('web.anywhere.order', [{ body, again: '{"status":"completed","result":"done"}' }], {
    queue,
  });
  expect(await server.jobIn(id, ['completed', 'discarded'])).toMatchObject({ result: 'done', attempt: 1 });
  expect(await client.jobs.steps(id)).toMatchObject({
    one: { result: 7 },
    two: { result: [{ result: 7 }, { result: 7 }], run: { jobs: 2, ended: 2, failed: 0 } },
  });
});
