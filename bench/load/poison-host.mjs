/**
 * The handler Worker that dies, in a process of its own: killing an isolate for real ends a local workerd. A listener
 * in front does what the platform does then. The next caller waits until a new isolate is up; callers under way lose
 * the connection.
 */
import { writeFileSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { bundle } from '../servers/bundle.mjs';
import { freePort, start, stop } from '../servers/process.mjs';
import { discard, scratch } from './scratch.mjs';
import { binary } from './workerd.mjs';

const START_LIMIT_MS = 10_000;

const config = (port) => `using Workerd = import "/workerd/workerd.capnp";
const config :Workerd.Config = (
  services = [(name = "poison", worker = (modules = [(name = "poison.js", esModule = embed "poison.js")], compatibilityDate = "2026-11-01"))],
  sockets = [(name = "http", address = "127.0.0.1:${port}", http = (), service = "poison")],
);
`;

/** Starts the Worker and the listener in front. `deaths()` says how often it died so far. */
export async function startPoisonHost() {
  const directory = scratch();
  const inner = await freePort();
  bundle('bench/load/poison.ts', join(directory, 'poison.js'));
  const file = join(directory, 'config.capnp');
  writeFileSync(file, config(inner));
  let deaths = 0;
  let closing = false;
  let child;
  const run = () => {
    child = start(binary, ['serve', file]);
    void child.exited.then(() => {
      if (closing) return;
      deaths++;
      run();
    });
  };
  run();

  const clients = new Set();
  const front = createServer({ pauseOnConnect: true }, async (client) => {
    clients.add(client);
    client.on('error', () => undefined);
    client.once('close', () => clients.delete(client));
    const upstream = await connected(inner, () => closing).catch(() => undefined);
    if (!upstream) return client.destroy();
    upstream.on('error', () => undefined);
    upstream.once('close', () => client.destroy());
    client.once('close', () => upstream.destroy());
    client.pipe(upstream);
    upstream.pipe(client);
  });
  const port = await freePort();
  await new Promise((resolve) => front.listen(port, '127.0.0.1', resolve));
  return {
    port,
    deaths: () => deaths,
    close: async () => {
      closing = true;
      front.close();
      for (const client of clients) client.destroy();
      await stop(child);
      discard(directory);
    },
  };
}

/** A connection to the Worker, as soon as it is up. */
async function connected(port, isClosing) {
  const since = performance.now();
  for (;;) {
    const socket = await new Promise((resolve) => {
      const attempt = connect({ port, host: '127.0.0.1', noDelay: true }, () => resolve(attempt));
      attempt.once('error', () => resolve(undefined));
    });
    if (socket) return socket;
    if (isClosing() || performance.now() - since > START_LIMIT_MS) throw new Error('The Worker is not up.');
    await delay(5);
  }
}
