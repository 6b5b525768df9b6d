/** A worker of several queues on sockets, and what it has at hand. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { RunOptions, TocsinClient } from '../../src/client';
import { until } from '../support/clock';
import { freshName } from '../support/queue';
import { server, V1 } from '../support/server';
import { watched } from './watched';

server.emptyBeforeEach();
let queue: string;
let stop: AbortController;
let running: Promise<void> | undefined;
beforeEach(() => {
  queue = freshName('several');
  stop = new AbortController();
  running = undefined;
});
afterEach(async () => {
  stop.abort();
  await running;
});

const start = (client: TocsinClient, handler: unknown, options: Partial<RunOptions> = {}, queues = [queue]) => {
  const handlers = { 'a.b': handler } as never;
  running = client
    .worker('w1', { queues })
    .run(handlers, { signal: stop.signal, log: () => undefined, shutdownTimeoutMs: 0, ...options });
};

const enqueue = async (client: TocsinClient, count: number, to = queue) =>
  (
    await client.enqueueMany(
      Array.from({ length: count }, (_, n) => ({ type: 'a.b', args: [n], options: { queue: to } })),
    )
  ).map(({ id }) => id);

const allEnded = async (client: TocsinClient, ids: readonly string[]) => {
  for (const id of ids) expect(await client.jobs.wait(id)).toMatchObject({ state: 'completed' });
  expect(await client.get(ids.at(-1) as string)).toMatchObject({ attempt: 1 });
};

/** A handler that tells how many of it ran at once. */
function counted(work: () => Promise<void> | void) {
  const seen = { now: 0, most: 0 };
  const handler = async () => {
    seen.most = Math.max(seen.most, ++seen.now);
    await work();
    seen.now--;
  };
  return { seen, handler };
}

describe('a worker of several queues', () => {
  it('has a socket to each, and runs no more jobs at once than it may', async () => {
    const { client, asked, sockets } = watched();
    const queues = [queue, freshName('several'), freshName('several')];
    const ids = (await Promise.all(queues.map((name) => enqueue(client, 12, name)))).flat();
    const { seen, handler } = counted(() => new Promise((resolve) => setTimeout(resolve, 1)));
    start(client, handler, { concurrency: 3 }, queues);
    await allEnded(client, ids);
    const [late] = await enqueue(client, 1, queues[2]);
    await allEnded(client, [late as string]);
    expect(seen.most).toBe(3);
    expect(asked).not.toContain('/workers/fetch');
    expect(asked).not.toContain('/workers/report');
    expect(sockets.map((socket) => socket.queue).sort()).toEqual([...queues].sort());
    for (const socket of sockets) expect(socket.of('report').length).toBeGreaterThan(0);
  });

  it('fetches from those that it has no socket to', async () => {
    const without = freshName('several');
    const { client, asked } = watched((path, query) => path === '/workers/socket' && query.get('queue') === without);
    const ids = [...(await enqueue(client, 3)), ...(await enqueue(client, 3, without))];
    start(client, () => 1, {}, [queue, without]);
    await allEnded(client, ids);
    expect(asked).toContain('/workers/fetch');
    await allEnded(client, await enqueue(client, 2));
  });

  it('gives back unused what waits for its handlers for too long', async () => {
    const { client, sockets } = watched();
    const other = freshName('several');
    const [long] = await enqueue(client, 1, other);
    start(client, () => new Promise(() => undefined), { concurrency: 1 }, [queue, other]);
    await until(async () => (await client.get(long as string)).state === 'active', 'the long one to begin');
    const [urgent] = await enqueue(client, 1);
    const own = sockets.find((socket) => socket.queue === queue);
    const backs = () => own?.of('report').flatMap(({ reports }) => reports as Record<string, unknown>[]) ?? [];
    await until(() => backs().length > 0, 'the urgent one to go back');
    expect(backs()).toMatchObject([{ action: 'nack', requeue: true, attempt_used: false, job_id: urgent }]);
    const [job] = await client.worker('w2', { queues: [queue] }).fetch({ waitMs: 5000 });
    expect(job).toMatchObject({ id: urgent, attempt: 1 });
    expect(await client.get(long as string)).toMatchObject({ state: 'active' });
  });
});

