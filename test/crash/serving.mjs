/**
 * The server under test, as operators run it: `tocsin serve` with its storage on disk. A kill takes its workerd, which it starts
 * again by itself, or both.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { appendFileSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { killHard, layOut } from '../cli/serve/kit.mjs';
import { HANDLERS } from './queues.mjs';
import { listens } from './server.mjs';

const root = fileURLToPath(new URL('../../', import.meta.url));

const START_LIMIT_MS = 120_000;

export class Serving {
  #program;
  #args;
  #env;
  #log;
  #child;
  #random;
  #gone = Promise.resolve();
  #state;

  constructor({ directory, port, collector, random }) {
    this.port = port;
    this.#random = random;
    this.#log = join(directory, 'server.log');
    this.#state = join(directory, 'state');
    this.#program = layOut(join(directory, 'package'));
    this.#args = ['--port', String(port), '--state', this.#state, '--no-config', '--pass-env', 'COLLECTOR'];
    this.#args.push('--handlers', join(root, 'test/crash/serving'));
    this.#env = { HANDLERS: JSON.stringify(HANDLERS), COLLECTOR: `http://127.0.0.1:${collector}`, API_KEYS: '' };
  }

  get running() {
    return this.#child !== undefined;
  }

  /** Starts the program, unless it runs, and waits until it listens. Sends no request. */
  async start() {
    if (!this.#child) await this.#spawn();
    const end = performance.now() + START_LIMIT_MS;
    while (!(await listens(this.port))) {
      if (!this.#child) throw new Error(`tocsin serve ended while it started:\n${this.#tail()}`);
      if (performance.now() > end) throw new Error(`tocsin serve did not listen:\n${this.#tail()}`);
      await delay(5);
    }
  }

  async #spawn() {
    const child = spawn(process.execPath, [await this.#program, 'serve', ...this.#args], {
      ...{ cwd: root, detached: true, stdio: ['ignore', 'pipe', 'pipe'] },
      env: { ...process.env, ...this.#env },
    });
    this.#child = child;
    for (const from of [child.stdout, child.stderr]) from.on('data', (chunk) => appendFileSync(this.#log, chunk));
    this.#gone = once(child, 'close').then(() => {
      if (this.#child === child) this.#child = undefined;
    });
  }

  /** Ends workerd, or everything, without notice and waits until it is gone. @returns whether it comes back by itself */
  async kill() {
    if (!this.#child) return { comesBack: false };
    const comesBack = this.#random.chance(0.5);
    if (comesBack) {
      const pid = this.#workerd();
      process.kill(pid, 'SIGKILL');
      // It may listen again before anybody looks: a new number shows it, too.
      while (this.#workerd() === pid && (await listens(this.port))) await delay(1);
    } else {
      this.killNow();
      await this.#gone;
      // Its workerd is no child of this process: on a busy machine it takes a moment to die, and is not the next one.
      while (await listens(this.port)) await delay(1);
    }
    return { comesBack };
  }

  /** The test is over: this one ends it as a service manager does. */
  async end() {
    this.#child?.kill('SIGTERM');
    await this.#gone;
  }

  /** For the way out of this process: no waiting. */
  killNow() {
    if (!this.#child) return;
    // The program first: it would start another workerd.
    killHard(-this.#child.pid);
    killHard(this.#workerd());
  }

  #workerd() {
    return Number(readFileSync(join(this.#state, 'run/workerd.pid'), 'utf8'));
  }

  #tail() {
    return readFileSync(this.#log, 'utf8').slice(-4_000);
  }
}
