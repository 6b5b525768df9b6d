/**
 * Two versions at once: after a deploy, active objects keep their old code for minutes. An ordinary day's calls are sent to the
 * Worker of this version with the objects of the one before, and the other way round. Neither may lose, drop or misread anything:
 * each call succeeds, or is refused as passing. The version before is built from the history of the repository; without it these
 * tests are skipped.
 */
import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { build } from 'esbuild';
import { writeBuilt } from '../../.ci/ui.mjs';
import { freePort, start, stop, untilHealthy } from '../../bench/servers/process.mjs';
import { root } from '../docs/dev.mjs';

/** The last commit before objects answered callers of other versions by rule. A release replaces it with its tag. */
const BEFORE = '808cdcea';
/** The last one whose objects know no limits over all queues. */
const LONG_BEFORE = '7f990618';

const has = (commit) => spawnSync('git', ['cat-file', '-e', `${commit}^{commit}`], { cwd: root }).status === 0;
const without = (commit) => (has(commit) ? false : `the history of this checkout has no ${commit}`);

const binary = createRequire(import.meta.url)('workerd').default;
const text = (value) => JSON.stringify(value);

const HANDLERS = `
import { defineHandlers } from ${text(join(root, 'src/handler/index.ts'))};
export default defineHandlers({ 'push.a': () => ({ done: true }), 'push.s': () => ({ done: true }) });`;

/** Of an earlier version the dashboard and the document of the API are left out. */
const NOTHING_BUILT = {
  name: 'nothing built',
  setup({ onLoad, onResolve }) {
    onResolve({ filter: /\/built$/ }, ({ path }) => ({ path, namespace: 'nothing' }));
    onLoad({ filter: /.*/, namespace: 'nothing' }, () => ({ contents: 'module.exports = {};' }));
  },
};

async function bundle(source, plugins = []) {
  const { outputFiles } = await build({
    ...source,
    bundle: true,
    format: 'esm',
    target: 'es2023',
    loader: { '.sql': 'text' },
    external: ['cloudflare:*', 'node:*'],
    write: false,
    logLevel: 'error',
    plugins,
  });
  return outputFiles[0].text;
}

/** The Worker of a commit. */
async function workerOf(commit, folder) {
  mkdirSync(folder);
  const files = execFileSync('git', ['archive', commit, 'src', 'migrations', 'package.json', 'tsconfig.json'], {
    cwd: root,
    maxBuffer: 2 ** 28,
  });
  execFileSync('tar', ['x', '-C', folder], { input: files });
  symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'));
  return await bundle({ entryPoints: [join(folder, 'src/index.ts')] }, [NOTHING_BUILT]);
}

const CLASSES = {
  QUEUES: 'QueueObject',
  DIRECTORY: 'DirectoryObject',
  UNIQUE_LOCKS: 'UniqueLockObject',
  WORKFLOWS: 'WorkflowObject',
};

const config = (port, state) => {
  const variables = `(name = "HANDLER", service = "handler"), (name = "HANDLERS", json = ${text(text({ 'push.*': 'HANDLER' }))}),
    (name = "ALLOW_LOCALHOST", text = "true"), (name = "TEST_HOOKS", text = "true")`;
  const bindings = (service) =>
    Object.entries(CLASSES).map(([name, className]) => {
      const where = service ? `(className = ${text(className)}, serviceName = ${text(service)})` : text(className);
      return `(name = ${text(name)}, durableObjectNamespace = ${where})`;
    });
  const namespaces = Object.values(CLASSES).map(
    (name) => `(className = ${text(name)}, uniqueKey = ${text(name)}, enableSql = true)`,
  );
  const worker = (file, more) =>
    `(modules = [(name = "worker.js", esModule = embed ${text(file)})], compatibilityDate = "2026-05-03", ${more})`;
  return `using Workerd = import "/workerd/workerd.capnp";
const config :Workerd.Config = (
  services = [
    (name = "front", worker = ${worker('front.js', `bindings = [${bindings('objects')}, ${variables}]`)}),
    (name = "objects", worker = ${worker(
      'objects.js',
      `bindings = [${bindings()}, ${variables}], durableObjectNamespaces = [${namespaces}], durableObjectStorage = (localDisk = "state")`,
    )}),
    (name = "handler", worker = ${worker('handler.js', '')}),
    (name = "state", disk = (path = ${text(state)}, writable = true)),
    (name = "internet", network = (allow = ["private", "local"])),
  ],
  sockets = [(name = "http", address = "127.0.0.1:${port}", http = (), service = "front")],
);`;
};

