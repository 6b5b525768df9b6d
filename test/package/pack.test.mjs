// The package as its users get it: packed, unpacked into a project of its own, type checked and run there.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { fileURLToPath } from 'node:url';
import { unpack } from './project.mjs';

const root = join(dirname(fileURLToPath(import.meta.url)), '../..');
const project = mkdtempSync(join(tmpdir(), 'tocsin-pack-'));
const installed = join(project, 'node_modules/tocsin');

const USAGE = `
import { TocsinClient, DuplicateJobError, type Job as StoredJob } from 'tocsin/client';
import { defineHandlers, discard, handler, type Job, retryIn, UnrecoverableError } from 'tocsin/handler';
import { runHandler, runToEnd } from 'tocsin/testing';

interface Email { to: string; subject: string }
interface Jobs { 'email.send': [Email]; 'image.resize': [key: string, width: number] }
interface Env { MAIL_URL: string }

class PoisonPill extends UnrecoverableError {}

const resize = handler<[key: string, width: number], { key: string }, Env>(async (job, ctx) => {
  const [key, width] = job.args;
  if (width > 10_000) throw new PoisonPill('too wide');
  ctx.log.info('resized', { width: width.toFixed(0) });
  return { key: key.toUpperCase() };
});

const worker = defineHandlers<Jobs, Env>({
  'email.send': {
    timeoutMs: 10_000,
    retry: (attempt, error) => (error instanceof PoisonPill ? 0 : attempt * 1000),
    handler: async (job, ctx) => {
      const to: string = job.args[0].to;
      const url: string = ctx.env.MAIL_URL;
      ctx.signal.throwIfAborted();
      // @ts-expect-error an email has no such member
      job.args[0].recipient;
      if (to === '') throw discard('the address is empty');
      if (url === '') throw retryIn('30s');
      return ctx.attempt;
    },
  },
  'image.resize': { handler: resize, retry: { preset: 'sidekiq', maxAttempts: 5 }, concurrency: 2 },
  '*': (job) => job.args.length,
}, { fetch: async (request) => new Response(request.url) });

// @ts-expect-error the types of the map need a handler each
defineHandlers<Jobs>({ 'email.send': () => undefined });
defineHandlers({ 'email.send': (job: Job<[Email]>) => job.args[0].to, 'image.resize': async (job) => job.args.length });
defineHandlers((job, ctx) => [job.type, ctx.attempt]);

export async function produce(service: { fetch(input: string, init?: object): Promise<Response> }): Promise<StoredJob> {
  const tocsin = new TocsinClient<Jobs>({ service, key: 'secret' });
  const job = await tocsin.enqueue('email.send', [{ to: 'a@example.com', subject: 'Hello' }], { delay: '10s', priority: 1 });
  const subject: string = job.args[0].subject;
  await tocsin.enqueueMany([{ type: 'image.resize', args: [subject, 800], options: { queue: 'images' } }]);
  // @ts-expect-error the width is missing
  await tocsin.enqueue('image.resize', ['a.png']);
  // @ts-expect-error there is no such job type
  await tocsin.enqueue('email.sent', []);
  // @ts-expect-error there is no such option
  await tocsin.enqueue('image.resize', ['a.png', 1], { prio: 1 });
  const remote = new TocsinClient({ url: 'https://queue.example.com' });
  try {
    return await remote.enqueue('anything', [1, 'two']).then((made) => remote.cancel(made.id));
  } catch (error) {
    if (error instanceof DuplicateJobError && error.existingJobId) return await remote.get(error.existingJobId);
    throw error;
  }
}

export async function test(): Promise<void> {
  const run = await runHandler(worker, 'email.send', [{ to: '', subject: '' }], { attempt: 2, env: { MAIL_URL: '' } });
  if (run.error?.retryIn === 5 && run.isLast) throw new Error(run.status);
  // @ts-expect-error the width is missing
  await runToEnd(worker, 'image.resize', ['a.png']);
}

export default worker;
`;

const WORKERS_USAGE = `
import { TocsinClient } from 'tocsin/client';
import { defineHandlers } from 'tocsin/handler';

interface Env { TOCSIN: Fetcher }

export default defineHandlers<{ 'email.send': [string] }, Env>({
  'email.send': async (job, ctx) => {
    await new TocsinClient({ service: ctx.env.TOCSIN }).enqueue('audit.write', job.args);
  },
}) satisfies ExportedHandler<Env>;
`;

