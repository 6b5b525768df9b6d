// What docs/start/workers.md promises of handlers that block: their leases are kept, and who blocked is told.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { build } from 'esbuild';
import { dev, root, until } from './dev.mjs';

const BLOCKED_MS = 3_000;
const LEASE_MS = 1_500;

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
  'crash': () => {
    setTimeout(() => { throw new Error('nobody catches it'); });
    return new Promise(() => undefined);
  },
  'exit': () => process.exit(7),
  'hang': { timeoutMs: 500, handler: () => { for (;;); } },
  'talk': async (job, ctx) => {
    ctx.log.info('it begins', { attempt: ctx.attempt });
    await ctx.progress(0.5, 'half');
    await ctx.checkpoint({ at: 1 });
    const number = await ctx.step('once', () => 42);
    const child = await ctx.enqueue('block', [1], { queue: 'children' });
    const refused = await ctx.enqueue('block', [1], { queue: 'Not a name' }).catch((error) => error);
    return { number, child: child.id, refused: [refused.constructor.name, refused.field], env: ctx.env.NAME };
  },
  'wait': (job, ctx) => new Promise((resolve, reject) => {
    ctx.signal.addEventListener('abort', () => reject(ctx.signal.reason));
    ctx.draining.addEventListener('abort', () => resolve({ drained: ctx.draining.reason.message }));
  }),
  'alone': { concurrency: 1, handler: async () => {
    const begun = Date.now();
    await new Promise((resolve) => setTimeout(resolve, 100));
    return [begun, Date.now()];
  } },
});
`;

const WORKER = `
import { runWorker } from './client.mjs';
import handlers from './handlers.mjs';

const onError = (error) => console.log('error: ' + error.message);
await runWorker(handlers, { url: process.env.TOCSIN_URL, onError, ...JSON.parse(process.argv[2]) });
`;

const THREADED = `
import { runWorker } from './client.mjs';

