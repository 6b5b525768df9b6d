/** A worker that runs so many jobs of each of its queues at once, over HTTP and over sockets. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { Job, RunOptions, TocsinClient } from '../../src/client';
import { until } from '../support/clock';
import { freshName } from '../support/queue';
import { server, V1 } from '../support/server';
import { watched } from './watched';

server.emptyBeforeEach();
let [mail, video] = ['', ''];
let stop: AbortController;
let running: Promise<void> | undefined;
beforeEach(() => {
  [mail, video] = [freshName('mail'), freshName('video')];
  stop = new AbortController();
  running = undefined;
});
afterEach(async () => {
  stop.abort();
  await running;
});

const start = (client: TocsinClient, handler: unknown, options: Partial<RunOptions>) => {
  running = client
    .worker('w1', { queues: [video, mail] })
    .run({ 'a.b': handler } as never, { signal: stop.signal, log: () => undefined, shutdownTimeoutMs: 0, ...options });
};

const enqueue = async (client: TocsinClient, queue: string, count: number) =>
  (await client.enqueueMany(Array.from({ length: count }, () => ({ type: 'a.b', args: [], options: { queue } })))).map(
    ({ id }) => id,
  );

describe.each([
  ['over sockets', true],
  ['over HTTP', false],
])('a worker with a concurrency for each queue, %s', (_, socket) => {
  it('runs no more of each at once, and all of them in their first attempt', async () => {
    const { client } = watched();
    const ids = [...(await enqueue(client, video, 6)), ...(await enqueue(client, mail, 9))];
    const now: Record<string, number> = { [mail]: 0, [video]: 0 };
    const most: Record<string, number> = { [mail]: 0, [video]: 0 };
    const handler = async ({ queue }: Job) => {
      now[queue] = (now[queue] ?? 0) + 1;
      most[queue] = Math.max(most[queue] ?? 0, now[queue] ?? 0);
      await new Promise((resolve) => setTimeout(resolve, 5));
      now[queue] = (now[queue] ?? 0) - 1;
    };
    start(client, handler, { queueConcurrency: { [video]: 1, [mail]: 3 }, socket });
    for (const id of ids) {
      expect(await client.jobs.wait(id)).toMatchObject({ state: 'completed' });
      const job = await client.get(id);
      expect(job).toMatchObject({ attempt: 1 });
      expect(job).not.toHaveProperty('unusedClaims');
    }
    expect(most).toEqual({ [video]: 1, [mail]: 3 });
  });

  it('continues with the others while one has as many as may run', async () => {
    const { client } = watched();
    const [long] = await enqueue(client, video, 3);
    const handler = ({ queue }: Job) => (queue === video ? new Promise(() => undefined) : 'sent');
    start(client, handler, { queueConcurrency: { [video]: 1 }, concurrency: 4, socket });
    await until(async () => (await client.get(long as string)).state === 'active', 'the long one to begin');
    const [job] = await enqueue(client, mail, 1);
    expect(await client.jobs.wait(job as string)).toMatchObject({ state: 'completed', result: 'sent' });
    expect(await client.jobs.count({ queue: video, state: 'active' })).toBe(1);
  });
});

it('a fetch that says how many it takes of each queue gets no more', async () => {
  for (const queue of [video, mail]) for (let n = 0; n < 4; n++) await server.add('a.b', [n], { queue });
  const fetch = async (counts: unknown) =>
    await server.call('POST', `${V1}/workers/fetch`, { queues: [video, mail], count: 5, counts });
  const { body } = await fetch({ [video]: 1, [mail]: 2 });
  expect((body.jobs as { queue: string }[]).map(({ queue }) => queue)).toEqual([video, mail, mail]);
  for (const wrong of [[], { [video]: 0 }, { [video]: 'a' }]) expect((await fetch(wrong)).status).toBe(400);
});
