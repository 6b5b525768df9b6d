/** Steps whose results do not come with their job: a handler gets each when it reaches the step. */
import { beforeEach, expect, it } from 'vitest';
import { defineHandlers } from '../../src/handler';
import { liveClient } from '../client/live-client';
import { clock, T0, until } from '../support/clock';
import { large } from '../support/durable';
import { freshName, TestQueue } from '../support/queue';
import { server } from '../support/server';

server.emptyBeforeEach();
clock.startAtT0();
const client = liveClient();
let queue: string;
beforeEach(() => {
  queue = freshName('large');
});

const BYTES = 600 * 1024;
const inState = (id: string, state: string) =>
  until(async () => (await client.get(id)).state === state, `the job is ${state}`);
const add = (type: string) =>
  client.enqueue(type, [], { queue, retry: { maxAttempts: 2, initialInterval: 1000, jitter: false } });

async function runsOnce(id: string): Promise<void> {
  await inState(id, 'retryable');
  const large = { resultBytes: BYTES + 2 };
  expect(await client.jobs.steps(id)).toMatchObject({ a: large, b: large, c: large });
  expect((await client.jobs.step(id, 'b')).result).toHaveLength(BYTES);
  await new TestQueue(queue).passTo(T0 + 1000);
  await inState(id, 'completed');
  expect(await client.get(id)).toMatchObject({ attempt: 2, result: Array(3).fill(['1', BYTES]) });
}

it('a handler that is pushed to recalls them over its call', async () => {
  const { id } = await add('work.large');
  await runsOnce(id);
});

it('a handler that pulls asks for those that did not come with the job', async () => {
  const stop = new AbortController();
  const handlers = defineHandlers({ 'trip.large': large }, { log: () => undefined });
  const running = client.worker('w1', { queues: [queue] }).run(handlers, { signal: stop.signal, waitMs: 50 });
  const { id } = await add('trip.large');
  await runsOnce(id);
  stop.abort();
  await running;
});
