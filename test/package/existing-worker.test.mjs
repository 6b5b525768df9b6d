// The queue comes into a Worker that is there already: its routes, objects and comments stay, and its handlers run.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { root } from '../docs/dev.mjs';
import { createProject } from './project.mjs';

const { dependencies, devDependencies } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));

const MAIN = `import { DurableObject } from 'cloudflare:workers';
import { Hono } from 'hono';

type Bindings = { COUNTER: DurableObjectNamespace<Counter> };

export class Counter extends DurableObject {
  async next(): Promise<number> {
    const next = ((await this.ctx.storage.get<number>('count')) ?? 0) + 1;
    await this.ctx.storage.put('count', next);
    return next;
  }
}

const app = new Hono<{ Bindings: Bindings }>();
app.get('/', async (c) => c.text(\`visit \${await c.env.COUNTER.getByName('home').next()}\`));

// The shop's own routes.
export default app;
`;

const CONFIG = `{
  // The shop.
  "name": "shop",
  "main": "src/index.ts",
  "compatibility_date": "2025-06-01",
  "durable_objects": { "bindings": [{ "name": "COUNTER", "class_name": "Counter" }] },
  "migrations": [
    { "tag": "v1", "new_sqlite_classes": ["Counter"] }, // visits
  ],
}
`;

describe('tocsin init in an existing Hono Worker', { timeout: 600_000 }, () => {
  const project = createProject();
  after(() => project.remove());

  before(async () => {
    const packageJson = {
      name: 'shop',
      private: true,
      type: 'module',
      scripts: { dev: 'wrangler dev', deploy: 'wrangler deploy' },
      dependencies: { hono: dependencies.hono },
      devDependencies: Object.fromEntries(
        ['@cloudflare/workers-types', 'node', 'typescript', 'wrangler'].map((name) => [name, devDependencies[name]]),
      ),
      allowScripts: { node: true, esbuild: true, workerd: true },
    };
    const compilerOptions = {
      ...{ target: 'ES2023', lib: ['ES2024'], module: 'ESNext', moduleResolution: 'Bundler', strict: true },
      ...{ types: ['@cloudflare/workers-types'], noEmit: true },
    };
    project.write('package.json', `${JSON.stringify(packageJson, null, 2)}\n`);
    project.write('tsconfig.json', JSON.stringify({ compilerOptions, include: ['src'] }));
    project.write('wrangler.jsonc', CONFIG);
    project.write('src/index.ts', MAIN);
    await project.ok('npm', 'install');
    project.commands = 0;
  });

  it('adds the queue, and a job of its new handler completes', async (t) => {
    const began = Date.now();
    await project.ok('npm', 'install', project.tarball);
    await project.ok('npx', 'tocsin', 'init', '--yes');
    await project.dev();
    const printed = await project.ok('npx', 'tocsin', 'enqueue', 'greeting.write', 'Ada', '--wait', '--json');
    const { outcome } = JSON.parse(printed.slice(printed.indexOf('{')));
    assert.deepEqual([outcome.state, outcome.result], ['completed', { text: 'Hello, Ada!' }]);
    t.diagnostic(`from npm install to the first completed job: ${((Date.now() - began) / 1000).toFixed(1)} s`);
    assert.ok(project.commands <= 6);
  });

  it('keeps what the Worker had', async () => {
    assert.equal(await (await fetch(`${project.url}/`)).text(), 'visit 1');
    const config = readFileSync(join(project.folder, 'wrangler.jsonc'), 'utf8');
    const added = config.split('\n').filter((line) => !CONFIG.split('\n').includes(line));
    assert.equal(added.length, 2, added.join('\n'));
    assert.match(config, /\{ "tag": "v2", "new_sqlite_classes": \["QueueObject", /);
    const main = readFileSync(join(project.folder, 'src/index.ts'), 'utf8');
    const missing = MAIN.split('\n').filter((line) => !main.split('\n').includes(line));
    assert.deepEqual(missing, ['export default app;']);
    await project.ok('npx', 'tsc', '-p', '.');
  });

  it('has nothing to do the second time', async () => {
    assert.match(await project.ok('npx', 'tocsin', 'init', '--yes'), /Nothing to do/);
  });
});
