// The worker that docs/start/workers.md shows runs jobs as it stands there, fails them, and ends when it is told to.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { dev, root, until } from './dev.mjs';

const LIMIT_MS = 120_000;

let folder;
let server;
let worker;

const guide = readFileSync(join(root, 'docs/start/workers.md'), 'utf8');
const program = /```js\n(\/\/ worker\.mjs[\s\S]*?)```/.exec(guide)?.[1];

const call = (...request) => server.call(...request);

async function enqueue(type) {
  const options = { queue: 'greetings', retry: { max_attempts: 1 } };
  return (await call('POST', '/jobs', { type, args: ['Ada'], options })).id;
}

function startWorker() {
  const file = join(folder, 'worker.mjs');
  writeFileSync(file, program);
  const child = spawn(process.execPath, [file], {
    env: { ...process.env, TOCSIN_URL: server.url },
    stdio: ['ignore', 'inherit', 'inherit'],
  });
  return { child, exited: once(child, 'exit').then(([code]) => code) };
}

before(async () => {
  assert.ok(program, 'docs/start/workers.md shows a program');
  folder = mkdtempSync(join(tmpdir(), 'tocsin-workers-'));
  server = await dev(['wrangler.toml'], { state: join(folder, 'state'), registry: join(folder, 'registry') });
  worker = startWorker();
});

after(async () => {
  worker?.child.kill('SIGKILL');
  await server?.stop();
  rmSync(folder, { recursive: true, force: true });
});

describe('the worker of the guide', { timeout: 900_000 }, () => {
  it('runs what is enqueued', async () => {
    const id = await enqueue('greeting.write');
    const done = await call('GET', `/jobs/${id}/result?wait=true&timeout=20`);
    assert.deepEqual(done.result, { text: 'Hello, Ada!' });
    const { worker_id } = (await call('GET', '/events?types=job.started')).events[0].data;
    assert.equal(worker_id, `greeter-${worker.child.pid}`);
  });

  it('is seen by operators, and ends when they say so', async () => {
    const path = `/admin/workers/greeter-${worker.child.pid}`;
    await until('the first heartbeat', LIMIT_MS, async () => (await fetch(`${server.url}/ojs/v1${path}`)).ok);
    await call('POST', '/admin/workers/directive', { directive: 'terminate' });
    assert.equal(await worker.exited, 0);
    assert.equal((await call('GET', '/admin/workers')).summary.total, 0);
  });
});
