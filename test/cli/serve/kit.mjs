/** The program with what `tocsin serve` runs, laid out as in the package, and a server that a test starts, kills and ends. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { buildCli } from '../../../.ci/cli.mjs';
import { buildServe } from '../../../.ci/serve.mjs';
import { writeBuilt } from '../../../.ci/ui.mjs';
import { root } from '../../docs/dev.mjs';
import { NODE } from '../cli.mjs';

/** Lays the program out below a folder. @returns its path */
export async function layOut(folder) {
  await writeBuilt();
  const program = join(folder, 'dist/cli/index.js');
  await buildCli(root, 'index.ts', program);
  await buildServe(root, join(folder, 'dist/serve'));
  return program;
}

/** A folder with the program in it. `bare`: without the packages that it looks for. */
export async function kit() {
  const folder = mkdtempSync(join(tmpdir(), 'tocsin-serve-'));
  const program = await layOut(folder);
  const project = join(folder, 'project');
  mkdirSync(project);
  symlinkSync(join(root, 'node_modules'), join(project, 'node_modules'));
  const running = new Set();
  process.on('exit', () => {
    for (const server of running) server.killNow();
  });
  for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => process.exit(1));
  return {
    folder,
    project,
    /** Runs a command to its end. */
    async run(args, { cwd = project, env = {} } = {}) {
      const child = spawn(NODE, [program, ...args], { cwd, env: { ...process.env, API_KEYS: '', ...env } });
      const run = { stdout: '', stderr: '' };
      for (const name of ['stdout', 'stderr']) child[name].on('data', (text) => (run[name] += text));
      const [code] = await once(child, 'close');
      return { code, ...run };
    },
    /** Starts `serve`, and waits until it says that it serves. */
    async serve(args = [], { cwd = project, env = {} } = {}) {
      const server = new Serve(program, cwd, args, env);
      running.add(server);
      await server.ready();
      return server;
    },
    async close() {
      for (const server of running) await server.kill();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

class Serve {
  lines = [];
  #waiting = new Set();

  constructor(program, cwd, args, env) {
    // A group of its own, to be killed as a whole.
    this.child = spawn(NODE, [program, 'serve', '--port', '0', ...args], {
      ...{ cwd, detached: true, stdio: ['ignore', 'pipe', 'pipe'] },
      env: { ...process.env, API_KEYS: '', ...env },
    });
    this.stderr = '';
    this.child.stderr.on('data', (text) => (this.stderr += text));
    this.ended = once(this.child, 'close').then(([code, signal]) => code ?? signal);
    let rest = '';
    this.child.stdout.setEncoding('utf8').on('data', (piece) => {
      const lines = (rest + piece).split('\n');
      rest = lines.pop();
      for (const line of lines) {
        this.lines.push(JSON.parse(line));
        for (const look of this.#waiting) look();
      }
    });
  }

  async ready() {
    const { url, state } = await this.said(/^serving /);
    this.url = url;
    this.state = state;
  }

  /** Waits for a line. @param from lines before it do not count */
  said(pattern, from = 0) {
    const find = () => this.lines.slice(from).find(({ message }) => pattern.test(message));
    const found = new Promise((resolve) => {
      const look = () => {
        const line = find();
        if (!line) return;
        this.#waiting.delete(look);
        resolve(line);
      };
      this.#waiting.add(look);
      look();
    });
    const ended = this.ended.then((code) => {
      if (find()) return find();
      assert.fail(`serve ended with ${code} before it said ${pattern}:\n${this.stderr}${JSON.stringify(this.lines)}`);
    });
    return Promise.race([found, ended]);
  }

  async call(method, path, body, headers = {}) {
    const response = await fetch(`${this.url}/ojs/v1${path}`, {
      method,
      headers: { 'Content-Type': 'application/json', Connection: 'close', ...headers },
      ...(body && { body: JSON.stringify(body) }),
    });
    return { status: response.status, body: await response.json() };
  }

  /** Enqueues. @returns the id */
  async add(body, headers) {
    const { status, body: answer } = await this.call('POST', '/jobs', body, headers);
    assert.equal(status, 201, JSON.stringify(answer));
    return answer.job.id;
  }

  /** Waits until a job has ended. */
  async result(id, headers) {
    const { body } = await this.call('GET', `/jobs/${id}/result?wait=true&timeout=20`, undefined, headers);
    return body;
  }

  get workerd() {
    return Number(readFileSync(join(this.state, 'run/workerd.pid'), 'utf8'));
  }

  /** Sends a signal to all processes of its group, as Ctrl-C does. */
  signalGroup(name) {
    process.kill(-this.child.pid, name);
  }

  /** Kills the program and its workerd without notice. */
  async kill() {
    this.killNow();
    await this.ended;
  }

  /** The same for the way out of this process: no waiting. */
  killNow() {
    if (this.child.exitCode !== null || this.child.signalCode !== null) return;
    // The program first: it would start another workerd.
    killHard(-this.child.pid);
    if (this.state) killHard(this.workerd);
  }
}

/** A server that handlers ask: each request waits until the test answers. */
export async function answering() {
  const asked = [];
  const waiting = [];
  const server = createServer((_, response) => {
    const wanted = waiting.shift();
    if (wanted) wanted(response);
    else asked.push(response);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${server.address().port}/`,
    /** The next request, to be answered with `end`. */
    next: () => (asked.length > 0 ? Promise.resolve(asked.shift()) : new Promise((resolve) => waiting.push(resolve))),
    close() {
      server.close();
      server.closeAllConnections();
    },
  };
}

/** Kills a process, or a group, that may have ended. */
export function killHard(pid) {
  try {
    process.kill(pid, 'SIGKILL');
  } catch (error) {
    if (error.code !== 'ESRCH') throw error;
  }
}