const RUN = `
import assert from 'node:assert/strict';
import { ConflictError, TocsinClient, TocsinError } from 'tocsin/client';
import { ConflictError as HandlerConflictError, defineHandlers, UnrecoverableError } from 'tocsin/handler';
import { runHandler } from 'tocsin/testing';

const worker = defineHandlers(
  { 'math.add': (job) => job.args[0] + job.args[1], 'math.fail': () => { throw new UnrecoverableError('no'); } },
  { log: () => undefined },
);
const deliveries = [
  { delivery_id: 'del_1', job: { id: '1', type: 'math.add', args: [1, 2], attempt: 1 } },
  { delivery_id: 'del_2', job: { id: '2', type: 'math.fail', args: [], attempt: 1 } },
];
const response = await worker.fetch(
  new Request('http://handler/', { method: 'POST', body: JSON.stringify({ worker_id: 'push_x', deliveries }) }),
);
const { results } = await response.json();
assert.deepEqual(results[0], { delivery_id: 'del_1', status: 'completed', result: 3 });
assert.equal(results[1].status, 'failed');
assert.deepEqual(results[1].error.classes, ['UnrecoverableError', 'Error']);

assert.equal(ConflictError, HandlerConflictError);

assert.equal((await runHandler(worker, 'math.add', [1, 2])).result, 3);
assert.equal((await runHandler(worker, 'math.fail', [])).isLast, true);

const service = { fetch: async () => Response.json({ job: { id: '1', type: 'math.add' } }, { status: 201 }) };
assert.equal((await new TocsinClient({ service }).enqueue('math.add', [1, 2])).id, '1');
assert.equal(typeof TocsinError, 'function');
`;

/** A Worker that holds the queue, and its tests. */
const TESTED = {
  'wrangler.toml': `
name = "tested"
main = "tested.ts"
compatibility_date = "2026-05-03"
migrations = [{ tag = "v1", new_sqlite_classes = ["QueueObject", "DirectoryObject", "UniqueLockObject", "WorkflowObject"] }]
`,
  'vitest.config.ts': `
import { cloudflareTest } from '@cloudflare/vitest-pool-workers';
import { defineConfig } from 'vitest/config';

export default defineConfig({ plugins: [cloudflareTest({ wrangler: { configPath: './wrangler.toml' } })] });
`,
  'tested.ts': `
import { createTocsin, defineHandlers, type Job } from 'tocsin/queue';

export { DirectoryObject, QueueObject, TocsinHandlers, UniqueLockObject, WorkflowObject } from 'tocsin/queue';

export const handlers = defineHandlers({
  'greeting.write': async (job: Job<[name: string]>, ctx) => {
    await ctx.sleep('wait', '1h');
    return 'Hello, ' + job.args[0];
  },
});
const tocsin = createTocsin({ handlers });
export default tocsin.worker({
  fetch: async () => Response.json(await tocsin.enqueue('greeting.write', ['Ada'])),
});
`,
  'tested.test.ts': `
import { exports } from 'cloudflare:workers';
import { expect, it } from 'vitest';
import type { JobsOf } from 'tocsin/queue';
import { runToEnd, testQueue } from 'tocsin/testing/vitest';
import { handlers } from './tested';

declare global {
  namespace Cloudflare {
    interface GlobalProps {
      mainModule: typeof import('./tested');
    }
  }
}

const queue = testQueue<JobsOf<typeof handlers>>();

it('greets an hour after it was asked', async () => {
  await exports.default.fetch('http://tested/');
  await queue.advance('59m');
  await expect(queue).not.toHaveCompleted('greeting.write');
  await queue.advance('1m');
  await expect(queue).toHaveCompleted('greeting.write', ['Ada'], { result: 'Hello, Ada' });
  expect((await runToEnd(handlers, 'greeting.write', ['Bob'])).result).toBe('Hello, Bob');
});
`,
};

