// A project that installs this version opens what it has stored with the one before, and goes on with it.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { dev, root, until } from '../docs/dev.mjs';
import { unpack } from './project.mjs';

/** What `test/upgrade/record-project.mjs` has recorded with the last release, under the name of its Worker. */
const STORED = 'test/upgrade/fixtures/project-0.1.0.tar.gz';

/** What the user has added to the handlers that `init` writes. */
const HANDLERS = `
  'greeting.write': (job) => ({ text: 'Hello, ' + job.args[0] + '!', user: job.meta.user_id }),
  'greeting.interrupted': (_, ctx) => ({ attempt: ctx.attempt }),
  'greeting.first': () => 1,
  'greeting.second': (job) => job.parentResults,
`;

const { dependencies } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));

const LIMIT_MS = 120_000;

describe('a project that upgrades', { timeout: 900_000 }, () => {
  const folder = mkdtempSync(join(tmpdir(), 'tocsin-upgrade-'));
  // The Worker is named after its folder, and its databases after the Worker.
  const project = join(folder, 'tocsin');
  const state = join(folder, 'state');
  let server;

  before(async () => {
    const modules = join(project, 'node_modules');
    unpack(join(modules, 'tocsin'));
    for (const name of Object.keys(dependencies)) {
      // A name may have a scope before it.
      mkdirSync(dirname(join(modules, name)), { recursive: true });
      symlinkSync(join(root, 'node_modules', name), join(modules, name));
    }
    const program = join(modules, 'tocsin/dist/cli/index.js');
    execFileSync(process.execPath, [program, 'init', '--yes', '--no-install'], { cwd: project, stdio: 'pipe' });
    addHandlers(join(project, 'src/tocsin.ts'));
    mkdirSync(state);
    execFileSync('tar', ['-xzf', join(root, STORED), '-C', state]);
    server = await dev([join(project, 'wrangler.jsonc')], { state, registry: join(folder, 'registry') });
  });
  after(async () => {
    await server?.stop();
    rmSync(folder, { recursive: true, force: true });
  });

  /** Puts the user's handlers in the place of the one that is there. */
  function addHandlers(file) {
    const text = readFileSync(file, 'utf8');
    const extended = text.replace(/^ {2}'greeting\.write': \([\s\S]*?^ {2}\},\n/m, HANDLERS.trimStart());
    assert.ok(extended.includes('greeting.second'), text);
    writeFileSync(file, extended);
  }

  const call = (...request) => server.call(...request);

  const only = async (type) => {
    const { jobs } = await call('GET', `/jobs?queue=kept,flow&type=${type}`);
    assert.equal(jobs.length, 1, type);
    return jobs[0];
  };

  const completed = (type) =>
    until(`the completion of ${type}`, LIMIT_MS, async () => {
      const job = await only(type);
      return job.state === 'completed' && (await call('GET', `/jobs/${job.id}`)).job;
    });

  it('has every job as it was', async () => {
    for (const state of ['completed', 'discarded', 'retryable', 'cancelled', 'scheduled', 'pending', 'available']) {
      assert.equal((await only(`${state}.job`)).state, state);
    }
    const { job } = await call('GET', `/jobs/${(await only('completed.job')).id}`);
    assert.deepEqual(job.result, { sum: 42 });
    assert.deepEqual(job.args, ['Ada']);
    assert.deepEqual(job.meta, { user_id: 7 });
    assert.equal((await only('urgent.job')).priority, 50);
    const { jobs: dead } = await call('GET', '/dead-letter?queue=kept');
    assert.deepEqual(
      dead.map(({ type }) => type),
      ['dead.job'],
    );
  });

  it('has the settings, the schedule and the key of a unique job', async () => {
    const { config } = await call('GET', '/queues/kept/config');
    assert.equal(config.concurrency, 3);
    const { cron } = await call('GET', '/cron/yearly');
    assert.equal(cron.expression, '0 0 1 1 *');
    const again = { type: 'unique.job', args: [], options: { queue: 'kept', unique: { key: 'one' } } };
    const response = await fetch(`${server.url}/ojs/v1/jobs`, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json' },
      body: JSON.stringify(again),
    });
    assert.equal(response.status, 409);
  });

  it('continues: runs what waited, what was running, and the workflow to its end', async () => {
    assert.deepEqual((await completed('greeting.write')).result, { text: 'Hello, Ada!', user: 7 });
    assert.deepEqual((await completed('greeting.interrupted')).result, { attempt: 2 });
    await completed('greeting.first');
    await completed('greeting.second');
    const { workflows } = await call('GET', '/workflows');
    await until('the end of the workflow', LIMIT_MS, async () => {
      const { workflow } = await call('GET', `/workflows/${workflows[0].id}`);
      return workflow.state === 'completed';
    });
  });
});
