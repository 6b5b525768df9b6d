/** A client that lives long enqueues over sockets where they can be had, and over HTTP where not. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import {
  AbortedError,
  type ClientOptions,
  DuplicateJobError,
  InvalidJobError,
  type TocsinClient,
  UnavailableError,
} from '../../src/client';
import { until } from '../support/clock';
import { freshName } from '../support/queue';
import { server } from '../support/server';
import { type WatchedSocket, watched } from './watched';

server.emptyBeforeEach();
let queue: string;
const clients: TocsinClient[] = [];
beforeEach(() => {
  queue = freshName('produced');
});
afterEach(async () => {
  for (const client of clients.splice(0)) await client.close();
});

const produce = (options: Partial<ClientOptions> = {}, refuses?: (path: string) => boolean) => {
  const all = watched(refuses, { socket: true, ...options });
  clients.push(all.client);
  const posts = () => all.asked.filter((path) => path.startsWith('/jobs')).length;
  return { ...all, posts };
};
type Produced = ReturnType<typeof produce>;

const enqueue = (client: TocsinClient, n = 0, options: object = {}) =>
  client.enqueue('a.b', [n], { queue, ...options });

/** Enqueues until it goes over a socket. @returns that socket */
async function connected({ client, posts, sockets }: Produced): Promise<WatchedSocket> {
  await until(async () => {
    const before = posts();
    await enqueue(client);
    return posts() === before;
  }, 'an enqueue over a socket');
  return sockets.at(-1) as WatchedSocket;
}

const waiting = async (client: TocsinClient) => (await client.queues.stats(queue)).available;

describe('a client with sockets', () => {
  it('enqueues over one for each queue what is gathered', async () => {
    const all = produce();
    const { client, posts, sockets, asked } = all;
    const socket = await connected(all);
    const [before, said] = [posts(), socket.said.length];
    const jobs = await Promise.all(Array.from({ length: 250 }, (_, n) => enqueue(client, n)));
    expect(socket.said.slice(said).map(({ type, jobs: own }) => [type, (own as unknown[]).length])).toEqual([
      ['enqueue', 100],
      ['enqueue', 100],
      ['enqueue', 50],
    ]);
    expect(jobs[7]).toMatchObject({ type: 'a.b', args: [7], queue, state: 'available', attempt: 0, maxAttempts: 3 });
    expect(await client.get(jobs[249]?.id as string)).toMatchObject({ args: [249], queue });
    expect(posts()).toBe(before + 1);
    queue = freshName('other');
    await connected(all);
    expect(sockets).toHaveLength(2);
    expect(asked.filter((path) => path === '/workers/socket')).toHaveLength(2);
  });

  it('shares them with the clients made from it, and takes none of these down', async () => {
    const all = produce();
    await connected(all);
    const before = all.posts();
    const stop = new AbortController();
    await enqueue(all.client.with({ signal: stop.signal }));
    stop.abort();
    await expect(enqueue(all.client.with({ signal: stop.signal }))).rejects.toThrow(AbortedError);
    await enqueue(all.client);
    expect([all.posts(), all.sockets.length]).toEqual([before, 1]);
  });

  it('gives each caller the error that it would have had over HTTP', async () => {
    const all = produce({ retry: false });
    await connected(all);
    const wrong = { maxAttempts: -1 };
    const { client } = all;
    const http = await client
      .with({ socket: false })
      .enqueue('a.b', [], { queue, ...wrong })
      .catch((error) => error);
    const alone = await enqueue(client, 1, wrong).catch((error) => error);
    expect(alone).toBeInstanceOf(InvalidJobError);
    expect([alone.message, alone.field, alone.details]).toEqual([http.message, http.field, http.details]);
    const unique = { key: 'k' };
    const told = await Promise.allSettled(
      [1, 2, 3, 4].map((n) => enqueue(client, n, n === 2 ? wrong : { unique: n > 2 ? unique : undefined })),
    );
    expect(told.map((one) => (one.status === 'rejected' ? one.reason.constructor : one.value.args))).toEqual([
      [1],
      InvalidJobError,
      [3],
      DuplicateJobError,
    ]);
  });

  it('hands on warnings', async () => {
    const warnings: string[] = [];
    const all = produce({ onWarning: (text) => warnings.push(text) });
    await connected(all);
    await all.client.schemas.put('x.y', 1, { type: 'array', items: { type: 'integer' } });
    await all.client.enqueue('x.y', ['text'], { queue });
    expect(warnings).toMatchObject([expect.stringContaining('x.y')]);
  });

  it('waits with the next ones while much is not answered', async () => {
    const all = produce({ maxBatch: 1 });
    const socket = await connected(all);
    const before = socket.said.length;
    socket.hears = () => false;
    const jobs = Array.from({ length: 100 }, (_, n) => enqueue(all.client, n));
    await until(() => socket.said.length >= before + 64, 'the messages that may be on their way');
    await server.ok(200, 'GET', '/ojs/v1/queues');
    expect(socket.said.length).toBe(before + 64);
    socket.release();
    await Promise.all(jobs);
    expect(socket.said.length).toBe(before + 100);
  });
});

