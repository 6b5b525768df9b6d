// The development start as a user runs it.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { Agent, request } from 'node:http';
import { connect } from 'node:net';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { unstable_readConfig as readConfig } from 'wrangler';
import { FREE_PORTS } from '../docs/dev.mjs';
import { makeFolder, npmRun, root } from './processes.mjs';

describe('npm start', { timeout: 900_000 }, () => {
  const folder = makeFolder();
  const runs = [];
  after(() => {
    for (const run of runs) run.kill();
    folder.remove();
  });

  /** Starts on a port of wrangler's choice with state in the test's folder. */
  async function start() {
    const args = [...FREE_PORTS, '--persist-to', join(folder.path, 'state'), '--var', 'TEST_HOOKS:true'];
    const run = npmRun('start', args, folder.temporary);
    runs.push(run);
    const [, url] = await run.until(/Tocsin is ready at (http:\/\/\S+)/);
    return { run, url: `${url}/ojs/v1` };
  }

  async function post(url, body) {
    const headers = { 'Content-Type': 'application/json' };
    const response = await fetch(url, { method: 'POST', headers, body: JSON.stringify(body) });
    assert.ok(response.ok, `${url} answered ${response.status}`);
    return await response.json();
  }

  async function endOf(url, id) {
    for (;;) {
      const job = await (await fetch(`${url}/jobs/${id}`)).json();
      if (['completed', 'discarded', 'cancelled'].includes(job.state)) return job;
    }
  }

  it('keeps its jobs across starts, leaves jobs without handler to workers, and ends wholly when stopped', async () => {
    const { run, url } = await start();
    const args = [{ path: 'hello.md', markdown: '# Hello\n\nIt works.' }];
    const { id } = await post(`${url}/jobs`, { type: 'document.digest', args });
    const { job } = await endOf(url, id);
    assert.equal(job.state, 'completed');
    assert.equal(job.result.words, 3);

    run.child.kill('SIGTERM');
    assert.ok([143, 'SIGTERM'].includes(await run.exit));
    assert.deepEqual(await run.remaining(), []);

    const again = await start();
    const { job: kept } = await endOf(again.url, id);
    assert.equal(kept.state, 'completed');
    const waiting = await post(`${again.url}/jobs`, { type: 'pull.me', args: [] });
    const { jobs } = await post(`${again.url}/workers/fetch`, { queues: ['default'] });
    assert.deepEqual(
      jobs.map((claimed) => claimed.id),
      [waiting.id],
    );
    // Open only because the variable given on the command line has reached the queue Worker.
    await post(`${again.url}/admin/reset`, {});

    process.kill(-again.run.child.pid, 'SIGINT');
    // 0 where npm's shell becomes the script; where it does not, the signal that ended the shell.
    assert.ok([0, 130, 'SIGINT'].includes(await again.run.exit));
    assert.deepEqual(await again.run.remaining(), []);
  });
});

