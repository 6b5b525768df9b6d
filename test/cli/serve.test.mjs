/** `tocsin serve` as it is packed: it serves, dies, comes back, ends well, and is backed up meanwhile. */
import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { appendFileSync, cpSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { request } from 'node:http';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { root } from '../docs/dev.mjs';
import { NODE } from './cli.mjs';
import { inTerminal, lacksTerminal } from './pty.mjs';
import { answering, kit } from './serve/kit.mjs';

const HANDLERS = ['--handlers', join(root, 'test/cli/serve/handlers')];

let tocsin;
let other;

before(async () => {
  tocsin = await kit();
  other = await answering();
});

after(async () => {
  other.close();
  await tocsin.close();
});

const ask = (more = {}) => ({ type: 'test.ask', args: [other.url], ...more });
const soon = { options: { delay_until: '+PT1S' } };

let states = 0;
const newState = () => join(tocsin.folder, `state-${++states}`);

/** Number and arguments of each process. */
const processes = () => execFileSync('ps', ['-eo', 'pid=,args='], { encoding: 'utf8' });

/** A request with these headers, `Host` among them. @returns its status and text */
function send(url, method, path, headers, body) {
  return new Promise((resolve, reject) => {
    const sent = request(url + path, { method, headers, agent: false }, async (answer) => {
      resolve([answer.statusCode, (await answer.setEncoding('utf8').toArray()).join('')]);
    });
    sent.on('error', reject).end(body);
  });
}

/** Ends a server as systemd and Docker do. */
async function end(server) {
  server.child.kill('SIGTERM');
  assert.equal(await server.ended, 0, server.stderr);
}

describe('tocsin serve', () => {
  it('serves the queue itself where there is no project, and every line is JSON', async () => {
    const state = newState();
    const server = await tocsin.serve(['--state', state]);
    const id = await server.add({ type: 'any.job', args: [], queue: 'pulled' });
    const { body } = await server.call('POST', '/workers/fetch', { queues: ['pulled'] });
    assert.deepEqual(
      body.jobs.map((job) => job.id),
      [id],
    );
    const page = await fetch(`${server.url}/ojs/ui`);
    assert.match(page.headers.get('Content-Type'), /html/);
    await end(server);
    for (const line of server.lines) {
      assert.deepEqual(Object.keys(line).slice(0, 4), ['time', 'level', 'source', 'message'], JSON.stringify(line));
    }
    const [first] = server.lines;
    assert.deepEqual([first.state, first.keys, first.dashboard], [state, 0, `${server.url}/ojs/ui`]);
  });

  for (const columns of [120, 60]) {
    it(`serves in a colour terminal of ${columns} columns, until Ctrl-C`, { skip: lacksTerminal() }, async () => {
      const command = [NODE, join(tocsin.folder, 'dist/cli/index.js'), 'serve', '--pretty', '--port', '0'];
      const options = { columns, cwd: tocsin.project, env: { API_KEYS: '' } };
      const run = inTerminal([...command, '--state', newState()], options);
      const [, url] = await run.until(/serving (http:[^\s,]+)/);
      assert.equal((await fetch(`${url}/ojs/v1/health`)).status, 200);
      run.type('\x03');
      assert.equal(await run.ended, 0, run.text);
      assert.ok(run.isRestored());
    });
  }

  it('asks for a key, gives handlers their variables and not the keys, and writes no secret down', async () => {
    const file = join(tocsin.folder, 'secrets.env');
    writeFileSync(file, 'API_KEYS=sesame-of-the-queue\nGREETING=hello\n');
    const state = newState();
    const server = await tocsin.serve([...HANDLERS, '--state', state, '--env-file', file, '--allow-network', 'local']);
    assert.equal((await server.call('POST', '/jobs', ask())).status, 401);
    const key = { Authorization: 'Bearer sesame-of-the-queue' };
    const id = await server.add(ask(), key);
    (await other.next()).end('yes');
    assert.deepEqual((await server.result(id, key)).result, { said: 'yes', greeting: 'hello', keys: null });
    const said = await server.said(/^asking/);
    assert.deepEqual([said.level, said.source, said.message], ['warn', 'worker', `asking\nfor ${id}`]);
    for (const name of readdirSync(join(state, 'run'), { recursive: true })) {
      if (!/capnp$/.test(name)) continue;
      assert.doesNotMatch(readFileSync(join(state, 'run', name), 'utf8'), /sesame|hello/);
    }
    await end(server);
  });

  it('serves a project whose Worker holds the queue, with its bindings, and a handler Worker beside it', async () => {
    const folder = join(root, 'examples/handler-of-your-own');
    const args = ['--state', newState(), '--config', join(folder, 'queue.toml'), '--handlers', folder];
    const server = await tocsin.serve(args, { cwd: root });
    const id = await server.add({ type: 'greeting.write', args: ['Ada'] });
    assert.deepEqual((await server.result(id)).result, { text: 'Hello, Ada!' });
    await end(server);
  });

  it('takes the address of a request from no header but Host, unless a proxy is in front', async () => {
    const server = await tocsin.serve(['--state', newState()]);
    await server.add({ type: 'any.job', args: ['private'] });
    const named = ['localhost', 'http://localhost/ojs/v1/jobs?', 'http'].flatMap((value) =>
      ['X-Forwarded-Proto', 'X-Forwarded-Host', 'Forwarded', 'X-Real-IP', 'MF-Original-URL'].map((name) => [
        name,
        value,
      ]),
    );
    for (const [name, value] of named) {
      const [status, text] = await send(server.url, 'GET', '/ojs/v1/jobs', { Host: 'evil.example', [name]: value });
      assert.deepEqual([status, /private/.test(text)], [401, false], `${name}: ${value}`);
    }
    assert.equal((await send(server.url, 'GET', '/ojs/v1/jobs', { Host: 'localhost:1' }))[0], 200);
    await end(server);
  });

  it('counts failed logins by the address that the client connects from, or that the proxy in front names', async () => {
    const guess = async (server, headers) => {
      const all = { Host: 'queue.example.com', 'Content-Type': 'application/json', ...headers };
      return (await send(server.url, 'POST', '/ojs/v1/admin/session', all, '{"key":"wrong"}'))[0];
    };
    const env = { API_KEYS: 'sesame' };
    const open = await tocsin.serve(['--state', newState()], { env });
    for (let n = 0; n < 10; n++) assert.equal(await guess(open, { 'CF-Connecting-IP': `192.0.2.${n}` }), 401);
    assert.equal(await guess(open, { 'CF-Connecting-IP': '192.0.2.99' }), 429);
    await end(open);

    const proxied = await tocsin.serve(['--state', newState(), '--behind-proxy'], { env });
    const from = (address) => ({ 'CF-Connecting-IP': address, 'X-Forwarded-Proto': 'https' });
    for (let n = 0; n < 10; n++) assert.equal(await guess(proxied, from('192.0.2.1')), 401);
    assert.deepEqual([await guess(proxied, from('192.0.2.1')), await guess(proxied, from('192.0.2.2'))], [429, 401]);
    const page = { ...from('192.0.2.2'), Origin: 'https://queue.example.com' };
    assert.equal(await guess(proxied, page), 401);
    await end(proxied);

    const refused = await tocsin.run(['serve', '--port', '0', '--state', newState(), '--behind-proxy']);
    assert.equal(refused.code, 1);
    assert.match(refused.stderr, /No key is set, so every client of the proxy could do everything/);
  });

  it('refuses to keep data in a place of Cloudflare, which it cannot', async () => {
    const refused = await tocsin.run(['serve', '--port', '0', '--state', newState()], { env: { DATA_LOCATION: 'eu' } });
    assert.equal(refused.code, 2);
    assert.match(refused.stderr, /DATA_LOCATION=eu: only Cloudflare can keep data in a place/);
    assert.match(refused.stderr, /Leave it empty/);
  });

  it('starts a workerd that died again, and what is due meanwhile runs without a request', async () => {
    const server = await tocsin.serve([...HANDLERS, '--state', newState()]);
    const id = await server.add(ask(soon));
    const first = server.workerd;
    process.kill(first, 'SIGKILL');
    (await other.next()).end('again');
    assert.equal((await server.result(id)).state, 'completed');
    assert.notEqual(server.workerd, first);
    await server.said(/^workerd ended \(SIGKILL\)/);
    await end(server);
  });

  it('keeps what was accepted when all of it is killed, and runs what fell due while it was down', async () => {
    const state = newState();
    const first = await tocsin.serve([...HANDLERS, '--state', state]);
    const id = await first.add(ask(soon));
    const dueAt = Date.now() + 1_000;
    await first.kill();
    while (Date.now() < dueAt) await new Promise((resolve) => setTimeout(resolve, dueAt - Date.now()));
    const second = await tocsin.serve([...HANDLERS, '--state', state]);
    (await other.next()).end('late');
    assert.equal((await second.result(id)).result.said, 'late');
    await end(second);
  });

  it('refuses a folder that another one serves, and ends what a killed one left behind', async () => {
    const state = newState();
    const first = await tocsin.serve(['--state', state]);
    const refused = await tocsin.run(['serve', '--port', '0', '--state', state]);
    assert.equal(refused.code, 1);
    assert.match(refused.stderr, new RegExp(`is in use by process ${first.child.pid}, which serves `));
    const left = first.workerd;
    first.child.kill('SIGKILL');
    await once(first.child, 'exit');
    process.kill(left, 0);
    const second = await tocsin.serve(['--state', state]);
    assert.ok(second.lines.some(({ message }) => message.includes(`ending workerd ${left}`)));
    assert.doesNotMatch(processes(), new RegExp(`^ *${left} .*workerd serve`, 'm'));
    await end(second);
  });

  it('refuses the state of a newer version, also from a backup', async () => {
    const state = newState();
    await end(await tocsin.serve(['--state', state]));
    const mark = JSON.parse(readFileSync(join(state, 'tocsin.json'), 'utf8'));
    assert.ok(mark.schemas.queue > 0 && mark.schemas.directory > 0, JSON.stringify(mark));
    const newer = { ...mark, schemas: { ...mark.schemas, queue: mark.schemas.queue + 1 } };
    writeFileSync(join(state, 'tocsin.json'), JSON.stringify(newer));
    const [backup, restored] = [newState(), newState()];
    assert.equal((await tocsin.run(['backup', backup, '--state', state])).code, 0);
    assert.equal((await tocsin.run(['restore', backup, '--state', restored])).code, 0);
    for (const folder of [state, restored]) {
      const refused = await tocsin.run(['serve', '--port', '0', '--state', folder]);
      assert.equal(refused.code, 1);
      assert.match(refused.stderr, /each queue is stored in version \d+ of its schema; this version supports \d+/);
      assert.doesNotMatch(refused.stdout, /serving/);
      assert.deepEqual(JSON.parse(readFileSync(join(folder, 'tocsin.json'), 'utf8')).schemas, newer.schemas);
    }
    writeFileSync(join(state, 'tocsin.json'), '{"format":1}');
    await end(await tocsin.serve(['--state', state]));
    assert.deepEqual(JSON.parse(readFileSync(join(state, 'tocsin.json'), 'utf8')), mark);
  });

  it('refuses a cluster without a key, a bucket that is none, and the state of another kind', async () => {
    const refuses = async (args, env, code, said) => {
      const refused = await tocsin.run(['serve', '--port', '0', ...args], { env });
      assert.equal(refused.code, code, refused.stderr);
      assert.match(refused.stderr, said);
    };
    const bucket = ['--cluster', 's3://jobs/test'];
    const key = { CLUSTER_KEY: 'k'.repeat(32) };
    await refuses(bucket, {}, 2, /CLUSTER_KEY is not set: all processes of a cluster share one/);
    await refuses(bucket, { CLUSTER_KEY: 'short' }, 2, /CLUSTER_KEY has fewer than 32 bytes/);
    await refuses(['--cluster', 'jobs'], key, 2, /--cluster jobs must be a bucket and a prefix in it/);
    await refuses([...bucket, '--cluster-address', 'here'], key, 2, /--cluster-address here must be host:port/);
    await refuses([...bucket, '--cluster-address', '0.0.0.0:7000'], key, 2, /not an address at which others reach it/);
    await refuses(['--cluster-address', '10.0.0.5:7000'], key, 2, /belong to --cluster/);
    const alone = newState();
    await end(await tocsin.serve(['--state', alone]));
    await refuses([...bucket, '--state', alone], key, 1, /has the state of a server that was in no cluster/);
    const shared = newState();
    mkdirSync(shared);
    writeFileSync(join(shared, 'tocsin.json'), JSON.stringify({ format: 1, cluster: 's3://jobs/other' }));
    await refuses([...bucket, '--state', shared], key, 1, /belongs to the cluster s3:\/\/jobs\/other/);
    await refuses(['--state', shared], {}, 1, /belongs to the cluster s3:\/\/jobs\/other/);
    const copied = await tocsin.run(['backup', join(tocsin.folder, 'never'), '--state', shared]);
    assert.match(copied.stderr, /belongs to the cluster/);
  });

  it('lets the job that runs come to its end at Ctrl-C, starts no other one, and ends with 0', async () => {
    const state = newState();
    const first = await tocsin.serve([...HANDLERS, '--state', state]);
    const running = await first.add(ask());
    const asked = await other.next();
    first.signalGroup('SIGINT');
    await first.said(/^SIGINT/);
    const waiting = await first.add(ask());
    asked.end('done');
    assert.equal(await first.ended, 0);
    const second = await tocsin.serve([...HANDLERS, '--state', state]);
    (await other.next()).end('next');
    assert.equal((await second.result(waiting)).result.said, 'next');
    const { body } = await second.call('GET', `/jobs/${running}`);
    assert.deepEqual([body.job.state, body.job.attempt, body.job.result.said], ['completed', 1, 'done']);
    assert.equal((await second.call('GET', '/admin/maintenance')).body.enabled, false);
    await end(second);
  });

  it('ends with 0 when the time is over, too, and says what it cut off', async () => {
    const server = await tocsin.serve([...HANDLERS, '--state', newState(), '--grace', '100ms']);
    await server.add(ask());
    const asked = await other.next();
    await end(server);
    assert.match(JSON.stringify(server.lines), /calls to handlers that are cut off: 1/);
    asked.destroy();
  });

  it('is backed up while it serves, and a backup becomes a state folder', async () => {
    const state = newState();
    const first = await tocsin.serve(['--state', state]);
    const id = await first.add({ type: 'any.job', args: ['kept'], queue: 'pulled' });
    const backup = join(tocsin.folder, 'backup');
    const { code, stdout, stderr } = await tocsin.run(['backup', backup, '--state', state, '--json']);
    assert.equal(code, 0, stderr);
    const { files, heldMs, held_ms = heldMs } = JSON.parse(stdout);
    assert.ok(files > 0 && held_ms >= 0, stdout);
    await first.add({ type: 'any.job', args: ['after'], queue: 'pulled' });
    const again = await tocsin.run(['restore', backup, '--state', state]);
    assert.match(again.stderr, /is not empty/);
    await end(first);

    const restored = newState();
    assert.equal((await tocsin.run(['restore', backup, '--state', restored])).code, 0);
    const second = await tocsin.serve(['--state', restored]);
    const { body } = await second.call('POST', '/workers/fetch', { queues: ['pulled'], count: 10 });
    assert.deepEqual(
      body.jobs.map((job) => [job.id, job.args]),
      [[id, ['kept']]],
    );
    await end(second);

    const altered = join(tocsin.folder, 'altered');
    cpSync(backup, altered, { recursive: true });
    const [database] = readdirSync(join(altered, 'objects/QueueObject')).filter((name) => name.endsWith('.sqlite'));
    appendFileSync(join(altered, 'objects/QueueObject', database), 'x');
    const nowhere = newState();
    assert.match((await tocsin.run(['restore', altered, '--state', nowhere])).stderr, /is not what was backed up/);
    assert.ok(!existsSync(nowhere));
  });

  it('copies the folder itself when no server uses it', async () => {
    const state = newState();
    const server = await tocsin.serve(['--state', state]);
    await server.add({ type: 'any.job', args: [] });
    await end(server);
    const { code, stdout } = await tocsin.run(['backup', join(tocsin.folder, 'resting'), '--state', state]);
    assert.equal(code, 0);
    assert.match(stdout, /Nothing was running/);
  });

  it('warns of a limit of open files that is too low', { skip: process.platform === 'win32' }, async () => {
    const args = [join(tocsin.folder, 'dist/cli/index.js'), 'serve', '--port', '0', '--state', newState()];
    const limited = ['-c', 'ulimit -n 256 && exec "$0" "$@"', process.execPath, ...args];
    const child = spawn('sh', limited, { cwd: tocsin.project, env: { ...process.env, API_KEYS: '' } });
    let text = '';
    for await (const piece of child.stdout.setEncoding('utf8')) {
      text += piece;
      if (text.includes('"message":"serving ')) child.kill('SIGTERM');
    }
    assert.match(text, /"level":"warn".*the limit of open files is 256;/);
  });

  it('says what to install, which callers it would be open to, and what a folder is', async () => {
    const bare = join(tocsin.folder, 'bare');
    mkdirSync(bare);
    const without = await tocsin.run(['serve', '--port', '0'], { cwd: bare });
    assert.equal(without.code, 1);
    assert.match(without.stderr, /workerd, which is not installed here\.\n→ npm install .*workerd@/);
    const open = await tocsin.run(['serve', '--host', '0.0.0.0', '--port', '0', '--state', newState()]);
    assert.equal(open.code, 1);
    assert.match(open.stderr, /No key is set, so 0\.0\.0\.0 would be open/);
    const foreign = await tocsin.run(['serve', '--port', '0', '--state', tocsin.folder]);
    assert.match(foreign.stderr, /is not a state folder/);
  });
});
