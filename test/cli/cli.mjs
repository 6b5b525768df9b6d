/** The command-line program as it is packed, and its modules one by one. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { build } from 'esbuild';
import { BUNDLE, buildCli } from '../../.ci/cli.mjs';
import { root } from '../docs/dev.mjs';

const folder = mkdtempSync(join(tmpdir(), 'tocsin-cli-'));
process.on('exit', () => rmSync(folder, { recursive: true, force: true }));

const program = join(folder, 'tocsin.mjs');
let built;

/**
 * The Node that runs the program: the one that runs npm. "npm run" puts the project's own, a newer one, first on the path.
 */
export const NODE = process.env.TEST_NODE ?? process.env.npm_node_execpath ?? process.execPath;

/** Builds the program once. @returns {Promise<string>} its path */
export function cli() {
  built ??= buildCli(root, 'index.ts', program);
  return built.then(() => program);
}

/** Starts the program. */
export async function start(args, { cwd = folder, env = {}, stdin = 'ignore' } = {}) {
  const child = spawn(NODE, [await cli(), ...args], {
    cwd,
    env: { ...process.env, CI: 'true', TOCSIN_URL: '', TOCSIN_KEY: '', ...env },
    stdio: [stdin, 'pipe', 'pipe'],
  });
  const run = { child, stdout: '', stderr: '', ended: once(child, 'close').then(([code]) => code) };
  for (const name of ['stdout', 'stderr']) {
    child[name].setEncoding('utf8').on('data', (text) => {
      run[name] += text;
    });
  }
  return run;
}

/**
 * Runs the program to its end.
 * @returns {Promise<{ code: number, stdout: string, stderr: string }>}
 */
export async function tocsin(args, options) {
  const run = await start(args, options);
  const code = await run.ended;
  return { code, stdout: run.stdout, stderr: run.stderr };
}

/**
 * The program and plain requests, against a server that is known once the tests run.
 * @param {() => string} url of the server
 */
export function against(url) {
  const run = (...args) => tocsin(args, { env: { TOCSIN_URL: url() } });
  return {
    run,
    /** Runs a command that must succeed, and reads its JSON. */
    async json(...args) {
      const { code, stdout, stderr } = await run(...args, '--json');
      assert.equal(code, 0, stderr);
      return JSON.parse(stdout);
    },
    /** A request that must succeed; its answer. */
    async call(method, path, body) {
      const response = await fetch(`${url()}/ojs/v1${path}`, {
        method,
        headers: { 'Content-Type': 'application/json' },
        ...(body && { body: JSON.stringify(body) }),
      });
      const answer = await response.json();
      assert.ok(response.ok, `${method} ${path}: ${JSON.stringify(answer)}`);
      return answer;
    },
  };
}

let modules = 0;

/** Imports modules of `src/cli` as one: what they share is shared. */
export async function load(...paths) {
  const outfile = join(folder, `module-${modules++}.mjs`);
  const contents = paths.map((path) => `export * from ${JSON.stringify(`./${path}`)};`).join('\n');
  const stdin = { contents, resolveDir: join(root, 'src/cli'), loader: 'ts' };
  await build({ ...BUNDLE, stdin, outfile });
  return await import(pathToFileURL(outfile).href);
}
