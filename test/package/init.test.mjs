// A new user's way, as docs/start/quickstart.md shows it: an empty folder, the package, `tocsin init`, a handler, a job, the tests.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { after, describe, it } from 'node:test';
import { root } from '../docs/dev.mjs';
import { createProject } from './project.mjs';

const PAGE = readFileSync(join(root, 'docs/start/quickstart.md'), 'utf8');

/** What a user may have to do, at most. */
const MAX_COMMANDS = 6;
const MAX_LINES = 15;

describe('tocsin init in an empty folder', { timeout: 600_000 }, () => {
  const project = createProject();
  after(() => project.remove());

  it('makes a project whose handler completes a job, and whose tests pass', async (t) => {
    const began = Date.now();
    await project.ok('npm', 'install', project.tarball);
    const said = await project.ok('npx', 'tocsin', 'init', '--yes');
    assert.match(said, /^create +src\/index\.ts/m);

    const lines = addHandler();
    await project.dev();
    const printed = await project.ok('npx', 'tocsin', 'enqueue', 'sum.add', '1', '2', '--wait', '--json');
    const { outcome } = JSON.parse(printed.slice(printed.indexOf('{')));
    assert.deepEqual([outcome.state, outcome.result], ['completed', 3]);
    t.diagnostic(`from npm install to the first completed job: ${((Date.now() - began) / 1000).toFixed(1)} s`);

    assert.match(await project.ok('npm', 'test'), /3 passed/);
    assert.ok(project.commands <= MAX_COMMANDS, `${project.commands} commands`);
    assert.ok(lines <= MAX_LINES, `${lines} lines`);
  });

  it('passes the checks of the compiler and of tocsin doctor', async () => {
    await project.ok('npm', 'run', 'types');
    const report = await project.ok('npx', 'tocsin', 'doctor');
    assert.doesNotMatch(report, /FAIL|WARN/);
    assert.match(report, /handlers +.*sum\.add/);
  });

  it('takes the same package for a project in a folder inside, wherever that came from', async () => {
    await project.ok('npx', 'tocsin', 'init', 'apps/second', '--yes', '--no-install');
    const { dependencies } = JSON.parse(generated('apps/second/package.json'));
    const from = join(project.folder, 'apps/second');
    assert.equal(dependencies.tocsin, `file:${relative(from, project.tarball)}`);
    assert.match(generated('apps/second/vitest.config.mts'), /renamed its plugin to @cloudflare\/vitest-plugin/);
  });

  it('serves the route that enqueues', async () => {
    const answer = await fetch(`${project.url}/greetings?name=Ada`, { method: 'POST' });
    const { id } = await answer.json();
    const result = await fetch(`${project.url}/ojs/v1/jobs/${id}/result?wait=true&timeout=20`);
    assert.deepEqual((await result.json()).result, { text: 'Hello, Ada!' });
  });

  it('leaves everything as it is when it runs again', async () => {
    assert.match(await project.ok('npx', 'tocsin', 'init', '--yes'), /Nothing to do/);
    assert.match(readFileSync(join(project.folder, 'src/tocsin.ts'), 'utf8'), /sum\.add/);
  });

  /** Writes the page's own handler. @returns how many lines of the user's own that takes */
  function addHandler() {
    const before = generated('src/tocsin.ts');
    const [, text] = /```ts\n\/\/ src\/tocsin\.ts\n([\s\S]*?)```/.exec(PAGE);
    const own = text.split('\n').filter((line) => !before.split('\n').includes(line));
    assert.equal(text.split('\n').length - own.length, before.split('\n').length, 'the page shows what init writes');
    project.write('src/tocsin.ts', text);
    const [, route] = /```js\n([\s\S]*?)```/.exec(PAGE);
    assert.ok(
      generated('src/index.ts').replace(/^ +/gm, '').includes(route),
      'the page shows the route that init writes',
    );
    return own.length;
  }

  function generated(path) {
    return readFileSync(join(project.folder, path), 'utf8');
  }
});

describe('npm create tocsin', { timeout: 600_000 }, () => {
  const project = createProject();
  after(() => project.remove());

  it('makes the same project from a package of its own', async () => {
    await project.ok('npm', 'pack', '--silent', '--pack-destination', project.base, join(root, 'dist-create'));
    const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
    const tarball = join(project.base, `create-tocsin-${version}.tgz`);
    const create = ['exec', '--yes', `--package=${tarball}`, '--', 'create-tocsin'];
    const said = await project.ok('npm', ...create, 'made', '--yes', '--no-install', '--config', 'toml');
    assert.match(said, /^create +wrangler\.toml/m);
    assert.match(said, /cd made\n/);
    const read = (path) => readFileSync(join(project.folder, 'made', path), 'utf8');
    assert.equal(JSON.parse(read('package.json')).dependencies.tocsin, `^${version}`);
    assert.match(read('wrangler.toml'), /^name = "made"$/m);
  });
});
