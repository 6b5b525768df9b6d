// What stands before wrangler's development server: whom it vouches for, and that all that flows goes through it unharmed.
import assert from 'node:assert/strict';
import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { createServer, request } from 'node:http';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { pathToFileURL } from 'node:url';
import { load } from './cli.mjs';

const { openFront } = await load('front.ts');
const { optionIn } = await load('option.ts');
const { sourceFrames } = await load('source-frames.ts');

describe('the server before wrangler', () => {
  let front;
  let inner;
  let gone;
  before(async () => {
    front = await openFront(0, '127.0.0.1', (json) => json.replace('raw', 'reworded'));
    inner = createServer({ requestTimeout: 0 }, async (message, answer) => {
      if (message.url === '/events') {
        answer.writeHead(200, { 'Content-Type': 'text/event-stream' });
        answer.flushHeaders();
        gone = once(answer, 'close');
        return;
      }
      if (message.url === '/queue' || message.url === '/own') {
        const type = message.url === '/own' ? 'application/json' : 'application/openjobspec+json';
        answer.writeHead(200, { 'Content-Type': type, 'Content-Length': 11 });
        return void answer.end(message.method === 'HEAD' ? '' : '{"a":"raw"}');
      }
      if (message.url === '/echo')
        return void message.pipe(answer.writeHead(200, 'Fine', { 'Set-Cookie': ['a=1', 'b=2'] }));
      const hash = createHash('sha256');
      for await (const chunk of message) hash.update(chunk);
      answer.end(JSON.stringify({ url: message.url, headers: message.headers, hash: hash.digest('hex') }));
    });
    inner.on('upgrade', (message, socket) => {
      if (message.url !== '/socket') return void socket.end('HTTP/1.1 401 No\r\nContent-Length: 2\r\n\r\nno');
      socket.write('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n');
      socket.on('data', (bytes) => socket.write(bytes)).on('end', () => socket.end());
    });
    inner.listen(0, '127.0.0.1');
    await once(inner, 'listening');
  });
  after(() => {
    front.close();
    inner.close();
    inner.closeAllConnections();
  });

  /** @returns {Promise<import('node:http').IncomingMessage>} */
  const send = (path, { body, ...options } = {}) =>
    new Promise((resolve, reject) => {
      const sent = request(front.url + path, options, resolve).on('error', reject);
      if (body?.pipe) body.pipe(sent);
      else sent.end(body);
    });
  const text = async (message) => (await message.setEncoding('utf8').toArray()).join('');
  const seen = async (headers, rest) => JSON.parse(await text(await send('/x?y=%20', { headers, ...rest })));

  it('asks to wait until wrangler says where it listens, and gives its own address for that', async () => {
    const answer = await send('/');
    assert.deepEqual([answer.statusCode, answer.headers['retry-after']], [503, '1']);
    assert.equal(JSON.parse(await text(answer)).error.retryable, true);
    const { port } = inner.address();
    assert.equal(front.read(`Ready on http://127.0.0.1:${port}\n`), `Ready on ${front.url}\n`);
    assert.deepEqual(front.args.slice(0, 4), ['--port', '0', '--ip', '127.0.0.1']);
  });

  it('reads where wrangler listens in colours and in pieces, the last time it is printed', async () => {
    const other = await openFront(0, '127.0.0.1');
    const { port } = inner.address();
    const green = (address) => `\x1b[2m[wrangler:info]\x1b[22m Ready on \x1b[32m${address}\x1b[39m\n`;
    assert.equal(other.read(green('http://127.0.0.1:9')), green(other.url));
    const printed = `\n${green(`http://127.0.0.1:${port}`)}`;
    // A piece may end within a control sequence, within a word, within the address.
    for (const at of printed) other.read(at);
    assert.equal(other.read(`http://127.0.0.1:${port}/x`), `${other.url}/x`);
    assert.equal((await fetch(other.url)).status, 200);
    other.close();
  });

  it('vouches for requests to this machine by its own name alone', async () => {
    const [, secret] = /^LOCALHOST_SECRET:(.{32})$/.exec(front.args.at(-1));
    const vouched = async (host) => (await seen({ Host: host })).headers['tocsin-localhost-secret'] === secret;
    for (const host of ['localhost', 'LOCALHOST:8787', '127.0.0.1:1', '[::1]:8787'])
      assert.ok(await vouched(host), host);
    for (const host of ['evil.example:8787', 'localhost.evil.example', '127.0.0.1.evil.example', '10.0.0.7'])
      assert.ok(!(await vouched(host)), host);
  });

  it('passes on no header that a development server obeys, nor a secret that a client makes up', async () => {
    const { headers, url } = await seen({
      Host: 'evil.example',
      'MF-Original-URL': 'http://localhost/',
      'mf-route-override': 'x',
      'Tocsin-Localhost-Secret': 'x',
      'CF-Connecting-IP': '192.0.2.1',
      'X-Forwarded-Proto': 'http://localhost/?',
      'X-Forwarded-Host': 'localhost',
      Forwarded: 'host=localhost',
      'X-Real-IP': '192.0.2.1',
      Authorization: 'Bearer k',
      Accept: ['a', 'b'],
    });
    assert.deepEqual(Object.keys(headers).sort(), [
      'accept',
      'authorization',
      'cf-connecting-ip',
      'connection',
      'host',
    ]);
    assert.deepEqual([url, headers.host, headers.accept], ['/x?y=%20', 'evil.example', 'a, b']);
    assert.equal(headers['cf-connecting-ip'], '127.0.0.1');
  });

  it('takes bodies of any size and form', async () => {
    const bytes = randomBytes(32 * 1024 * 1024);
    const hash = createHash('sha256').update(bytes).digest('hex');
    assert.equal((await seen({ 'Content-Length': bytes.length }, { method: 'POST', body: bytes })).hash, hash);
    const chunked = await seen({ 'Transfer-Encoding': 'chunked' }, { method: 'PUT', body: bytes });
    assert.deepEqual([chunked.hash, chunked.headers['content-length']], [hash, undefined]);
    assert.equal((await seen({}, { method: 'DELETE' })).headers['content-length'], '0');
  });

  it('lets both sides speak at once, and keeps the answer as it is', async () => {
    let asked;
    const answer = await new Promise((resolve) => {
      asked = request(`${front.url}/echo`, { method: 'POST', headers: { 'Transfer-Encoding': 'chunked' } }, resolve);
      asked.write('one');
    });
    assert.deepEqual([answer.statusMessage, answer.headers['set-cookie']], ['Fine', ['a=1', 'b=2']]);
    assert.equal(String((await once(answer, 'data'))[0]), 'one');
    asked.write('two');
    assert.equal(String((await once(answer, 'data'))[0]), 'two');
    asked.end();
    await once(answer, 'end');
  });

  it('begins a stream of events before its first, and ends it when its reader leaves', async () => {
    const answer = await send('/events');
    assert.equal(answer.headers['content-type'], 'text/event-stream');
    answer.destroy();
    await gone;
  });

  it('joins the two ends of a WebSocket, or tells why it is refused', async () => {
    const headers = { Connection: 'Upgrade', Upgrade: 'websocket' };
    const open = (path) => request(front.url + path, { headers }).end();
    const [, socket] = await once(open('/socket'), 'upgrade');
    socket.write('hello');
    assert.equal(String((await once(socket, 'data'))[0]), 'hello');
    socket.end();
    await once(socket, 'close');
    const [refused] = await once(open('/other'), 'response');
    assert.deepEqual([refused.statusCode, await text(refused)], [401, 'no']);
  });

  it('gives stacks the places of the sources, by the bundle that they were recorded with', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'tocsin-frames-'));
    try {
      const bundle = join(folder, '.wrangler/tmp/dev-a/index.js');
      mkdirSync(dirname(bundle), { recursive: true });
      // Line 2, column 5 of the bundle is line 8, column 3 of the source.
      writeFileSync(
        `${bundle}.map`,
        JSON.stringify({ version: 3, sources: ['../../../src/a.ts'], names: [], mappings: ';IAOE' }),
      );
      utimesSync(`${bundle}.map`, 1_000, 1_000);
      const reword = sourceFrames(folder);
      const place = `${pathToFileURL(bundle)}:2:5`;
      const answer = (at, stack) =>
        JSON.stringify({
          args: [1e21, '"'],
          error: { stack, code: 'x', details: {}, occurred_at: new Date(at).toISOString() },
        });
      const raw = `Error: "no"\n    at send (${place})\n    at new Promise (<anonymous>)`;
      const mapped = raw.replace(place, 'src/a.ts:8:3');
      assert.equal(reword(answer(1_000_001, raw)), answer(1_000_001, mapped));
      // Of a bundle that is gone.
      assert.equal(reword(answer(999_999, raw)), answer(999_999, raw));
      utimesSync(`${bundle}.map`, 2_000, 2_000);
      assert.equal(reword(answer(1_000_001, raw)), answer(1_000_001, mapped), 'it was seen before the edit');
      assert.equal(reword(answer(1_000_002, raw)), answer(1_000_002, raw));
      assert.equal(reword(answer(1_000_001, 'Error\n    at a.js:1:2')), answer(1_000_001, 'Error\n    at a.js:1:2'));
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  });

  it('rewords what the queue answers, and nothing else', async () => {
    for (const [type, path] of [
      ['application/openjobspec+json', '/queue'],
      ['application/json', '/own'],
    ]) {
      const answer = await send(path);
      assert.equal(answer.headers['content-type'], type);
      assert.equal(await text(answer), path === '/queue' ? '{"a":"reworded"}' : '{"a":"raw"}');
      assert.equal((await send(path, { method: 'HEAD' })).headers['content-length'], '11');
    }
  });

  it('finds an option in either form', () => {
    assert.deepEqual(optionIn(['--a', '--port', '1', 'b'], '--port'), { value: '1', rest: ['--a', 'b'] });
    assert.deepEqual(optionIn(['--port=2'], '--port'), { value: '2', rest: [] });
  });
});
