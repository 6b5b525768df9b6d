/** A worker that runs by itself, against the queue: it works, obeys, and ends. */

import { beforeEach, describe, expect, it } from 'vitest';
import { TocsinClient } from '../../src/client';
import { freshName } from '../support/queue';
import { server } from '../support/server';

import { errorAnswer, fakeQueue } from './fake-queue';
import { all, liveClient } from './live-client';

server.emptyBeforeEach();
const client = liveClient();
let queue: string;
let stop: AbortController;
beforeEach(() => {
  queue = freshName('run');
  stop = new AbortController();
});

describe('a worker that runs', () => {
  it('reports what its handlers return and throw, and what it does not know, and leaves when it is stopped', async () => {
    const options = { queue, maxAttempts: 1 };
    const jobs = await client.enqueueMany([
      { type: 'math.add', args: [1, 2], options },
      { type: 'math.fail', args: [], options },
      { type: 'math.unknown', args: [], options },
    ]);
    const worker = client.worker('w1', { queues: [queue] });
    const running = worker.run(
      {
        'math.add': (job) => Number(job.args[0]) + Number(job.args[1]),
        'math.fail': () => {
          throw new RangeError('no');
        },
      },
      { signal: stop.signal, concurrency: 2, waitMs: 100 },
    );
    const outcomes = await Promise.all(jobs.map(({ id }) => client.jobs.wait(id)));
    stop.abort();
    await running;
    expect(outcomes).toMatchObject([
      { state: 'completed', result: 3 },
      { state: 'discarded', error: { type: 'RangeError' } },
      { state: 'discarded', error: { type: 'no_handler' } },
    ]);
    expect(await all(client.workers.list())).toEqual([]);
  });

  it('finishes what it has begun before it ends', async () => {
    const { id } = await client.enqueue('slow.one', [], { queue });
    let finish = (): void => undefined;
    let ended: Promise<void> | undefined;
    const begun = new Promise<void>((started) => {
      const worker = client.worker('w1', { queues: [queue] });
      const handler = () => {
        started();
        return new Promise<string>((resolve) => {
          finish = () => resolve('done');
        });
      };
      ended = worker.run({ 'slow.one': handler }, { signal: stop.signal, concurrency: 1 });
    });
    await begun;
    stop.abort();
    expect(await client.jobs.result(id)).toMatchObject({ state: 'active' });
    finish();
    await ended;
    expect(await client.jobs.result(id)).toMatchObject({ state: 'completed', result: 'done' });
  });
  it('ends when an operator says so', async () => {
    const worker = client.worker('w1', { queues: [queue] });
    await worker.heartbeat();
    await client.workers.direct('terminate', 'w1');
    await worker.run({}, { signal: stop.signal });
  });

  it('goes on after a fetch that failed, and says what went wrong', async () => {
    const errors: unknown[] = [];
    let fetches = 0;
    const { client: other } = fakeQueue(({ path }) => {
      if (path === '/workers/heartbeat') return Response.json({ state: 'running', jobs_extended: [] });
      if (++fetches === 1) return errorAnswer(500, 'backend_error');
      stop.abort();
      return Response.json({ jobs: [] });
    });
    const onError = (error: unknown) => errors.push(error);
    await other.worker('w', { queues: ['a'] }).run({}, { signal: stop.signal, onError });
    expect(errors).toMatchObject([{ code: 'backend_error' }]);
    expect(fetches).toBe(2);
  });

  it('knows the arguments of each type', () => {
    const typed = new TocsinClient<{ 'a.b': [string]; 'c.d': [number] }>({ url: 'http://localhost' });
    const worker = typed.worker('w', { queues: ['a'] });
    const run = () =>
      worker.run(
        {
          'a.b': (job) => job.args[0].toUpperCase(),
          // @ts-expect-error a number has no upper case
          'c.d': (job) => job.args[0].toUpperCase(),
        },
        { signal: stop.signal },
      );
    expect(run).toBeTypeOf('function');
  });
});
