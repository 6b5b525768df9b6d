/** A Redis server that flushes every write to disk before it answers, on a loopback port, with its files in `directory`. */
import { spawnSync } from 'node:child_process';
import { connect } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { freePort, start, stop } from '../servers/process.mjs';

export const NO_REDIS = 'there is no redis-server on PATH (Debian: apt-get install redis-server).';

/** The version of the server on PATH, or undefined when there is none. */
export function redisVersion() {
  const { status, stdout } = spawnSync('redis-server', ['--version'], { encoding: 'utf8' });
  return status === 0 ? /v=([\d.]+)/.exec(stdout)?.[1] : undefined;
}

export async function startRedis(directory) {
  const port = await freePort();
  const state = start('redis-server', [
    ...['--port', String(port), '--bind', '127.0.0.1', '--dir', directory, '--save', ''],
    ...['--appendonly', 'yes', '--appendfsync', 'always', '--maxmemory-policy', 'noeviction'],
  ]);
  for (let tries = 0; !(await answers(port)); tries++) {
    if (tries === 200) {
      await stop(state);
      throw new Error(`Redis did not start:\n${state.output}`);
    }
    await delay(25);
  }
  return { port, pid: state.child.pid, close: () => stop(state) };
}

function answers(port) {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1', () => socket.write('PING\r\n'));
    const end = (is) => {
      socket.destroy();
      resolve(is);
    };
    socket.once('data', (bytes) => end(bytes.toString().startsWith('+PONG')));
    socket.once('error', () => end(false));
  });
}
