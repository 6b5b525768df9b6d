// `tocsin token` asks for what its options say, and prints the token alone.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { after, before, it } from 'node:test';
import { tocsin } from './cli.mjs';

let asked;
const server = createServer(async (request, response) => {
  let text = '';
  for await (const part of request) text += part;
  asked = { call: `${request.method} ${request.url}`, key: request.headers.authorization, body: JSON.parse(text) };
  response.writeHead(201, { 'Content-Type': 'application/json' });
  response.end('{"token":"a.b.c","expires_at":"2026-11-28T00:00:00Z"}');
});
before(async () => {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
});
after(() => server.close());

const run = (...args) =>
  tocsin(['token', ...args, '--key', 'k'], { env: { TOCSIN_URL: `http://127.0.0.1:${server.address().port}` } });

it('tocsin token makes a token that reads and signals', async () => {
  const { code, stdout } = await run('--job', 'j', '--read', '--signal', 'a,b', '--signal', 'c', '--expires', '1h');
  assert.deepEqual([code, stdout], [0, 'a.b.c\n']);
  const body = { job: 'j', read: true, signals: ['a', 'b', 'c'], expires_in: '1h' };
  assert.deepEqual(asked, { call: 'POST /ojs/v1/tokens', key: 'Bearer k', body });
});

it('tocsin token makes a token that enqueues, and prints JSON', async () => {
  const { stdout } = await run('--enqueue', 'order.place', '--queue', 'shop', '--group', 'acme', '--json');
  assert.deepEqual(JSON.parse(stdout), { token: 'a.b.c', expires_at: '2026-11-28T00:00:00Z' });
  assert.deepEqual(asked.body, { enqueue: { type: 'order.place', queue: 'shop', group: 'acme' } });
});
