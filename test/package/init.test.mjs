// A new user's way: an empty folder, the package, `tocsin init`, a handler, a job, the tests.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, describe, it } from 'node:test';
import { createProject } from './project.mjs';

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

    assert.match(await project.ok('npm', 'test'), /1 passed/);
    assert.ok(project.commands <= MAX_COMMANDS, `${project.commands} commands`);
    assert.ok(lines <= MAX_LINES, `${lines} lines`);
  });

  it('passes the checks of the compiler and of tocsin doctor', async () => {
    await project.ok('npm', 'run', 'types');
    const report = await project.ok('npx', 'tocsin', 'doctor');
    assert.doesNotMatch(report, /FAIL|WARN/);
    assert.match(report, /handlers +.*sum\.add/);
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

  /** @returns how many lines it takes */
  function addHandler() {
    const file = join(project.folder, 'src/tocsin.ts');
    const before = readFileSync(file, 'utf8');
    const text = before
      .replace("'greeting.write': [name: string];", "$&\n  'sum.add': [a: number, b: number];")
      .replace(/^ {2}'greeting\.write': \(job.*$/m, "$&\n  'sum.add': (job) => job.args[0] + job.args[1],");
    project.write('src/tocsin.ts', text);
    return text.split('\n').length - before.split('\n').length;
  }
});