describe('the development server', { timeout: 900_000 }, () => {
  const folder = makeFolder();
  let run;
  let url;
  before(async () => {
    run = npmRun('start', [...FREE_PORTS, '--persist-to', join(folder.path, 'state')], folder.temporary);
    [, url] = await run.until(/Tocsin is ready at (http:\/\/\S+)/);
  });
  after(() => {
    run.kill();
    folder.remove();
  });

  const isReady = () => new RegExp(`(?:Ready on|ready at) ${url}`, 'g');
  const healthy = async () => assert.equal((await fetch(`${url}/ojs/v1/health`)).status, 200);

  /** Sends the beginning of a request, and leaves: at once, while it is read, or while its answer is due. */
  async function leave(begin, afterMs, how) {
    const { hostname, port } = new URL(url);
    const socket = connect(Number(port), hostname).on('error', () => undefined);
    await once(socket, 'connect');
    socket.write(begin);
    await delay(afterMs);
    socket[how]();
  }

  it('continues when clients leave in the middle of a request, and keeps no connection too long', async () => {
    const head = (path) => `POST /ojs/v1${path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n`;
    const fetching = '{"queues":["default"],"wait_ms":20000}';
    const beginnings = [
      `${head('/jobs')}Content-Length: 100000\r\n\r\n{"type":`,
      `${head('/jobs/batch')}Transfer-Encoding: chunked\r\n\r\n5\r\n{"job`,
      `${head('/workers/fetch')}Content-Length: ${fetching.length}\r\n\r\n${fetching}`,
    ];
    const worker = new Agent({ keepAlive: true });
    const beat = () => post(worker, `${url}/ojs/v1/workers/heartbeat`, { worker_id: 'w', active_jobs: [] });
    assert.equal(await beat(), 200);
    for (const begin of beginnings) {
      for (const how of ['destroy', 'resetAndDestroy']) {
        await Promise.all([0, 20, 200].map((afterMs) => leave(begin, afterMs, how)));
      }
    }
    // The runtime closes a connection that rests for 5 s; a heartbeat may come at just that moment.
    await Promise.all([4_990, 5_000, 5_010].map((afterMs) => delay(afterMs).then(beat)));
    worker.destroy();
    await healthy();
    assert.equal(run.output().match(isReady()).length, 2, run.output());
  });

  it('is open to this machine by its own names, and not to a page whose name leads here', async () => {
    const { port } = new URL(url);
    const list = (headers) =>
      new Promise((resolve, reject) => {
        const asked = request(`${url}/ojs/v1/queues`, { headers }, (response) => {
          response.resume().on('end', () => resolve(response.statusCode));
        });
        asked.on('error', reject).end();
      });
    assert.equal(await list({ Host: `127.0.0.1:${port}` }), 200);
    const page = { Host: `evil.example:${port}` };
    assert.equal(await list(page), 401);
    assert.equal(await list({ ...page, 'MF-Original-URL': `http://localhost:${port}/ojs/v1/queues` }), 401);
    const served = new WebSocket(`${url.replace('http', 'ws')}/ojs/v1/ws`);
    await once(served, 'open');
    served.close();
  });

  it('comes back at its port when wrangler dies, and has its jobs', async () => {
    const { id } = await (
      await fetch(`${url}/ojs/v1/jobs`, {
        method: 'POST',
        headers: { 'Content-Type': 'application/json' },
        body: '{"type":"pull.me","args":[],"options":{"queue":"kept"}}',
      })
    ).json();
    const wrangler = run.processes().find(({ command }) => command.includes('wrangler-dist/cli.js'));
    process.kill(wrangler.pid, 'SIGKILL');
    const { source } = isReady();
    await run.until(new RegExp(`It starts again[^]*${source}`));
    const { job } = await (await fetch(`${url}/ojs/v1/jobs/${id}`)).json();
    assert.equal(job.state, 'available');
    // A killed npm forwards nothing.
    run.child.kill('SIGKILL');
    await run.exit;
    assert.deepEqual(await run.remaining(), []);
  });
});

/** Posts over a connection of the agent; the status of the answer, or 0 when the connection broke. */
function post(agent, url, body) {
  return new Promise((resolve) => {
    const headers = { 'Content-Type': 'application/json' };
    const sent = request(url, { method: 'POST', agent, headers }, (response) => {
      response.resume().on('end', () => resolve(response.statusCode));
    });
    sent.on('error', () => resolve(0)).end(JSON.stringify(body));
  });
}

describe('the development configuration', () => {
  const read = (path) => readConfig({ config: join(root, path) });

  it('has the objects, migrations and runtime of the one that is deployed', () => {
    const [deployed, development] = ['wrangler.toml', 'examples/dev/wrangler.toml'].map(read);
    for (const key of ['name', 'main', 'compatibility_date', 'compatibility_flags', 'durable_objects', 'migrations']) {
      assert.deepEqual(development[key], deployed[key], key);
    }
  });

  it('alone knows the examples', () => {
    const deployed = read('wrangler.toml');
    assert.equal(deployed.services?.length ?? 0, 0);
    assert.equal('HANDLERS' in deployed.vars, false);
    const services = read('examples/dev/wrangler.toml').services.map(({ service }) => service);
    assert.deepEqual([...new Set(services)], [read('examples/documents/wrangler.toml').name]);
  });
});
