/** Runs `wrangler` the way a reader of the documents does, each in a process group that can be ended as a whole. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { stripVTControlCharacters } from 'node:util';

/** The project's root. */
export const root = fileURLToPath(new URL('../..', import.meta.url));

/** How long a `wrangler dev` may take until it serves, and how long it may take to end, in ms. */
const START_MS = 60_000;
const END_MS = 60_000;
/** Pause between two looks at something that is waited for, in ms. */
const LOOK_MS = 100;

const CLI = join(root, 'node_modules/wrangler/bin/wrangler.js');

/** Every process group that has not been seen to end. */
const running = new Set();
process.on('exit', () => {
  for (const group of running) signal(group, 'SIGKILL');
});
for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(name, () => process.exit(1));

/**
 * Starts wrangler.
 * @param {string[]} args
 * @param {Record<string, string>} [environment]
 */
function start(args, environment = {}) {
  return launch(process.execPath, [CLI, ...args], { cwd: root, env: { ...process.env, ...QUIET, ...environment } });
}

/** Development without network, account, colours and questions. */
export const QUIET = {
  CI: 'true',
  CLOUDFLARE_CF_FETCH_ENABLED: 'false',
  FORCE_COLOR: '0',
  WRANGLER_SEND_METRICS: 'false',
  X_LOCAL_OBSERVABILITY: 'false',
};

/**
 * The system chooses ports as they are taken. A port that was free a moment ago may be another program's by now: by default
 * two wranglers that start together both find the inspector's port free, and one of them ends.
 */
export const FREE_PORTS = ['--port', '0', '--inspector-port', '0'];

/**
 * Starts a program in a process group of its own; {@link end} ends it with all that it started.
 * @param {string} command
 * @param {string[]} args
 * @param {{ cwd: string, env: NodeJS.ProcessEnv }} options
 * @returns {{ pid: number, output: string, exited: Promise<number | null> }} `output` grows
 */
export function launch(command, args, { cwd, env }) {
  const child = spawn(command, args, { cwd, env, detached: true, stdio: ['ignore', 'pipe', 'pipe'] });
  running.add(child.pid);
  const run = { pid: child.pid, output: '', exited: once(child, 'exit').then(([code]) => code) };
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text) => {
      run.output += text;
    });
  }
  return run;
}

/**
 * Runs wrangler to its end.
 * @param {string[]} args
 * @returns {Promise<{ code: number, output: string }>}
 */
export async function wrangler(...args) {
  const run = start(args);
  const code = await Promise.race([run.exited, delay(START_MS, undefined, { ref: false })]);
  await end(run);
  return { code: code ?? 1, output: run.output };
}

/**
 * Starts `wrangler dev` for these configurations, at a free port, and waits until it serves.
 * @param {string[]} configs the first is the one that listens at the port
 * @param {{ state: string, registry: string }} places folders of this run: nothing is shared with other runs
 * @returns {Promise<{ url: string, output: () => string, stop: () => Promise<void>, call: Call }>}
 * @typedef {(method: string, path: string, body?: object) => Promise<object>} Call a request that must succeed: its answer
 */
export async function dev(configs, { state, registry }) {
  const run = start(
    ['dev', ...configs.flatMap((config) => ['-c', config]), ...FREE_PORTS, '--ip', '127.0.0.1', '--persist-to', state],
    { WRANGLER_REGISTRY_PATH: registry },
  );
  try {
    const url = await ready(run, START_MS);
    return { url, output: () => run.output, stop: () => end(run), call: callsTo(url, run) };
  } catch (error) {
    await end(run);
    throw error;
  }
}

/** @returns {Call} */
const callsTo = (url, run) => async (method, path, body) => {
  const response = await fetch(`${url}/ojs/v1${path}`, {
    method,
    ...(body && { headers: { 'Content-Type': 'application/json' }, body: JSON.stringify(body) }),
  });
  const answer = await response.json();
  assert.ok(response.ok, `${method} ${path}: ${JSON.stringify(answer)}\n${run.output}`);
  return answer;
};

/**
 * Waits until a launched `wrangler dev` serves.
 * @param {ReturnType<typeof launch>} run
 * @param {number} limitMs
 * @returns {Promise<string>} the URL at which it does
 * @throws with all that it printed when it ends before, or is not ready in time
 */
export async function ready(run, limitMs) {
  let ended = false;
  run.exited.then(() => {
    ended = true;
  });
  try {
    return await until('wrangler dev', limitMs, () => {
      if (ended) throw new Error('wrangler dev ended before it was ready');
      return /Ready on (http:\/\/[\w.:-]+)\s/.exec(stripVTControlCharacters(run.output))?.[1];
    });
  } catch (error) {
    throw new Error(`${error.message}\n${run.output}`);
  }
}

/** Ends a process group, and waits until it has. */
export async function end(run) {
  signal(run.pid, 'SIGTERM');
  const inTime = await Promise.race([run.exited.then(() => true), delay(END_MS, false, { ref: false })]);
  if (!inTime) {
    signal(run.pid, 'SIGKILL');
    await run.exited;
  }
  // The runtime is a child of wrangler's and in its group; one that outlives it would keep the port.
  signal(run.pid, 'SIGKILL');
  running.delete(run.pid);
}

function signal(group, name) {
  try {
    process.kill(-group, name);
  } catch {
    // It has ended.
  }
}

/**
 * Looks again and again until `look` answers something true, and answers that.
 * @template T
 * @param {string} what named in the error when the time is up
 * @param {number} limitMs
 * @param {() => T | Promise<T>} look
 * @returns {Promise<T>}
 */
export async function until(what, limitMs, look) {
  const deadline = Date.now() + limitMs;
  for (;;) {
    const found = await look();
    if (found) return found;
    if (Date.now() > deadline) throw new Error(`${what}: not within ${limitMs} ms`);
    await delay(LOOK_MS);
  }
}
