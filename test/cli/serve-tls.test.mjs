/** HTTPS before `tocsin serve`: its own, and that of the proxies whose configurations the documents show, where they are installed. */
import assert from 'node:assert/strict';
import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { request } from 'node:https';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { freePort } from '../crash/server.mjs';
import { root } from '../docs/dev.mjs';
import { kit } from './serve/kit.mjs';

const HOST = 'queue.example.com';
const KEY = 'sesame-of-the-tls-test';
const START_LIMIT_MS = 120_000;

const page = readFileSync(join(root, 'docs/operate/self-hosting.md'), 'utf8');

/** The block of a document that begins with this line. */
function block(first) {
  const begun = page.slice(page.indexOf(`\n${first}\n`) + 1);
  assert.ok(begun.startsWith(first), first);
  return begun.slice(0, begun.indexOf('\n```'));
}

/** Replaces what must be there. */
function replaced(text, pairs) {
  return pairs.reduce((now, [from, to]) => {
    assert.ok(now.includes(from), `${from} is in\n${now}`);
    return now.replaceAll(from, to);
  }, text);
}

const lacks = (program) => (spawnSync(program, ['version']).error ? `${program} is not installed` : undefined);

let tocsin;
let folder;
let certificate;
let key;

before(async () => {
  tocsin = await kit();
  folder = join(tocsin.folder, 'tls');
  mkdirSync(folder);
  [certificate, key] = [join(folder, 'fullchain.pem'), join(folder, 'privkey.pem')];
  if (lacks('openssl')) return;
  const names = ['-subj', `/CN=${HOST}`, '-addext', `subjectAltName=DNS:${HOST}`];
  const form = ['-x509', '-newkey', 'rsa:2048', '-nodes', '-days', '2', ...names];
  execFileSync('openssl', ['req', ...form, '-keyout', key, '-out', certificate], { stdio: 'pipe' });
});

after(() => tocsin.close());

/** Sends a request by the name in the certificate, which is checked. */
function send(port, method, path, body, headers = {}) {
  return new Promise((resolve, reject) => {
    const sent = request({
      ...{ host: '127.0.0.1', port, servername: HOST, ca: readFileSync(certificate), method, path, agent: false },
      headers: { Host: HOST, ...(body && { 'Content-Type': 'application/json' }), ...headers },
    });
    sent.on('error', reject);
    sent.on('upgrade', (answer, socket) => {
      socket.destroy();
      resolve({ status: answer.statusCode, headers: answer.headers });
    });
    sent.on('response', (answer) => {
      let text = '';
      answer.setEncoding('utf8').on('data', (piece) => (text += piece));
      answer.on('end', () => resolve({ status: answer.statusCode, headers: answer.headers, text }));
    });
    sent.end(body && JSON.stringify(body));
  });
}

const login = (port, value, headers) => send(port, 'POST', '/ojs/v1/admin/session', { key: value }, headers);

/** What a browser and a worker need of an address. */
async function servesWell(port) {
  const { status, headers } = await login(port, KEY);
  assert.equal(status, 200);
  const [cookie] = headers['set-cookie'];
  assert.match(cookie, /^__Host-tocsin_key=.*; Secure/);
  const [Cookie] = cookie.split(';');
  const job = { type: 'any.job', args: [] };
  const from = (origin) => send(port, 'POST', '/ojs/v1/jobs', job, { Cookie, Origin: origin });
  assert.equal((await from(`https://${HOST}`)).status, 201);
  assert.equal((await from('https://elsewhere.example.com')).status, 401);
  const socket = { Connection: 'Upgrade', Upgrade: 'websocket', 'Sec-WebSocket-Version': '13' };
  const more = { ...socket, 'Sec-WebSocket-Key': Buffer.alloc(16).toString('base64'), Authorization: `Bearer ${KEY}` };
  assert.equal((await send(port, 'GET', '/ojs/v1/ws', undefined, more)).status, 101);
}

/** Guesses a key, each time as another client. @returns the last status */
async function guess(port) {
  let last;
  for (let tries = 0; tries < 11; tries++) {
    last = await login(port, `wrong-${tries}`, { 'CF-Connecting-IP': `192.0.2.${tries}` });
  }
  return last.status;
}

