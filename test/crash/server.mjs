/**
 * The server under test: workerd itself, one process, with its storage on disk. It can be killed without notice and started
 * again on the same storage and port.
 */
import { spawn } from 'node:child_process';
import { appendFileSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { connect, createServer } from 'node:net';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { buildSync } from 'esbuild';
import { HANDLERS } from './queues.mjs';

const root = fileURLToPath(new URL('../../', import.meta.url));
const binary = createRequire(import.meta.url)('workerd').default;

const START_LIMIT_MS = 120_000;

/** Makes one module of `entry`, a path from the root of the project. */
export function bundle(entry, outfile) {
  buildSync({
    absWorkingDir: root,
    entryPoints: [entry],
    outfile,
    bundle: true,
    format: 'esm',
    target: 'es2023',
    loader: { '.sql': 'text' },
    external: ['cloudflare:*', 'node:*'],
    logLevel: 'error',
  });
}

const text = (value) => JSON.stringify(value);

/** The object classes that `wrangler.toml` names. */
export function classes() {
  const [, named = ''] =
    /^new_sqlite_classes = \[(.*)\]$/m.exec(readFileSync(join(root, 'wrangler.toml'), 'utf8')) ?? [];
  return [...named.matchAll(/"(\w+)"/g)].map(([, name]) => name);
}

const lines = (list, line) => list.map(line).join('\n    ');

const configuration = (port, state, collector) => `using Workerd = import "/workerd/workerd.capnp";
const config :Workerd.Config = (
  services = [
    (name = "queue", worker = .queue),
    (name = "handler", worker = .handler),
    (name = "state", disk = (path = ${text(state)}, writable = true)),
    (name = "internet", network = (allow = ["local"])),
  ],
  sockets = [(name = "http", address = "127.0.0.1:${port}", http = (), service = "queue")],
);
const queue :Workerd.Worker = (
  modules = [(name = "queue.js", esModule = embed "queue.js")],
  compatibilityDate = "2026-11-01",
  bindings = [
    (name = "HANDLER", service = "handler"),
    (name = "HANDLERS", json = ${text(text(HANDLERS))}),
    (name = "ALLOW_LOCALHOST", text = "true"),
  ],
  durableObjectNamespaces = [
    ${lines(classes(), (className) => `(className = "${className}", uniqueKey = "${className}", enableSql = true),`)}
  ],
  durableObjectStorage = (localDisk = "state"),
);
const handler :Workerd.Worker = (
  modules = [(name = "handler.js", esModule = embed "handler.js")],
  compatibilityDate = "2026-11-01",
  bindings = [(name = "COLLECTOR", text = ${text(`http://127.0.0.1:${collector}`)})],
);
`;

/** A loopback port that is free now. */
export function freePort() {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once('error', reject);
    server.listen(0, '127.0.0.1', () => {
      const { port } = server.address();
      server.close(() => resolve(port));
    });
  });
}

export class Server {
  #file;
  #log;
  #child;
  #gone = Promise.resolve();

  /**
   * @param options.directory where everything is kept: bundles, configuration, storage, log
   * @param options.collector port at which the handler Worker reports
   */
  constructor({ directory, port, collector }) {
    this.port = port;
    this.#log = join(directory, 'server.log');
    this.#file = join(directory, 'config.capnp');
    const state = join(directory, 'state');
    mkdirSync(state);
    bundle('src/index.ts', join(directory, 'queue.js'));
    bundle('test/crash/handler.ts', join(directory, 'handler.js'));
    writeFileSync(this.#file, configuration(port, state, collector));
  }

  get running() {
    return this.#child !== undefined;
  }

  /** Starts the process and waits until it listens. Sends no request, so no object is touched by it. */
  async start() {
    const child = spawn(binary, ['serve', this.#file], { stdio: ['ignore', 'pipe', 'pipe'] });
    this.#child = child;
    let output = '';
    const keep = (chunk) => {
      output = (output + chunk).slice(-4_000);
      appendFileSync(this.#log, chunk);
    };
    child.stdout.on('data', keep);
    child.stderr.on('data', keep);
    this.#gone = new Promise((resolve) => {
      child.once('error', (error) => {
        keep(String(error));
        resolve();
      });
      child.once('exit', () => resolve());
    }).then(() => {
      if (this.#child === child) this.#child = undefined;
    });
    const end = performance.now() + START_LIMIT_MS;
    while (!(await listens(this.port))) {
      if (this.#child !== child) throw new Error(`The server ended while it started:\n${output}`);
      if (performance.now() > end) throw new Error(`The server did not listen within ${START_LIMIT_MS} ms:\n${output}`);
      await delay(5);
    }
  }

  /** Ends the process without notice and waits until it is gone. @returns whether it comes back by itself */
  async kill() {
    this.#child?.kill('SIGKILL');
    await this.#gone;
    return { comesBack: false };
  }

  /** The test is over. */
  async end() {
    await this.kill();
  }

  /** For the way out of this process: no waiting. */
  killNow() {
    this.#child?.kill('SIGKILL');
  }
}

/** Does anybody listen at a port? Sends no request. */
export function listens(port) {
  return new Promise((resolve) => {
    const socket = connect({ port, host: '127.0.0.1' });
    socket.once('connect', () => {
      // Where nobody listens, a connection whose own port happens to be this one is connected to itself.
      const isItself = socket.localPort === port;
      socket.destroy();
      resolve(!isItself);
    });
    socket.once('error', () => resolve(false));
  });
}