describe('the packed package', () => {
  before(() => {
    unpack(installed);
    writeFileSync(join(project, 'package.json'), '{"name":"consumer","private":true,"type":"module"}');
    writeFileSync(join(project, 'usage.ts'), USAGE);
    writeFileSync(join(project, 'run.mjs'), RUN);
  });
  after(() => rmSync(project, { recursive: true, force: true }));

  it('holds the built libraries, the skill for coding agents and no sources', () => {
    assert.deepEqual(
      readdirSync(installed).sort(),
      ['LICENSE', 'README.md', 'dist', 'docs', 'package.json'].filter(exists(installed)),
    );
    assert.deepEqual(readdirSync(join(installed, 'docs'), { recursive: true }).sort(), ['skill', 'skill/SKILL.md']);
    assert.ok(readdirSync(join(installed, 'dist/handler')).includes('index.js'));
    assert.ok(readdirSync(join(installed, 'dist/client')).includes('index.d.ts'));
  });

  it('holds the licences of what the dashboard bundles', () => {
    const text = readFileSync(join(installed, 'dist/queue/LICENSES.txt'), 'utf8');
    for (const name of ['preact', '@preact/signals', 'uplot'])
      assert.match(text, new RegExp(`^${name} .* \\(MIT\\)$`, 'm'));
  });

  for (const [moduleResolution, module] of [
    ['bundler', 'esnext'],
    ['nodenext', 'nodenext'],
  ]) {
    it(`type checks in a project with the DOM's types under ${moduleResolution} resolution`, () => {
      typeCheck({ lib: ['ES2023', 'DOM'], types: [], module, moduleResolution }, 'usage.ts');
    });
  }

  it('type checks in a project with the types of Workers', () => {
    mkdirSync(join(project, 'node_modules/@cloudflare'), { recursive: true });
    const types = 'node_modules/@cloudflare/workers-types';
    symlinkSync(join(root, types), join(project, types), 'dir');
    writeFileSync(join(project, 'worker.ts'), WORKERS_USAGE);
    const options = {
      lib: ['ES2023'],
      types: ['@cloudflare/workers-types'],
      module: 'esnext',
      moduleResolution: 'bundler',
    };
    typeCheck(options, 'usage.ts', 'worker.ts');
  });

  it('tests a Worker that holds the queue', { timeout: 900_000 }, () => {
    for (const [name, text] of Object.entries(TESTED)) writeFileSync(join(project, name), text);
    const { dependencies } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
    for (const name of ['@cloudflare/vitest-pool-workers', 'vitest', ...Object.keys(dependencies)]) {
      mkdirSync(dirname(join(project, 'node_modules', name)), { recursive: true });
      symlinkSync(join(root, 'node_modules', name), join(project, 'node_modules', name), 'dir');
    }
    const types = ['@cloudflare/workers-types/experimental', '@cloudflare/vitest-pool-workers/types'];
    const options = { lib: ['ES2024'], types, module: 'esnext', moduleResolution: 'bundler', skipLibCheck: true };
    typeCheck(options, 'tested.ts', 'tested.test.ts');
    run([join(root, 'node_modules/vitest/vitest.mjs'), 'run']);
  });

  it('has no scripts, which are about the checkout and could not run', () => {
    const { name, scripts, bin } = JSON.parse(readFileSync(join(installed, 'package.json'), 'utf8'));
    assert.deepEqual([name, scripts], ['tocsin', undefined]);
    assert.ok(readFileSync(join(installed, bin.tocsin), 'utf8').startsWith('#!'));
  });

  it('runs in a project that has no other dependency', () => {
    run(['run.mjs']);
  });
});

/** Runs a program of Node in the project. Fails with what it prints. */
function run(args) {
  try {
    execFileSync(process.execPath, args, { cwd: project, stdio: 'pipe' });
  } catch (error) {
    assert.fail(`${error.stdout}${error.stderr}`);
  }
}

function exists(folder) {
  const names = readdirSync(folder);
  return (name) => names.includes(name);
}

/** Fails with what the compiler prints. Libraries are checked too: a declaration that does not resolve is an error. */
function typeCheck(options, ...files) {
  const compilerOptions = {
    strict: true,
    exactOptionalPropertyTypes: true,
    skipLibCheck: false,
    noEmit: true,
    ...options,
  };
  writeFileSync(join(project, 'tsconfig.json'), JSON.stringify({ compilerOptions, files }));
  run([join(root, 'node_modules/typescript/bin/tsc'), '-p', '.']);
}