const onError = (error) => console.log('error: ' + error.message);
const log = ({ level, message }) => console.log('log: ' + level + ' ' + message);
const module = new URL('./handlers.mjs', import.meta.url);
await runWorker(module, { url: process.env.TOCSIN_URL, onError, log, ...JSON.parse(process.argv[2]) });
`;

const call = (...request) => server.call(...request);

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
  const stop = async () => {
    const exit = once(child, 'exit');
    child.kill('SIGTERM');
    assert.deepEqual(await exit, [0, null]);
    return printed;
  };
  return Object.assign(stop, { hasPrinted: (text) => printed.includes(text) });
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
  writeFileSync(join(folder, 'threaded.mjs'), THREADED);
  server = await dev(['wrangler.toml'], { state: join(folder, 'state'), registry: join(folder, 'registry') });
});

after(async () => {
  for (const child of started) child.kill('SIGKILL');
  await server?.stop();
  rmSync(folder, { recursive: true, force: true });
});

describe('a handler that blocks the event loop for longer than its lease', { timeout: 900_000 }, () => {
  for (const socket of [true, false]) {
    it(`keeps its lease, and the log of its job says for how long, ${socket ? 'over a socket' : 'over HTTP'}`, async () => {
      const queue = `kept-${socket ? 'line' : 'http'}`;
      const id = await enqueue(queue, 'block', [BLOCKED_MS]);
      const stop = work('worker.mjs', { queues: [queue], socket });
      const job = await ended(id);
      assert.deepEqual([job.state, job.attempt], ['completed', 1]);
      const line = (await logOf(id)).find(({ fields }) => fields?.blocked_ms >= BLOCKED_MS - 500);
      assert.match(line.message, /the event loop of the worker was blocked for \d\.\d s/);
      assert.match(
        await stop(),
        new RegExp(`error: The event loop was blocked .*: block ${id}\\. Heartbeats continued\\.`),
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

describe('a worker with threads', { timeout: 900_000 }, () => {
  let stop;
  before(() => {
    stop = work('threaded.mjs', { queues: ['threads'], threads: 3, env: { NAME: 'ada' } });
  });

  it('runs blocking handlers beside each other, and keeps their leases itself', async () => {
    const ids = [];
    for (let n = 0; n < 3; n++)
      ids.push(await enqueue('threads', 'block', [BLOCKED_MS], { visibility_timeout_ms: 2 * LEASE_MS }));
    for (const id of ids) {
      const job = await ended(id);
      assert.deepEqual([job.state, job.attempt], ['completed', 1]);
      assert.deepEqual(
        (await logOf(id)).filter(({ level }) => level === 'warn'),
        [],
      );
    }
    const times = await Promise.all(ids.map(ended));
    const lastStart = Math.max(...times.map(({ started_at }) => Date.parse(started_at)));
    const firstEnd = Math.min(...times.map(({ completed_at }) => Date.parse(completed_at)));
    assert.ok(lastStart < firstEnd, `the last one started ${lastStart - firstEnd} ms after the end of the first`);
  });

  it('continues when a handler crashes, exits, or hangs: its job fails and says so', async () => {
    const fate = async (type) => (await ended(await enqueue('threads', type, [], { max_attempts: 1 }))).error;
    const crash = await fate('crash');
    assert.equal(crash.type, 'tocsin.crash');
    assert.equal(crash.message, 'The thread of the handler ended: nobody catches it');
    assert.equal((await fate('exit')).message, 'The thread of the handler ended: it exited with code 7');
    const hang = await fate('hang');
    assert.equal(hang.code, 'timeout');
    assert.match(hang.message, /did not finish within 500 ms, and did not react to its signal: its thread was ended/);
    assert.equal((await ended(await enqueue('threads', 'block', [1]))).state, 'completed');
  });

  it('gives handlers all of their context', async () => {
    const id = await enqueue('threads', 'talk', []);
    const { result, attempt, state } = await ended(id);
    assert.deepEqual([state, attempt], ['completed', 1]);
    const { child, ...rest } = result;
    assert.deepEqual(rest, { number: 42, refused: ['InvalidJobError', 'options.queue'], env: 'ada' });
    assert.equal((await call('GET', `/jobs/${child}`)).job.meta.parent_id, id);
    assert.deepEqual((await call('GET', `/jobs/${id}/checkpoint`)).checkpoint.state, { at: 1 });
    const { events } = await call('GET', '/events?types=job.progress');
    assert.deepEqual(
      events.map(({ data }) => [data.job_id, data.progress]),
      [[id, 50]],
    );
    assert.deepEqual(
      (await logOf(id)).map(({ message }) => message),
      ['it begins'],
    );
  });

  it('bounds a type over all threads', async () => {
    const ids = [];
    for (let n = 0; n < 3; n++) ids.push(await enqueue('threads', 'alone', []));
    const runs = [];
    for (const id of ids) runs.push((await ended(id)).result);
    runs.sort(([a], [b]) => a - b);
    for (const [at, [begun]] of runs.entries()) if (at > 0) assert.ok(begun >= runs[at - 1][1], JSON.stringify(runs));
  });

  it('tells handlers that their job was cancelled, and that the worker ends', async () => {
    const [cancelled, drained] = [await enqueue('threads', 'wait', []), await enqueue('threads', 'wait', [])];
    const active = async (id) => (await call('GET', `/jobs/${id}`)).job.state === 'active';
    await until('both to begin', 10_000, async () => (await active(cancelled)) && (await active(drained)));
    await call('DELETE', `/jobs/${cancelled}`);
    await until('the news of the cancellation', 10_000, async () => stop.hasPrinted('log: info job cancelled'));
    const printed = await stop();
    const job = await ended(drained);
    assert.deepEqual([job.state, job.attempt], ['completed', 1]);
    assert.match(job.result.drained, /takes no more jobs/);
    assert.match(printed, /log: info it begins/);
  });

  it('is refused where its handlers are not a module', async () => {
    const child = spawn(process.execPath, [join(folder, 'worker.mjs'), '{"queues":["threads"],"threads":2}'], {
      env: { ...process.env, TOCSIN_URL: server.url },
    });
    let said = '';
    child.stderr.setEncoding('utf8').on('data', (text) => {
      said += text;
    });
    assert.notDeepEqual(await once(child, 'exit'), [0, null]);
    assert.match(said, /threads need a module/);
  });
});
