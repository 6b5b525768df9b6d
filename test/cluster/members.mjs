/** The processes of a cluster: `tocsin serve --cluster`, each with a folder of its own and, at a test's bucket, with a door of its own. */
import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { killHard } from '../cli/serve/kit.mjs';
import { freePort } from '../crash/server.mjs';

const START_LIMIT_MS = 60_000;

/** One of the processes. */
export class Member {
  lines = [];
  #child;
  #ended = Promise.resolve();

  constructor({ program, folder, number, port, env, bucket, door }) {
    Object.assign(this, { program, number, port, env, bucket, door });
    this.state = join(folder, `state-${number}`);
    this.url = `http://127.0.0.1:${port}`;
  }

  get isRunning() {
    return this.#child !== undefined;
  }

  /** Starts it, and waits until it serves. */
  async start() {
    const args = ['serve', '--no-config', '--port', String(this.port), '--state', this.state, '--cluster', this.bucket];
    const child = spawn(process.execPath, [this.program, ...args], {
      ...{ detached: true, stdio: ['ignore', 'pipe', 'pipe'] },
      env: { PATH: process.env.PATH, ...this.env, ...(this.door && { AWS_ENDPOINT_URL: this.door.url }) },
    });
    this.#child = child;
    let [rest, complaint] = ['', ''];
    child.stderr.setEncoding('utf8').on('data', (text) => (complaint += text));
    this.#ended = once(child, 'close').then(() => {
      if (this.#child === child) this.#child = undefined;
    });
    const serves = new Promise((resolve) => {
      child.stdout.setEncoding('utf8').on('data', (piece) => {
        const lines = (rest + piece).split('\n');
        rest = lines.pop();
        for (const line of lines) {
          this.lines.push(JSON.parse(line));
          if (line.includes('"message":"serving ')) resolve(true);
        }
      });
    });
    const late = new Promise((resolve) => setTimeout(resolve, START_LIMIT_MS).unref());
    if (!(await Promise.race([serves, this.#ended, late]))) {
      throw new Error(`Member ${this.number} does not serve:\n${complaint}${JSON.stringify(this.lines.slice(-5))}`);
    }
  }

  get workerd() {
    return Number(readFileSync(join(this.state, 'run/workerd.pid'), 'utf8'));
  }

  /** Ends both of its processes without notice. */
  async kill() {
    this.killNow();
    await this.#ended;
  }

  killNow() {
    if (!this.#child) return;
    // The program first: it would start another workerd.
    killHard(-this.#child.pid);
    killHard(this.workerd);
  }

  /** Ends it as a service manager does. @returns ms */
  async end() {
    const began = performance.now();
    this.#child?.kill('SIGTERM');
    await this.#ended;
    return performance.now() - began;
  }

  stop() {
    process.kill(this.workerd, 'SIGSTOP');
  }

  resume() {
    process.kill(this.workerd, 'SIGCONT');
  }

  /** CPU time of its workerd so far, ms. */
  get cpuMs() {
    const fields = readFileSync(`/proc/${this.workerd}/stat`, 'utf8')
      .replace(/^.*\)\s*/s, '')
      .split(' ');
    return (Number(fields[11]) + Number(fields[12])) * 10;
  }

  /** @returns status 0: no answer within the time */
  async call(method, path, body, withinMs = 30_000) {
    try {
      const response = await fetch(`${this.url}/ojs/v1${path}`, {
        method,
        headers: { 'Content-Type': 'application/json' },
        ...(body && { body: JSON.stringify(body) }),
        signal: AbortSignal.timeout(withinMs),
      });
      const text = await response.text();
      return { status: response.status, body: text.startsWith('{') ? JSON.parse(text) : text };
    } catch (error) {
      return { status: 0, body: String(error.cause ?? error) };
    }
  }
}

/**
 * Makes members that do not run yet.
 * @param bucket a {@link Bucket}; absent: that of the environment (`AWS_…`)
 */
export async function makeMembers({ program, folder, count, bucket, name }) {
  const env = { CLUSTER_KEY: randomBytes(32).toString('hex'), AWS_REGION: 'us-east-1' };
  if (bucket) Object.assign(env, { AWS_ACCESS_KEY_ID: 'key', AWS_SECRET_ACCESS_KEY: 'secret' });
  else for (const [key, value] of Object.entries(process.env)) if (key.startsWith('AWS_')) env[key] = value;
  const members = [];
  for (let number = 1; number <= count; number++) {
    const door = await bucket?.door();
    members.push(new Member({ program, folder, number, port: await freePort(), env, bucket: name, door }));
  }
  process.once('exit', () => {
    for (const member of members) member.killNow();
  });
  return members;
}