describe('a worker whose handlers end fast', () => {
  const sizes = (all: ReturnType<typeof watched>) =>
    all.sockets[0]?.heard.filter(({ type }) => type === 'jobs').map(({ jobs }) => (jobs as unknown[]).length) ?? [];

  it('has the next jobs at hand, and runs one after the other', async () => {
    const all = watched();
    const ids = await enqueue(all.client, 60);
    const { seen, handler } = counted(() => undefined);
    start(all.client, handler, { concurrency: 1 });
    await allEnded(all.client, ids);
    expect(seen.most).toBe(1);
    expect(Math.max(...sizes(all))).toBeGreaterThan(1);
    expect(sizes(all).length).toBeLessThan(60);
  });

  it('sends each report on its own when its handlers are slow', async () => {
    const all = watched();
    const ids = await enqueue(all.client, 10);
    start(all.client, () => new Promise((resolve) => setTimeout(resolve, 15)), { concurrency: 1 });
    await allEnded(all.client, ids);
    expect(sizes(all)).toEqual(Array(10).fill(1));
  });

  it('gives back what it has at hand when it ends', async () => {
    const all = watched();
    const ids = await enqueue(all.client, 300);
    let ran = 0;
    const end = Promise.withResolvers<void>();
    start(all.client, () => (++ran < 100 ? undefined : end.promise), { concurrency: 1, shutdownTimeoutMs: 10_000 });
    await until(() => ran === 100, 'a hundred jobs');
    stop.abort();
    end.resolve();
    await running;
    expect(await all.client.queues.stats(queue)).toMatchObject({ completed: 100, active: 0, available: 200 });
    expect(await all.client.get(ids[100] as string)).toMatchObject({ attempt: 0 });
  });
});

it('steps and checkpoints go over the socket, and what is on record has won', async () => {
  const { client, asked, sockets } = watched();
  const [id] = await enqueue(client, 1);
  type Context = {
    step: (name: string, run: () => unknown) => Promise<unknown>;
    checkpoint: (state: unknown) => Promise<void>;
  };
  const seen: unknown[] = [];
  start(client, async (_: unknown, ctx: Context) => {
    seen.push(await ctx.step('charge', () => ({ chargeId: 7, some_name: null })));
    const raced = async () => {
      await server.ok(200, 'PUT', `${V1}/jobs/${id}/steps/mail`, { result: { first: true } });
      return { first: false };
    };
    seen.push(await ctx.step('mail', raced));
    await ctx.checkpoint({ some_name: 1 });
    return 'done';
  });
  await allEnded(client, [id as string]);
  expect(seen).toEqual([{ chargeId: 7, some_name: null }, { first: true }]);
  expect(await client.jobs.steps(id as string)).toMatchObject({ charge: { result: { chargeId: 7, some_name: null } } });
  expect(asked.filter((path) => /checkpoint|steps/.test(path))).toEqual([`/jobs/${id}/steps`]);
  const reports = sockets[0]?.of('report').flatMap((said) => said.reports as Record<string, unknown>[]);
  expect(reports?.map(({ action }) => action)).toEqual(['step', 'step', 'checkpoint', 'ack']);
  expect(reports?.[2]).toMatchObject({ state: { some_name: 1 } });
});

it('progress goes over the socket, and says at once that the job was cancelled', async () => {
  const { client, asked, sockets } = watched();
  const [id] = await enqueue(client, 1);
  const steps = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const ended = Promise.withResolvers<unknown>();
  type Context = { progress: (done: number, message?: string, data?: object) => Promise<void>; signal: AbortSignal };
  start(client, async (_: unknown, ctx: Context) => {
    await ctx.progress(0.25, 'a quarter', { rows: 5 });
    steps[0]?.resolve();
    await steps[1]?.promise;
    await ctx.progress(0.5).catch(() => undefined);
    ended.resolve(ctx.signal.reason);
  });
  await steps[0]?.promise;
  expect(await client.jobs.progress(id as string)).toMatchObject({
    progress: 0.25,
    message: 'a quarter',
    data: { rows: 5 },
  });
  const [socket] = sockets;
  if (socket) socket.hears = ({ type }) => type !== 'taken';
  await client.cancel(id as string);
  steps[1]?.resolve();
  expect(await ended.promise).toMatchObject({ name: 'CancelledError' });
  expect(asked.filter((path) => path.endsWith('/progress'))).toEqual([`/jobs/${id}/progress`]);
  expect(
    socket?.of('report').flatMap(({ reports }) => (reports as { action: string }[]).map(({ action }) => action)),
  ).toEqual(['progress', 'progress']);
});
