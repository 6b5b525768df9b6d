/** A project of the files that a page shows, to be compiled and tested with the checkout in place of the installed package. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { lexer, walkTokens } from 'marked';
import { root } from './dev.mjs';

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

/** Runs the project's configuration, with the libraries where they are. */
const CONFIG = `
import { mergeConfig } from 'vitest/config';
import shown from './vitest.config.ts';

export default mergeConfig(shown, { resolve: { alias: ${JSON.stringify(LIBRARIES)} } });
`;

/** The blocks of TypeScript of a page: those that begin with their path, and the others in their order. */
export function filesOf(page) {
  const files = new Map();
  const rest = [];
  walkTokens(lexer(readFileSync(join(root, page), 'utf8')), ({ type, lang, text }) => {
    if (type !== 'code' || lang !== 'ts') return;
    const [, path] = /^\/\/ (\S+\.ts)\n/.exec(text) ?? [];
    if (path) files.set(path, text);
    else rest.push(text);
  });
  return { files, rest };
}

export class ShownProject {
  folder = mkdtempSync(join(tmpdir(), 'tocsin-shown-'));

  /** @param {Map<string, string>} files */
  constructor(files) {
    symlinkSync(join(root, 'node_modules'), join(this.folder, 'node_modules'), 'dir');
    this.write('package.json', '{"type":"module"}');
    this.write('wrangler.toml', WRANGLER);
    this.write('shown.config.ts', CONFIG);
    for (const [path, text] of files) this.write(path, text);
  }

  write(path, text) {
    mkdirSync(dirname(join(this.folder, path)), { recursive: true });
    writeFileSync(join(this.folder, path), text);
  }

  /** A configuration for `wrangler dev`, which finds the library by it. @returns {string} its path */
  forDev() {
    this.write('.dev.vars', 'ALLOW_LOCALHOST=true\n');
    this.write('dev.toml', `${WRANGLER}\n[alias]\n"tocsin/queue" = ${JSON.stringify(LIBRARIES['tocsin/queue'])}\n`);
    return join(this.folder, 'dev.toml');
  }

  compile() {
    const compilerOptions = {
      ...JSON.parse(readFileSync(join(root, 'tsconfig.json'), 'utf8')).compilerOptions,
      types: ['@cloudflare/workers-types/experimental', '@cloudflare/vitest-pool-workers/types'],
      paths: Object.fromEntries(Object.entries(LIBRARIES).map(([name, path]) => [name, [path]])),
    };
    const include = ['src', 'test', join(root, 'src/sql.d.ts')];
    this.write('tsconfig.json', JSON.stringify({ compilerOptions, include }));
    this.#run(join(root, 'node_modules/typescript/bin/tsc'), '-p', '.');
  }

  /** Runs the tests, which must pass. @returns {string} what Vitest printed */
  test() {
    return this.#run(join(root, 'node_modules/vitest/vitest.mjs'), 'run', '--config', 'shown.config.ts');
  }

  remove() {
    rmSync(this.folder, { recursive: true, force: true });
  }

  #run(...args) {
    try {
      return execFileSync(process.execPath, args, {
        cwd: this.folder,
        env: { ...process.env, PWD: this.folder },
        stdio: 'pipe',
        encoding: 'utf8',
      });
    } catch (error) {
      assert.fail(`${error.stdout}${error.stderr}`);
    }
  }
}
