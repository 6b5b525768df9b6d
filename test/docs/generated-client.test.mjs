// A client whose types are generated from the document of the API, as the page shows it: it compiles, and it enqueues.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { createRequire, registerHooks } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { dev, root } from './dev.mjs';
import { codeOf } from './text.mjs';

const run = promisify(execFile);
const folder = mkdtempSync(join(tmpdir(), 'tocsin-generated-'));
const TSC = join(root, 'node_modules/typescript/bin/tsc');
let server;

/** openapi-typescript needs the compiler's own API, which the compiler here does not have; that of another package does. */
const parentURL = pathToFileURL(createRequire(import.meta.url).resolve('ts-json-schema-generator')).href;
registerHooks({
  resolve: (name, context, next) => next(name, name === 'typescript' ? { ...context, parentURL } : context),
});
const { default: openapiTypes, astToString } = await import('openapi-typescript');

const OPTIONS = {
  strict: true,
  exactOptionalPropertyTypes: true,
  lib: ['ES2023', 'DOM'],
  types: [],
  target: 'ES2023',
  module: 'ESNext',
  moduleResolution: 'Bundler',
  noEmit: true,
};

const client = codeOf('docs/reference/http.md').blocks.find(({ text }) => text.includes("from 'openapi-fetch'"))?.text;

/** What the compiler says of a program beside the types; empty when it is content. */
async function compiled(program) {
  writeFileSync(join(folder, 'client.ts'), program);
  const { stdout } = await run(process.execPath, [TSC, '-p', folder]).catch((error) => error);
  return stdout;
}

before(async () => {
  server = await dev([join(root, 'wrangler.toml')], {
    state: join(folder, 'state'),
    registry: join(folder, 'registry'),
  });
  const served = await fetch(`${server.url}/ojs/v1/openapi.json`);
  writeFileSync(join(folder, 'tocsin.ts'), astToString(await openapiTypes(await served.json(), { silent: true })));
  writeFileSync(join(folder, 'package.json'), '{"type":"module"}');
  writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify({ compilerOptions: OPTIONS, files: ['client.ts'] }));
  mkdirSync(join(folder, 'node_modules'));
  for (const name of ['openapi-fetch', 'openapi-typescript-helpers']) {
    symlinkSync(join(root, 'node_modules', name), join(folder, 'node_modules', name), 'junction');
  }
});

after(async () => {
  await server?.stop();
  rmSync(folder, { recursive: true, force: true });
});

describe('a client with generated types', { timeout: 900_000 }, () => {
  it('compiles, and enqueues a job', async () => {
    const program = client.replaceAll('http://localhost:8787', server.url);
    assert.equal(await compiled(program), '');
    const { stdout } = await run(process.execPath, [join(folder, 'client.ts')]);
    const [, id] = /^(\S+) available\n$/.exec(stdout) ?? assert.fail(stdout);
    const { job } = await server.call('GET', `/jobs/${id}`);
    assert.deepEqual([job.type, job.queue, job.args], ['email.send', 'mail', [{ to: 'ada@example.com' }]]);
  });

  it('does not compile with a path, a member or a type that the API does not have', async () => {
    const wrong = [
      [/'\/ojs\/v1\/jobs'/, "'/ojs/v1/job'"],
      [/args: \[.*?\]/, 'args: 1'],
      [/data\.job\.state/, 'data.job.stage'],
      [/error\.error\.code/, 'error.code'],
    ];
    for (const [right, instead] of wrong) {
      const program = client.replace(right, instead);
      assert.notEqual(program, client);
      assert.match(await compiled(program), /error TS\d+/, instead);
    }
  });
});
