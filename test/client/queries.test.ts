/** The client's questions and changes: what it sends, what it gives back, and against the queue itself. */

import { beforeEach, describe, expect, it } from 'vitest';
import {
  ConflictError,
  InvalidJobError,
  type Job,
  NotFoundError,
  TocsinClient,
  UnavailableError,
} from '../../src/client';
import { freshName } from '../support/queue';
import { server } from '../support/server';

import { envelope, fakeQueue } from './fake-queue';

describe('a request', () => {
  const sent = async (call: (client: TocsinClient) => Promise<unknown>) => {
    const urls: string[] = [];
    const bodies: unknown[] = [];
    const service = {
      async fetch(input: string, init: { method?: string; body?: string } = {}) {
        const url = new URL(input);
        urls.push(`${init.method} ${url.pathname.replace('/ojs/v1', '')}${decodeURIComponent(url.search)}`);
        bodies.push(init.body === undefined ? undefined : JSON.parse(init.body));
        return Response.json({ job: envelope({ id: 'x', type: 'a' }, 0), count: 3, jobs: [] });
      },
    };
    await call(new TocsinClient({ service }));
    return { url: urls[0], body: bodies[0] };
  };

  it('writes every condition under its wire name', async () => {
    const { url } = await sent((client) =>
      client.count({
        queue: ['a', 'b'],
        ids: ['1', '2'],
        type: 'mail.*',
        state: ['available', 'active'],
        tags: ['x'],
        group: 'a b',
        priority: { min: -1, max: 5 },
        attempts: 2,
        createdAfter: new Date(0),
        endedBefore: '2030-01-01T00:00:00+02:00',
        errorType: 'Boom',
        deadLetter: true,
        where: { 'args.0.user_id': 42, 'meta["a.b"]': true },
      }),
    );
    expect(url).toBe(
      'GET /jobs/count?queue=a,b&id=1,2&type=mail.*&state=available,active&tag=x&group=a+b&priority_min=-1&priority_max=5&attempts=2' +
        '&created_after=1970-01-01T00:00:00.000Z&ended_before=2030-01-01T00:00:00+02:00&error_type=Boom&dead_letter=true' +
        '&args.0.user_id=42&meta["a.b"]=true',
    );
  });

  it('writes a change with what is to change and nothing else', async () => {
    const change = { priority: null, delay: 1500, retry: { maxAttempts: 4 }, tags: ['x'] };
    expect(await sent((client) => client.patch('id 1', change))).toEqual({
      url: 'PATCH /jobs/id%201',
      body: { priority: null, delay_until: '+PT1.500S', retry: { max_attempts: 4 }, tags: ['x'] },
    });
    const other = await sent((client) => client.patch('x', { delayUntil: null, expiresAt: 0, maxAttempts: null }));
    expect(other.body).toEqual({ delay_until: null, expires_at: '1970-01-01T00:00:00.000Z', max_attempts: null });
  });

  it('that would ask for something else than what was meant is not sent', async () => {
    const { client, requests } = fakeQueue();
    await expect(client.count({ state: [] })).rejects.toThrow(InvalidJobError);
    await expect(client.count({ where: { user_id: 1 } })).rejects.toThrow(InvalidJobError);
    await expect(client.count({ createdAfter: new Date(Number.NaN) })).rejects.toThrow(InvalidJobError);
    // @ts-expect-error it starts at one time only
    await expect(client.patch('x', { delay: 1, delayUntil: 'x' })).rejects.toThrow(InvalidJobError);
    await expect(client.list({ ids: [] }).next()).rejects.toThrow(InvalidJobError);
    expect(requests).toEqual([]);
  });

  it('is repeated when there was no answer, and an answer of another shape is an error', async () => {
    let tries = 0;
    const { client } = fakeQueue(() => {
      if (++tries < 3) throw new Error('cut off');
      return Response.json({ stats: { depth: 1 } });
    });
    expect((await client.queues.stats('q')).depth).toBe(1);
    for (const call of [() => client.count(), () => client.queues.pause('q'), () => client.list().next()]) {
      await expect(call()).rejects.toThrow(UnavailableError);
    }
  });
});

describe('against the queue', () => {
  server.emptyBeforeEach();
  const client = new TocsinClient({
    service: { fetch: async (input, init) => server.send(new Request(input, init as RequestInit)) },
  });
  let queue: string;
  beforeEach(() => {
    queue = freshName('client');
  });

  const all = async (...args: Parameters<TocsinClient['list']>): Promise<Job[]> => {
    const jobs: Job[] = [];
    for await (const job of client.list(...args)) jobs.push(job);
    return jobs;
  };

  it('lists what matches, over pages, up to a limit', async () => {
    const jobs = await client.enqueueMany(
      Array.from({ length: 25 }, (_, n) => ({
        type: n % 5 === 0 ? 'a.five' : 'a.other',
        args: [{ n }],
        options: { queue },
      })),
    );
    const newestFirst = jobs.map(({ id }) => id).reverse();
    expect((await all({ queue }, { pageSize: 4 })).map(({ id }) => id)).toEqual(newestFirst);
    expect((await all({ queue }, { pageSize: 4, limit: 9 })).map(({ id }) => id)).toEqual(newestFirst.slice(0, 9));
    expect(await all({ queue, type: 'a.f*' }, { limit: 0 })).toEqual([]);
    expect((await all({ type: 'a.f*' })).map(({ args }) => args[0])).toEqual([20, 15, 10, 5, 0].map((n) => ({ n })));
    expect(await client.count({ queue, where: { 'args.0.n': 7 } })).toBe(1);
    expect(await client.count()).toBe(25);
  });

  it('changes a job that waits, and says why another cannot be changed', async () => {
    const { id } = await client.enqueue('a.b', [], { queue, delay: '1h' });
    expect(await client.patch(id, { delayUntil: null, priority: 7 })).toMatchObject({
      state: 'available',
      priority: 7,
    });
    await client.cancel(id);
    await expect(client.patch(id, { priority: 1 })).rejects.toThrow(ConflictError);
    await expect(client.patch('01962222-bbbb-7ccc-8ddd-eeeeeeeeeeee', { priority: 1 })).rejects.toThrow(NotFoundError);
  });

  it('pauses, resumes and counts', async () => {
    await client.enqueue('a.b', [], { queue });
    expect(await client.queues.pause(queue)).toEqual({ name: queue, paused: true, status: 'paused' });
    expect(await client.queues.stats(queue)).toMatchObject({ queue, depth: 1, dead: 0, available: 1, completed: 0 });
    expect(await client.queues.resume(queue)).toEqual({ name: queue, paused: false, status: 'active' });
  });
});
