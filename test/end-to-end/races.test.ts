/** Races of sleeps, signals and steps, and steps with a policy of their own: pushed over a binding, and pulled. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { defineHandlers } from '../../src/handler';
import { liveClient } from '../client/live-client';
import { clock, HOUR, T0, until } from '../support/clock';
import { race, tries } from '../support/durable';
import { freshName, TestQueue } from '../support/queue';
import { server, V1 } from '../support/server';

server.emptyBeforeEach();
clock.startAtT0();
const client = liveClient();

type Worker = { socket: boolean } | undefined;

describe.each<[string, string, Worker]>([
  ['pushed', 'work', undefined],
  ['pulled over HTTP', 'pulled', { socket: false }],
  ['pulled over a socket', 'pulled', { socket: true }],
])('a durable job that is %s', (_, kind, worker) => {
  let queue: string;
  let object: TestQueue;
  let stop: AbortController;
  let running: Promise<unknown> | undefined;

  beforeEach(() => {
    queue = freshName('races');
    object = new TestQueue(queue);
    stop = new AbortController();
    const handlers = defineHandlers({ 'pulled.race': race, 'pulled.tries': tries }, { log: () => undefined });
    const options = { signal: stop.signal, waitMs: 50, ...worker };
    running = worker && client.worker('w1', { queues: [queue] }).run(handlers, options);
  });

  afterEach(async () => {
    stop.abort();
    await running;
  });

  const enqueue = async (what: string, how?: string) =>
    (await client.enqueue(`${kind}.${what}`, how === undefined ? [] : [how], { queue })).id;
  const asleepWith = (id: string, name: string) =>
    until(async () => {
      const [{ state }, steps] = await Promise.all([client.get(id), client.jobs.steps(id)]);
      return state === 'scheduled' && name in steps;
    }, `the job sleeps with ${name}`);
  const completed = async (id: string) => {
    await until(async () => (await client.get(id)).state === 'completed', 'the job has completed');
    const job = await client.get(id);
    expect(job.errors).toBeUndefined();
    expect(job.attempt).toBe(1);
    return job.result;
  };

  it.each([
    ['race', [HOUR], 'slept'],
    ['any', [HOUR / 2, HOUR], 'slept'],
    ['allSettled', [HOUR / 2, HOUR], ['rejected', 'fulfilled', 'fulfilled']],
  ])('ends in a race of time: %s', async (how, moments, result) => {
    const id = await enqueue('race', how);
    for (const moment of moments) {
      await asleepWith(id, 'nap');
      // What was recorded may be some ms later than the enqueue.
      await object.passTo(T0 + moment + 5_000);
    }
    expect(await completed(id)).toEqual(result);
  });

  it('ends in a race that a signal wins', async () => {
    const id = await enqueue('race', 'race');
    await asleepWith(id, 'nap');
    await client.signal(id, 'go', 'signalled');
    expect(await completed(id)).toBe('signalled');
  });

  it.each([
    ['limit', 'late'],
    ['unawaited', 'done'],
    ['inside', 'TypeError'],
  ])('ends in its first run: %s', async (how, result) => {
    expect(await completed(await enqueue('race', how))).toBe(result);
  });

  it('tries a step again without another attempt, and no signal takes its name', async () => {
    const id = await enqueue('tries');
    await asleepWith(id, 'charge');
    expect(await client.jobs.steps(id)).toMatchObject({
      charge: { until: expect.any(Number), tries: 1, failed: { type: 'RangeError', message: 'declined' } },
    });
    expect(await server.refusal('POST', `${V1}/jobs/${id}/signals/charge`, {})).toMatchObject({ status: 409 });
    const nextTry = async () => Number((await client.jobs.steps(id)).charge?.until);
    await object.passTo(await nextTry());
    await until(async () => (await client.jobs.steps(id)).charge?.tries === 2, 'the second try');
    await object.passTo(await nextTry());
    const refunded = { name: 'StepError', type: 'TypeError', tries: 2 };
    expect(await completed(id)).toEqual({ charged: 3, refunded, tried: 3 });
  });
});
