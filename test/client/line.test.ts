/** A worker that runs takes its jobs over a socket where one can be had, and over HTTP where not. */
import { beforeEach, describe, expect, it } from 'vitest';
import type { RunOptions, TocsinClient } from '../../src/client';
import { until } from '../support/clock';
import { freshName } from '../support/queue';
import { server } from '../support/server';
import { watched } from './watched';

server.emptyBeforeEach();
let queue: string;
let stop: AbortController;
beforeEach(() => {
  queue = freshName('line');
  stop = new AbortController();
});

const start = (
  client: TocsinClient,
  handlers: Record<string, unknown>,
  options: Partial<RunOptions> = {},
  queues = [queue],
) => client.worker('w1', { queues }).run(handlers as never, { signal: stop.signal, log: () => undefined, ...options });

const enqueue = (client: TocsinClient, count: number) =>
  client.enqueueMany(Array.from({ length: count }, (_, n) => ({ type: 'a.b', args: [n], options: { queue } })));

const allEnded = async (client: TocsinClient, ids: readonly string[], state = 'completed') => {
  for (const id of ids) expect(await client.jobs.wait(id)).toMatchObject({ state });
};

describe('a worker on a socket', () => {
  it('takes its jobs, reports them and beats over it', async () => {
    const { client, asked } = watched();
    const before = await enqueue(client, 3);
    const running = start(client, { 'a.b': (job: { args: number[] }) => job.args[0] }, { concurrency: 2 });
    await allEnded(
      client,
      before.map(({ id }) => id),
    );
    const after = await enqueue(client, 30);
    await allEnded(
      client,
      after.map(({ id }) => id),
    );
    expect((await client.jobs.result(after[7]?.id as string)).result).toBe(7);
    stop.abort();
    await running;
    const said = asked.filter((path) => path.startsWith('/workers'));
    // The first heartbeat and the last one are requests of their own.
    expect(said).toEqual(['/workers/heartbeat', '/workers/socket', '/workers/heartbeat']);
    expect(await client.queues.stats(queue)).toMatchObject({ completed: 33, active: 0 });
  });

  it('stops a job at once that was cancelled', async () => {
    const { client } = watched();
    const [job] = await enqueue(client, 1);
    let begun = false;
    const reason = new Promise((resolve) => {
      const handler = (_: unknown, { signal }: { signal: AbortSignal }) =>
        new Promise(() => {
          begun = true;
          signal.addEventListener('abort', () => resolve(signal.reason));
        });
      void start(client, { 'a.b': handler }, { shutdownTimeoutMs: 0 });
    });
    await until(() => begun, 'the job to begin');
    await client.cancel(job?.id as string);
    expect(await reason).toMatchObject({ name: 'CancelledError' });
    stop.abort();
  });

  it('takes no more than it has room for', async () => {
    const { client } = watched();
    let [now, most] = [0, 0];
    const handler = async () => {
      most = Math.max(most, ++now);
      await new Promise((resolve) => setTimeout(resolve, 1));
      now--;
    };
    const jobs = await enqueue(client, 40);
    const running = start(client, { 'a.b': handler }, { concurrency: 4 });
    await allEnded(
      client,
      jobs.map(({ id }) => id),
    );
    stop.abort();
    await running;
    expect(most).toBe(4);
  });

  it('ends when an operator says so', async () => {
    const { client } = watched();
    await enqueue(client, 1);
    const running = start(client, { 'a.b': () => 1 });
    await until(async () => (await client.workers.counts()).running === 1, 'the worker to be known');
    await client.queues.stats(queue);
    await client.workers.direct('terminate');
    await running;
  });

  it('continues when the connection breaks off: what was not answered is reported again', async () => {
    const { client, sockets, asked } = watched();
    const [first] = await enqueue(client, 1);
    let finish: (value: unknown) => void = () => undefined;
    const handlers = { 'a.b': () => new Promise((resolve) => (finish = resolve)) };
    const running = start(client, handlers, { concurrency: 1 });
    await until(async () => (await client.get(first?.id as string)).state === 'active', 'the job to begin');
    sockets[0]?.close(1011);
    finish('done');
    await allEnded(client, [first?.id as string]);
    expect(await client.get(first?.id as string)).toMatchObject({ attempt: 1, result: 'done' });
    await until(() => sockets.length === 2, 'another connection');
    const [second] = await enqueue(client, 1);
    await until(async () => (await client.get(second?.id as string)).state === 'active', 'the next job to begin');
    finish('too');
    await allEnded(client, [second?.id as string]);
    stop.abort();
    await running;
    expect(asked.filter((path) => path === '/workers/socket')).toHaveLength(2);
  });
});

describe('a worker fetches over HTTP', () => {
  it.each<[string, Partial<RunOptions>, boolean, string[]]>([
    ['when the server knows no sockets', {}, true, []],
    ['when it is told to', { socket: false }, false, []],
    ['from a pool', {}, false, ['pool:some']],
  ])('%s', async (_, options, refuses, pools) => {
    const { client, asked } = watched((path) => refuses && path === '/workers/socket');
    await client.pools.put('some', { queues: [queue] });
    const jobs = await enqueue(client, 3);
    const running = start(client, { 'a.b': () => 1 }, { ...options, waitMs: 50 }, pools.length > 0 ? pools : [queue]);
    await allEnded(
      client,
      jobs.map(({ id }) => id),
    );
    stop.abort();
    await running;
    expect(asked).toContain('/workers/fetch');
    expect(asked.includes('/workers/socket')).toBe(refuses);
  });
});
