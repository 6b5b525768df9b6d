/** Runs the queue Worker and the example handler Workers in one `wrangler dev`. */
import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { stripVTControlCharacters } from 'node:util';
import { descendantsOf, endProcess, kill } from './processes.mjs';

/** The project's root. */
export const root = fileURLToPath(new URL('../..', import.meta.url));

/** The first configuration is the queue's: `--port`, `--var` and similar options apply to it. */
const CONFIGS = ['examples/dev/wrangler.toml', 'examples/documents/wrangler.toml'];

/** On this machine nobody needs a key; a deployment never has this variable. */
const OPEN = ['--var', 'ALLOW_LOCALHOST:true'];

/** Development needs neither network nor account, and must not wait for an answer at the terminal. */
const ENVIRONMENT = {
  CI: 'true',
  CLOUDFLARE_CF_FETCH_ENABLED: 'false',
  WRANGLER_HIDE_BANNER: 'true',
  WRANGLER_SEND_METRICS: 'false',
  // Records every local request; without it requests are about twice as fast.
  X_LOCAL_OBSERVABILITY: 'false',
};

/**
 * @typedef {object} Development
 * @property {Promise<string>} ready the URL of the queue Worker; rejects when wrangler ends before
 * @property {Promise<number>} ended exit code, once wrangler has ended
 * @property {() => Promise<void>} stop ends wrangler and the runtime it started
 */

/**
 * Starts `wrangler dev`.
 *
 * @param {string[]} args further arguments of wrangler
 * @param {(chunk: Buffer) => void} onOutput is given all that wrangler prints
 * @param {Record<string, string>} [environment]
 * @returns {Development}
 */
export function startDevelopment(args, onOutput, environment = {}) {
  const [major] = process.versions.node.split('.').map(Number);
  if (major < 22) throw new Error(`wrangler needs Node 22 or newer, this is ${process.version}: use "npm start"`);
  // Without wrangler's launcher: one process less, and no parent that could end without its child.
  const cli = join(root, 'node_modules/wrangler/wrangler-dist/cli.js');
  const child = spawn(
    process.execPath,
    ['--no-warnings', cli, 'dev', ...CONFIGS.flatMap((config) => ['--config', config]), ...OPEN, ...args],
    {
      cwd: root,
      stdio: ['ignore', 'pipe', 'pipe'],
      env: { ...process.env, ...ENVIRONMENT, ...environment },
    },
  );
  // A wrangler that is killed leaves the runtime behind, and that keeps the port.
  let family = [];
  const ended = new Promise((resolve) => {
    child.once('exit', (code) => {
      for (const pid of family) kill(pid);
      resolve(code ?? 1);
    });
  });
  const ready = new Promise((resolve, reject) => {
    let printed = '';
    const read = (chunk) => {
      onOutput(chunk);
      // Also said after the runtime has crashed and wrangler has started another.
      if (/ready on /i.test(stripVTControlCharacters(String(chunk)))) family = descendantsOf(child.pid);
      if (printed === undefined) return;
      printed += chunk;
      // In a colour terminal there are control sequences in it. A piece may end in the middle of an address.
      const url = /Ready on (https?:\/\/\S+)\s/.exec(stripVTControlCharacters(printed))?.[1];
      if (url === undefined) return;
      printed = undefined;
      resolve(url);
    };
    child.stdout.on('data', read);
    child.stderr.on('data', read);
    child.once('error', reject);
    ended.then((code) => reject(new Error(`wrangler ended with code ${code} before it was ready`)));
  });
  return { ready, ended, stop: () => endProcess(child) };
}