/** Runs a proxy as a document configures it, before a server. */
async function behind(program, args, port, use) {
  const proxy = spawn(program, args, { stdio: ['ignore', 'pipe', 'pipe'] });
  const said = [];
  for (const from of [proxy.stdout, proxy.stderr]) from.on('data', (text) => said.push(text));
  const ended = once(proxy, 'close');
  try {
    const until = performance.now() + START_LIMIT_MS;
    for (;;) {
      const answer = await send(port, 'GET', '/health').catch((error) => error);
      if (answer.status === 200) break;
      assert.ok(proxy.exitCode === null && performance.now() < until, `${answer.message}\n${said.join('')}`);
      await pause(50);
    }
    await use();
  } finally {
    proxy.kill('SIGTERM');
    await ended;
  }
}

const serve = (state, more = []) =>
  tocsin.serve(['--state', join(tocsin.folder, state), ...more], { env: { API_KEYS: KEY } });

describe('HTTPS', { skip: lacks('openssl') }, () => {
  it('needs a certificate and its key, which are checked before the runtime gets them', async () => {
    const [text, other] = [join(folder, 'text'), join(folder, 'other.pem')];
    writeFileSync(text, 'hello\n');
    execFileSync('openssl', ['genpkey', '-algorithm', 'RSA', '-out', other], { stdio: 'pipe' });
    const cases = [
      [join(folder, 'missing'), key, `${join(folder, 'missing')} cannot be read: there is no such file.`],
      [text, key, `${text} is not a certificate in PEM.`],
      [key, certificate, `${key} is not a certificate in PEM.`],
      [certificate, text, `${text} is not a private key without a passphrase in PEM.`],
      [certificate, other, `The key ${other} does not belong to the first certificate in ${certificate}.`],
    ];
    for (const [first, second, says] of cases) {
      const args = [
        'serve',
        '--no-config',
        '--state',
        join(tocsin.folder, 'wrong'),
        '--tls-cert',
        first,
        '--tls-key',
        second,
      ];
      const { code, stderr } = await tocsin.run(args, { env: { API_KEYS: KEY } });
      assert.equal(code, 1);
      assert.ok(stderr.includes(says), stderr);
    }
  });

  it('is served by workerd itself', async () => {
    const server = await serve('own', ['--tls-cert', certificate, '--tls-key', key]);
    assert.match(server.url, /^https:/);
    await servesWell(Number(new URL(server.url).port));
    await server.kill();
    const half = await tocsin.run(['serve', '--tls-cert', certificate]);
    assert.deepEqual([half.code, /belong together/.test(half.stderr)], [2, true], half.stderr);
  });

  it('is served by nginx, as documented', { skip: lacks('nginx') }, async () => {
    const server = await serve('nginx', ['--behind-proxy']);
    const port = await freePort();
    const documented = replaced(block('server {'), [
      ['listen 443 ssl', `listen 127.0.0.1:${port} ssl`],
      ['/etc/letsencrypt/live/queue.example.com', folder],
      ['127.0.0.1:8787', new URL(server.url).host],
    ]);
    const own = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(
      (name) => `${name}_temp_path ${folder}/${name};`,
    );
    const file = join(folder, 'nginx.conf');
    const head = `daemon off; pid ${folder}/nginx.pid; error_log stderr warn; events {}`;
    writeFileSync(file, `${head}\nhttp { access_log off; ${own.join(' ')}\n${documented}\n}\n`);
    await behind('nginx', ['-c', file], port, async () => {
      await servesWell(port);
      assert.equal(await guess(port), 429);
    });
    await server.kill();
  });

  it('is served by Caddy, as documented', { skip: lacks('caddy') }, async () => {
    const server = await serve('caddy', ['--behind-proxy']);
    const port = await freePort();
    const documented = replaced(block('# Caddyfile'), [
      [`${HOST} {`, `${HOST}:${port} {\n\tbind 127.0.0.1\n\ttls ${certificate} ${key}`],
      ['127.0.0.1:8787', new URL(server.url).host],
    ]);
    const file = join(folder, 'Caddyfile');
    writeFileSync(file, `{\n\tadmin off\n\tauto_https disable_redirects\n}\n${documented}\n`);
    await behind('caddy', ['run', '--config', file, '--adapter', 'caddyfile'], port, async () => {
      await servesWell(port);
      assert.equal(await guess(port), 429);
    });
    await server.kill();
  });
});
