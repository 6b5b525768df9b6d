// The documents' claim about handlers: a Worker of one's own, bound with the lines shown there, runs the queue's jobs,
// in the queue's own `wrangler dev` and in one of its own.
import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { dev, root, until } from './dev.mjs';

const QUEUE = 'examples/handler-of-your-own/queue.toml';
const HANDLER = 'examples/handler-of-your-own/wrangler.toml';

/** A target that was not there is tried again after a minute; the rest is for a slow machine. */
const NEXT_TRIAL_MS = 100_000;
const AT_ONCE_MS = 20_000;

let folder;
let started;

/** Starts `wrangler dev`, with state of its own for each process and a registry of its own for each test. */
async function start(...configs) {
  const places = { state: join(folder, `state-${started.length}`), registry: join(folder, 'registry') };
  const server = await dev(configs, places);
  started.push(server);
  return server;
}

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'tocsin-own-handler-'));
  started = [];
});

afterEach(async () => {
  await Promise.all(started.map((server) => server.stop()));
  rmSync(folder, { recursive: true, force: true });
});

async function enqueue(server, name) {
  const response = await fetch(`${server.url}/ojs/v1/jobs`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify({ type: 'greeting.write', args: [name] }),
  });
  const answer = await response.json();
  assert.equal(response.status, 201, JSON.stringify(answer));
  return answer.job.id;
}

async function read(server, path) {
  const response = await fetch(`${server.url}/ojs/v1/${path}`);
  const answer = await response.json();
  assert.equal(response.status, 200, JSON.stringify(answer));
  return answer;
}

async function completed(server, id, limitMs) {
  let last;
  try {
    return await until(`the completion of job ${id}`, limitMs, async () => {
      last = (await read(server, `jobs/${id}`)).job;
      return last.state === 'completed' && last;
    });
  } catch (error) {
    throw new Error(`${error.message}; it is ${JSON.stringify(last)}\n${server.output()}`);
  }
}

describe('a handler Worker of one’s own', { timeout: 900_000 }, () => {
  it('is bound with the lines that the documents show', () => {
    const lines = readFileSync(join(root, QUEUE), 'utf8').split('\n').slice(1).join('\n');
    const plain = readFileSync(join(root, 'wrangler.toml'), 'utf8').replaceAll(
      /"src\/(index\.ts|ui)"/g,
      '"../../src/$1"',
    );
    assert.ok(lines.startsWith(plain), `${QUEUE} must be wrangler.toml and what binds the handler`);
    const added = lines.slice(plain.length).trim();
    for (const document of ['docs/start/handlers.md', 'docs/start/deploy.md']) {
      assert.ok(readFileSync(join(root, document), 'utf8').includes(added), `${document} must show:\n${added}`);
    }
  });

  it('runs jobs in the same wrangler dev as the queue', async () => {
    const queue = await start(QUEUE, HANDLER);
    const job = await completed(queue, await enqueue(queue, 'Ada'), AT_ONCE_MS);
    assert.deepEqual(job.result, { text: 'Hello, Ada!' });
    assert.equal(job.attempt, 1);
  });

  it('runs jobs from a process of its own, which may start late and restart, without an attempt lost', async () => {
    const queue = await start(QUEUE);
    const early = await enqueue(queue, 'Ada');
    await until('the stop of a target that is not there', AT_ONCE_MS, async () => {
      const { events } = await read(queue, 'events?types=queue.push_suspended');
      return events.length > 0;
    });
    const { job: waiting } = await read(queue, `jobs/${early}`);
    assert.equal(waiting.state, 'available');
    assert.equal(waiting.attempt, 0);

    const first = await start(HANDLER);
    const job = await completed(queue, early, NEXT_TRIAL_MS);
    assert.deepEqual(job.result, { text: 'Hello, Ada!' });
    assert.equal(job.attempt, 1);
    assert.equal(job.errors, undefined);

    await first.stop();
    await start(HANDLER);
    const again = await completed(queue, await enqueue(queue, 'Grace'), NEXT_TRIAL_MS);
    assert.deepEqual(again.result, { text: 'Hello, Grace!' });
  });
});
