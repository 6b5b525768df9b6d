// The page about tests, word for word: its Worker and its tests compile, and the tests pass.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { lexer, walkTokens } from 'marked';
import { root } from './dev.mjs';

const PAGE = 'docs/guides/testing.md';

/** The checkout stands for the installed package. */
const LIBRARIES = {
  'tocsin/queue': join(root, 'src/library/index.ts'),
  'tocsin/testing/vitest': join(root, 'src/testing/vitest/index.ts'),
  'tocsin/testing': join(root, 'src/testing/index.ts'),
};

const WRANGLER = `
name = "tested"
main = "src/index.ts"
compatibility_date = "2026-11-01"
migrations = [{ tag = "v1", new_sqlite_classes = ["QueueObject", "DirectoryObject", "UniqueLockObject", "WorkflowObject"] }]
`;

/** Runs the page's configuration, with the libraries where they are. */
const CONFIG = `
import { mergeConfig } from 'vitest/config';
import shown from './vitest.config.ts';

export default mergeConfig(shown, { resolve: { alias: ${JSON.stringify(LIBRARIES)} } });
`;

const folder = mkdtempSync(join(tmpdir(), 'tocsin-testing-'));

function write(path, text) {
  mkdirSync(dirname(join(folder, path)), { recursive: true });
  writeFileSync(join(folder, path), text);
}

function run(...args) {
  try {
    return execFileSync(process.execPath, args, {
      cwd: folder,
      env: { ...process.env, PWD: folder },
      stdio: 'pipe',
      encoding: 'utf8',
    });
  } catch (error) {
    assert.fail(`${error.stdout}${error.stderr}`);
  }
}

describe('the tests that the page shows', { timeout: 900_000 }, () => {
  before(() => {
    symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'), 'dir');
    write('package.json', '{"type":"module"}');
    write('wrangler.toml', WRANGLER);
    write('shown.config.ts', CONFIG);
    const rest = [];
    walkTokens(lexer(readFileSync(join(root, PAGE), 'utf8')), ({ type, lang, text }) => {
      if (type !== 'code' || lang !== 'ts') return;
      const [, path] = /^\/\/ (\S+\.ts)\n/.exec(text) ?? [];
      if (path) write(path, text);
      else rest.push(text);
    });
    const [matchers, types] = rest;
    write('src/worker.d.ts', types);
    write(
      'src/matchers.ts',
      `import { expect } from 'vitest';\nimport { testQueue } from 'tocsin/testing/vitest';\nconst queue = testQueue();\n${matchers}\nexport {};\n`,
    );
  });
  after(() => rmSync(folder, { recursive: true, force: true }));

  it('compile', () => {
    const compilerOptions = {
      ...JSON.parse(readFileSync(join(root, 'tsconfig.json'), 'utf8')).compilerOptions,
      types: ['@cloudflare/workers-types/experimental', '@cloudflare/vitest-pool-workers/types'],
      paths: Object.fromEntries(Object.entries(LIBRARIES).map(([name, path]) => [name, [path]])),
    };
    const include = ['src', 'test', join(root, 'src/sql.d.ts')];
    write('tsconfig.json', JSON.stringify({ compilerOptions, include }));
    run(join(root, 'node_modules/typescript/bin/tsc'), '-p', '.');
  });

  it('pass', () => {
    const printed = run(join(root, 'node_modules/vitest/vitest.mjs'), 'run', '--config', 'shown.config.ts');
    assert.match(printed, /9 passed/);
  });
});