describe('two versions at once', { concurrency: false }, () => {
  const workers = {};
  let folder;
  let server;

  before(async () => {
    folder = mkdtempSync(join(tmpdir(), 'tocsin-versions-'));
    await writeBuilt();
    workers.now = await bundle({ entryPoints: [join(root, 'src/index.ts')] });
    workers.handler = await bundle({ stdin: { contents: HANDLERS, resolveDir: root, loader: 'ts' } });
  });
  after(() => rmSync(folder, { recursive: true, force: true }));

  /** Runs `day` against the Worker of one version with the objects of another. */
  async function between(front, objects, day) {
    for (const commit of [front, objects]) workers[commit] ??= await workerOf(commit, join(folder, commit));
    const place = mkdtempSync(join(folder, 'run-'));
    const state = join(place, 'state');
    mkdirSync(state);
    const port = await freePort();
    for (const [name, code] of Object.entries({
      front: workers[front],
      objects: workers[objects],
      handler: workers.handler,
    })) {
      writeFileSync(join(place, `${name}.js`), code);
    }
    writeFileSync(join(place, 'config.capnp'), config(port, state));
    server = start(binary, ['serve', join(place, 'config.capnp')]);
    try {
      await untilHealthy(server, port, performance.now(), 60_000);
      await day(port);
    } catch (error) {
      console.error(server.output);
      throw error;
    } finally {
      await stop(server);
    }
  }

  it('this Worker loses nothing with the objects of the version before', { skip: without(BEFORE) }, async () => {
    await between('now', BEFORE, async (port) => {
      const { answers } = await ordinaryDay(port);
      assert.deepEqual(refusedAmong(answers), []);
    });
  });

  it('the Worker of the version before loses nothing with these objects', { skip: without(BEFORE) }, async () => {
    await between(BEFORE, 'now', async (port) => {
      const { answers } = await ordinaryDay(port);
      assert.deepEqual(refusedAmong(answers), []);
    });
  });

  it('much older objects are waited for: no defect, nothing dropped', { skip: without(LONG_BEFORE) }, async () => {
    await between('now', LONG_BEFORE, async (port) => {
      const { answers, byName } = await ordinaryDay(port, false);
      const others = refusedAmong(answers).filter(({ status, retryAfter }) => status !== 503 || !retryAfter);
      assert.deepEqual(others, []);
      const limited = byName('enqueue limited everywhere');
      assert.deepEqual(
        [limited.status, limited.body.error?.details],
        [503, { reason: 'other_version', queue: 'limited', option: 'rate_limit.scope' }],
      );
    });
  });
});

const refusedAmong = (answers) =>
  answers
    .filter(({ status }) => status >= 300)
    .map(({ name, status, retryAfter, body }) => ({ name, status, retryAfter, error: body.error }));

