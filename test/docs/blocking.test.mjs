// What docs/start/workers.md promises of handlers that block: their leases are kept, and who blocked is told.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { build } from 'esbuild';
import { dev, root } from './dev.mjs';

const BLOCKED_MS = 3_000;
const LEASE_MS = 1_000;

let folder;
let server;
const started = [];

const HANDLERS = `
import { defineHandlers } from './handler.mjs';

export default defineHandlers({
  'block': (job) => {
    const end = Date.now() + job.args[0];
    while (Date.now() < end);
    return { pid: process.pid };
  },
});
`;

const WORKER = `
import { runWorker } from './client.mjs';
import handlers from './handlers.mjs';

const onError = (error) => console.log('error: ' + error.message);
await runWorker(handlers, { url: process.env.TOCSIN_URL, onError, ...JSON.parse(process.argv[2]) });
`;

async function call(method, path, body) {
  const response = await fetch(`${server.url}/ojs/v1${path}`, {
    method,
    ...(body && { headers: { 'Content-Type': 'application/json' }, body: JSON.stringify(body) }),
  });
  const answer = await response.json();
  assert.ok(response.ok, `${method} ${path}: ${JSON.stringify(answer)}`);
  return answer;
}

/** Enqueues a job under a short lease. */
async function enqueue(queue, type, args, options = {}) {
  const given = { queue, visibility_timeout_ms: LEASE_MS, max_attempts: 2, ...options };
  return (await call('POST', '/jobs', { type, args, options: given })).id;
}

const ended = async (id) => {
  await call('GET', `/jobs/${id}/result?wait=true&timeout=30`);
  return (await call('GET', `/jobs/${id}`)).job;
};

const logOf = async (id) => (await call('GET', `/jobs/${id}/log`)).lines;

/** Runs a worker as a process of its own; ends it, and gives what it has printed. */
function work(program, options) {
  const child = spawn(process.execPath, [join(folder, program), JSON.stringify(options)], {
    env: { ...process.env, TOCSIN_URL: server.url },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  started.push(child);
  let printed = '';
  child.stdout.setEncoding('utf8').on('data', (text) => {
    printed += text;
  });
  return async () => {
    const exit = once(child, 'exit');
    child.kill('SIGTERM');
    assert.deepEqual(await exit, [0, null]);
    return printed;
  };
}

before(async () => {
  folder = mkdtempSync(join(tmpdir(), 'tocsin-blocking-'));
  await build({
    entryPoints: { client: join(root, 'src/client/index.ts'), handler: join(root, 'src/handler/index.ts') },
    outdir: folder,
    ...{ bundle: true, splitting: true, format: 'esm', platform: 'neutral', target: 'es2022', logLevel: 'error' },
    outExtension: { '.js': '.mjs' },
  });
  writeFileSync(join(folder, 'handlers.mjs'), HANDLERS);
  writeFileSync(join(folder, 'worker.mjs'), WORKER);
  server = await dev(['wrangler.toml'], { state: join(folder, 'state'), registry: join(folder, 'registry') });
});

after(async () => {
  for (const child of started) child.kill('SIGKILL');
  await server?.stop();
  rmSync(folder, { recursive: true, force: true });
});

describe('a handler that blocks the event loop for longer than its lease', { timeout: 120_000 }, () => {
  for (const socket of [true, false]) {
    it(`keeps its lease, and its job is told for how long, ${socket ? 'over a socket' : 'over HTTP'}`, async () => {
      const queue = `kept-${socket ? 'line' : 'http'}`;
      const id = await enqueue(queue, 'block', [BLOCKED_MS]);
      const stop = work('worker.mjs', { queues: [queue], socket });
      const job = await ended(id);
      assert.deepEqual([job.state, job.attempt], ['completed', 1]);
      const line = (await logOf(id)).find(({ fields }) => fields?.blocked_ms >= BLOCKED_MS - 500);
      assert.match(line.message, /the event loop of the worker stood still for \d\.\d s/);
      assert.match(
        await stop(),
        new RegExp(`error: The event loop stood still .*: block ${id}\\. Heartbeats went on\\.`),
      );
    });
  }

  it('loses its lease without the thread', async () => {
    const id = await enqueue('lost', 'block', [BLOCKED_MS], { max_attempts: 1 });
    const stop = work('worker.mjs', { queues: ['lost'], heartbeatThread: false });
    const job = await ended(id);
    assert.equal(job.state, 'discarded');
    await stop();
  });
});
