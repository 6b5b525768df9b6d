/** How many queues a key may bring into being. */
import { evictDurableObject } from 'cloudflare:test';
import { env } from 'cloudflare:workers';
import { expect, it } from 'vitest';
import type { Env } from '../../../src/config';
import { createApp } from '../../../src/http/app';
import { clock, DAY } from '../../support/clock';
import { directory } from '../../support/directory';
import { freshName } from '../../support/queue';
import { type Json, server, TestServer, V1 } from '../../support/server';
import { WorkerSocket } from '../../support/worker-socket';

clock.startAtT0();
server.emptyBeforeEach();

const MOST = 3;
const API_KEYS = JSON.stringify([
  { key: 'web', scopes: ['data:write', 'data:read'], name: 'web' },
  { key: 'other', scopes: ['data:write'], name: 'other' },
  { key: 'operator', role: 'operator', name: 'Olga' },
  { key: 'admin', role: 'admin', name: 'Ada' },
]);

/** A server that knows the keys, with an isolate's memory of its own only where the test resets it. */
const as = (key: string) =>
  new TestServer((request) => {
    const sent = new Request(request);
    sent.headers.set('Authorization', `Bearer ${key}`);
    return createApp().fetch(sent, { ...env, API_KEYS, MAX_NEW_QUEUES: MOST } as unknown as Env);
  });

const job = (queue: string) => ({ type: 'mail.send', args: [], options: { queue } });
const enqueue = (from: TestServer, queue: string) => from.call('POST', `${V1}/jobs`, job(queue));

it('a key without admin:write creates a limited number of queues a day, and uses those that exist', async () => {
  const web = as('web');
  const [one, two, three] = [freshName(), freshName(), freshName()];
  expect((await enqueue(web, one)).status).toBe(201);
  await web.ok(201, 'POST', `${V1}/queues`, { name: two });
  await web.ok(201, 'POST', `${V1}/jobs/batch`, { jobs: [job(one), job(three)] });

  const ways: [string, string, (queue: string) => Json][] = [
    ['POST', '/jobs', job],
    ['POST', '/jobs/batch', (queue) => ({ jobs: [job(one), job(queue)] })],
    ['POST', '/jobs/bulk', (queue) => ({ jobs: [job(queue)] })],
    ['POST', '/queues', (name) => ({ name })],
    ['POST', '/cron', (queue) => ({ name: queue, expression: '@daily', job_template: job(queue) })],
    ['POST', '/workflows', (queue) => ({ type: 'chain', steps: [job(queue)] })],
  ];
  for (const [method, path, body] of ways) {
    const name = freshName();
    const answer = await web.call(method, `${V1}${path}`, body(name));
    expect(answer, path).toMatchObject({
      status: 429,
      body: { error: { code: 'rate_limited', details: { created: MOST, max_new_queues: MOST } } },
    });
    expect(Number(answer.headers.get('Retry-After'))).toBeGreaterThan(0);
  }
  expect((await web.call('PUT', `${V1}/queues/${freshName()}/config`, { concurrency: 2 })).status).toBe(429);
  const { queues } = await server.ok(200, 'GET', `${V1}/queues`);
  expect((queues as Json[]).map(({ name }) => name).sort()).toEqual([one, two, three].sort());

  // Neither those that exist, nor other keys, nor operators are held up.
  expect((await enqueue(web, two)).status).toBe(201);
  expect((await enqueue(as('other'), freshName())).status).toBe(201);
  for (const key of ['operator', 'admin']) {
    for (let more = 0; more <= MOST; more++) expect((await enqueue(as(key), freshName())).status).toBe(201);
  }
});

it('the count outlives the memory of the directory, and begins again the next day', async () => {
  const web = as('web');
  for (let count = 0; count < MOST; count++) expect((await enqueue(web, freshName())).status).toBe(201);
  await evictDurableObject(directory());
  expect((await enqueue(web, freshName())).status).toBe(429);
  clock.advance(DAY);
  expect((await enqueue(web, freshName())).status).toBe(201);
});

it('a socket enqueues in the name of its key', async () => {
  const web = as('web');
  const queue = freshName();
  const socket = await WorkerSocket.open(queue, {}, web);
  socket.say({ type: 'enqueue', id: 1, jobs: [job(freshName())] });
  await socket.get('enqueued');
  // The object has the bound of its own environment, which is the default.
  await directory().admitQueues(
    'web',
    Array.from({ length: 999 }, (_, index) => `made-up-${index}`),
    1_000,
  );
  socket.say({ type: 'enqueue', id: 2, jobs: [job(freshName())] });
  await socket.get('error');
  expect(socket.of('error')).toMatchObject([{ id: 2, error: { code: 'rate_limited', details: { created: 1_000 } } }]);
});