describe('when its connection breaks off before the answer', () => {
  const breaksOff = (socket: WatchedSocket) => {
    socket.hears = ({ type }) => {
      if (type === 'enqueued') socket.close(1011);
      return type !== 'enqueued';
    };
  };

  it('an enqueue fails with an unknown outcome, and is not repeated', async () => {
    const all = produce();
    const socket = await connected(all);
    const before = await waiting(all.client);
    breaksOff(socket);
    const error = await enqueue(all.client).catch((thrown) => thrown);
    expect(error).toBeInstanceOf(UnavailableError);
    expect(error).toMatchObject({ outcomeUnknown: true, code: 'network_error' });
    expect(await waiting(all.client)).toBe((before ?? 0) + 1);
  });

  it('one that chose ids is repeated, and finds what is there', async () => {
    const all = produce({ safeRetries: true, sleep: async () => undefined });
    const socket = await connected(all);
    const before = await waiting(all.client);
    breaksOff(socket);
    const jobs = await Promise.all([1, 2, 3].map((n) => enqueue(all.client, n)));
    expect(jobs).toMatchObject([{ args: [1] }, { args: [2] }, { args: [3] }]);
    expect(await waiting(all.client)).toBe((before ?? 0) + 3);
    const again = await connected(all);
    expect([all.sockets.length, again === socket]).toEqual([2, false]);
  });

  it('a silent connection is abandoned', async () => {
    const all = produce({ safeRetries: true, sleep: async () => undefined });
    const socket = await connected(all);
    const impatient = watched(undefined, { socket: true, timeoutMs: 300, safeRetries: true });
    clients.push(impatient.client);
    const silent = await connected({
      ...impatient,
      posts: () => impatient.asked.filter((path) => path.startsWith('/jobs')).length,
    });
    silent.hears = () => false;
    const job = await enqueue(impatient.client, 9);
    expect(await all.client.get(job.id)).toMatchObject({ args: [9] });
    expect(socket.said.length).toBeGreaterThan(0);
  });
});

describe('it enqueues over HTTP', () => {
  it('when the server knows no sockets', async () => {
    const { client, posts, asked } = produce({}, (path) => path === '/workers/socket');
    await enqueue(client);
    await enqueue(client);
    expect([posts(), asked.filter((path) => path === '/workers/socket').length]).toEqual([2, 1]);
  });

  it('when the server is of an earlier release, whose sockets take no jobs', async () => {
    const all = produce();
    await enqueue(all.client);
    await until(() => all.sockets.length === 1, 'a socket');
    const [socket] = all.sockets as [WatchedSocket];
    socket.says = ({ type, id }) => {
      if (type !== 'enqueue') return true;
      const error = { status: 400, code: 'invalid_request', message: 'no', details: { field: 'type' } };
      queueMicrotask(() => socket.tell({ type: 'error', id, error }));
      return false;
    };
    await until(async () => {
      await enqueue(all.client);
      return socket.of('enqueue').length > 0;
    }, 'a message with jobs');
    const before = all.posts();
    await enqueue(all.client);
    expect([all.posts(), socket.of('enqueue').length, all.sockets.length]).toEqual([before + 1, 1, 1]);
  });

  it('what is too large for a message, has a key, or wants all of the answer', async () => {
    const all = produce();
    await connected(all);
    const before = all.posts();
    await all.client.enqueue('a.b', ['x'.repeat(300_000)], { queue });
    await enqueue(all.client, 1, { idempotencyKey: 'k' });
    expect(await enqueue(all.client.with({ answers: 'full' }))).toHaveProperty('retryEffective');
    expect(all.posts()).toBe(before + 3);
  });

  it('after its sockets were closed, which happens when what is under way was answered', async () => {
    const all = produce();
    const socket = await connected(all);
    socket.hears = () => false;
    const under = enqueue(all.client, 5);
    await until(() => JSON.stringify(socket.said.at(-1)).includes('[5]'), 'the message');
    const closed = all.client.close();
    socket.release();
    expect((await under).args).toEqual([5]);
    await closed;
    const before = all.posts();
    await enqueue(all.client);
    expect([all.posts(), all.sockets.length]).toEqual([before + 1, 1]);
  });
});
