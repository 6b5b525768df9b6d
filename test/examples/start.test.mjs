// The development start as a user runs it.
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { after, describe, it } from 'node:test';
import { unstable_readConfig as readConfig } from 'wrangler';
import { makeFolder, npmRun, root } from './processes.mjs';

describe('npm start', { timeout: 120_000 }, () => {
  const folder = makeFolder();
  const runs = [];
  after(() => {
    for (const run of runs) run.kill();
    folder.remove();
  });

  /** Starts on a port of wrangler's choice with state in the test's folder. */
  async function start() {
    const args = ['--port', '0', '--persist-to', join(folder.path, 'state'), '--var', 'TEST_HOOKS:true'];
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

  it('keeps its jobs from one start to the next, leaves jobs without handler to pull, and ends wholly when told to', async () => {
    const { run, url } = await start();
    const args = [{ path: 'hello.md', markdown: '# Hello\n\nIt works.' }];
    const { id } = await post(`${url}/jobs`, { type: 'document.digest', args });
    const { job } = await endOf(url, id);
    assert.equal(job.state, 'completed');
    assert.equal(job.result.words, 3);

    run.child.kill('SIGTERM');
    assert.ok([143, 'SIGTERM'].includes(await run.exit));
    assert.deepEqual(run.remaining(), []);

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
    assert.equal(await again.run.exit, 0);
    assert.deepEqual(again.run.remaining(), []);
  });
});

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
