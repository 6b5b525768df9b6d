/** Child processes that are certainly gone when the benchmark ends, however it ends. */
import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { call } from '../http.mjs';

const alive = new Set();

process.once('exit', () => {
  for (const child of alive) killGroup(child, 'SIGKILL');
});
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.once(signal, () => process.exit(130));

/**
 * Starts a program in a process group of its own, so that what it starts ends with it.
 * @param user `uid` and `gid` of another user, where that is needed
 */
export function start(command, args, env = {}, user = {}) {
  const child = spawn(command, args, {
    ...user,
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...process.env, ...env },
  });
  const state = { child, output: '', exited: undefined };
  alive.add(child);
  const keep = (chunk) => {
    state.output = (state.output + chunk).slice(-20_000);
  };
  child.stdout.on('data', keep);
  child.stderr.on('data', keep);
  state.exited = new Promise((resolve) => {
    child.once('exit', () => {
      alive.delete(child);
      resolve();
    });
    child.once('error', (error) => {
      keep(String(error));
      alive.delete(child);
      resolve();
    });
  });
  return state;
}

/** Ends a started program and waits until it has gone. */
export async function stop({ child, exited }) {
  killGroup(child, 'SIGTERM');
  const impatient = setTimeout(() => killGroup(child, 'SIGKILL'), 3_000);
  await exited;
  clearTimeout(impatient);
  // Members of the group that outlived their leader.
  killGroup(child, 'SIGKILL');
}

function killGroup(child, signal) {
  if (child.pid === undefined) return;
  try {
    process.kill(-child.pid, signal);
  } catch {
    // Gone already.
  }
}

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

/** Waits for the first 200 of the health route; answers the ms since `since`. */
export async function untilHealthy(state, port, since, limitMs) {
  for (;;) {
    try {
      await call(port, 'GET', '/ojs/v1/health');
      return performance.now() - since;
    } catch (error) {
      if (!alive.has(state.child) || performance.now() - since > limitMs) {
        throw new Error(`The server did not start (${error.message}):\n${state.output}`);
      }
      await delay(5);
    }
  }
}

/**
 * CPU time a process has used, in ms (user and system, all threads); undefined where there is no /proc. Unlike elapsed
 * time it hardly changes when other programs compete for the machine.
 */
export function cpuMs(pid) {
  try {
    const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1].split(' ');
    // Clock ticks of 10 ms, as on every Linux that Node runs on.
    return (Number(fields[11]) + Number(fields[12])) * 10;
  } catch {
    return undefined;
  }
}