/** An ordinary day's calls. @returns all answers */
async function ordinaryDay(port, isComplete = true) {
  const answers = [];
  const call = async (name, method, path, sent, headers = {}) => {
    const answer = await fetch(`http://127.0.0.1:${port}${path.startsWith('/metrics') ? '' : '/ojs/v1'}${path}`, {
      method,
      headers: { ...(sent && { 'Content-Type': 'application/json' }), ...headers },
      ...(sent && { body: JSON.stringify(sent) }),
    });
    const raw = await answer.text();
    let body = {};
    try {
      body = JSON.parse(raw);
    } catch {
      // Numbers for Prometheus, or an export.
    }
    answers.push({ name, status: answer.status, retryAfter: answer.headers.get('Retry-After'), body });
    return body;
  };
  const job = (type, queue, options = {}) => ({ type, args: [1], options: { queue, ...options } });
  const limit = { key: 'k', rate: 10, period: 'minute' };

  const pushed = await call('enqueue', 'POST', '/jobs', job('push.a', 'pushed'));
  await call('enqueue to pull', 'POST', '/jobs', job('pull.a', 'pull'));
  const waits = { priority: 3, tags: ['x'], delay_until: '+PT1H', retry: { max_attempts: 4 }, timeout_ms: 5000 };
  await call('enqueue with options', 'POST', '/jobs', job('pull.b', 'pull', waits));
  await call(
    'enqueue unique',
    'POST',
    '/jobs',
    job('u', 'pull', { unique: { keys: ['type', 'args'], period: 'PT1H' } }),
  );
  const everywhere = { keys: ['args'], period: 'PT1H', on_conflict: 'ignore' };
  await call('enqueue unique everywhere', 'POST', '/jobs', job('v', 'pull', { unique: everywhere }));
  await call('enqueue in a group', 'POST', '/jobs', job('g', 'groups', { group: 'acme' }));
  await call('enqueue limited', 'POST', '/jobs', job('l', 'limited', { rate_limit: limit }));
  const scoped = { ...limit, key: 'all', scope: 'deployment' };
  await call('enqueue limited everywhere', 'POST', '/jobs', job('l', 'limited', { rate_limit: scoped }));
  await call('batch', 'POST', '/jobs/batch', { jobs: [1, 2, 3, 4, 5].map(() => job('c', 'many')) });
  await call('batch over queues', 'POST', '/jobs/batch', { jobs: [1, 2, 3].map((n) => job('c', `several-${n}`)) });
  await call('bulk', 'POST', '/jobs/bulk', { jobs: [1, 2].map(() => job('c', 'many')) });
  await call('enqueue once', 'POST', '/jobs', job('c', 'many'), { 'Idempotency-Key': 'once' });

  const { jobs: fetched = [] } = await call('fetch', 'POST', '/workers/fetch', {
    queues: ['pull'],
    count: 2,
    worker_id: 'w',
  });
  if (fetched[0])
    await call('ack', 'POST', '/workers/ack', { job_id: fetched[0].id, worker_id: 'w', result: { ok: 1 } });
  const error = { type: 'E', message: 'm' };
  if (fetched[1]) await call('nack', 'POST', '/workers/nack', { job_id: fetched[1].id, worker_id: 'w', error });
  await call('heartbeat', 'POST', '/workers/heartbeat', { worker_id: 'w', queues: ['pull'] });
  const { jobs: more = [] } = await call('fetch', 'POST', '/workers/fetch', {
    queues: ['many'],
    count: 3,
    worker_id: 'w',
  });
  const reports = more.map(({ id }) => ({ action: 'ack', job_id: id, result: 1 }));
  await call('report', 'POST', '/workers/report', { worker_id: 'w', reports });
  await call('fetch of groups', 'POST', '/workers/fetch', { queues: ['groups'], count: 2, worker_id: 'w' });
  await call('fetch of limited jobs', 'POST', '/workers/fetch', { queues: ['limited'], count: 2, worker_id: 'w' });

  const cron = { name: 'c1', cron: '* * * * *', type: 'cron.a', args: [], options: { queue: 'pull' } };
  await call('cron', 'POST', '/cron', cron);
  await call('crons', 'GET', '/cron');
  await call('cron now', 'POST', '/cron/c1/trigger', {});
  const step = (id, more = {}) => ({ id, type: 'push.s', args: [], ...more });
  const started = await call('workflow', 'POST', '/workflows', {
    name: 'w',
    steps: [step('a'), step('b', { depends_on: ['a'] })],
  });

  for (const path of [
    '/jobs?limit=10',
    '/jobs/count',
    '/queues',
    '/admin/queues',
    '/queues/pull/stats',
    '/admin/stats',
  ]) {
    await call(path, 'GET', path);
  }
  for (const path of [
    '/admin/stats/history',
    '/metrics',
    '/rate-limits',
    '/dead-letter',
    '/admin/failures',
    '/admin/workers',
  ]) {
    await call(path, 'GET', path);
  }
  for (const path of ['/admin/targets', '/admin/deployment', '/admin/audit', '/queues/groups/groups']) {
    await call(path, 'GET', path);
  }
  // An export breaks off in its stream when its object answers in another shape: its end shows that, not its status.
  if (isComplete) await call('export', 'GET', '/admin/queues/pull/export');
  await call('settings', 'PUT', '/queues/pull/config', { concurrency: 5 });
  await call('settings of all', 'PUT', '/admin/queues/_default/config', { default_retry: { max_attempts: 5 } });
  await call('pause', 'POST', '/queues/pull/pause', {});
  await call('resume', 'POST', '/queues/pull/resume', {});
  await call('override', 'PUT', '/rate-limits/k', { concurrency: 2 });
  await call('webhook', 'POST', '/webhooks/subscriptions', { url: 'https://example.com/x', events: ['job.completed'] });
  await call('schema', 'PUT', '/admin/schemas/pull.z/1', { schema: { type: 'array' } });
  await call('cancel many', 'POST', '/admin/jobs/bulk/cancel', { filter: { queue: 'several-1' }, confirm: true });
  await call('delete a queue', 'DELETE', '/queues/several-1');

  const ended = async (path, of) => {
    for (let tries = 0; tries < 200; tries++) {
      const answer = await fetch(`http://127.0.0.1:${port}/ojs/v1${path}`);
      const { state } = of(await answer.json()) ?? {};
      if (state === 'completed') return;
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
    answers.push({ name: `the end of ${path}`, status: 599, body: {} });
  };
  if (pushed.job) await ended(`/jobs/${pushed.job.id}`, ({ job: seen }) => seen);
  const workflow = started.workflow ?? started;
  if (workflow.id) await ended(`/workflows/${workflow.id}`, (seen) => seen.workflow ?? seen);
  return { answers, byName: (name) => answers.find((one) => one.name === name) };
}
