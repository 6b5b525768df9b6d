/** Raw workerd with the floor's Worker, its state on disk as the queue's. */
import { copyFileSync, mkdirSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { discard, scratch } from '../load/scratch.mjs';
import { cpuMs, freePort, start, stop, untilHealthy } from '../servers/process.mjs';

const binary = createRequire(import.meta.url)('workerd').default;

const config = (port, state) => `using Workerd = import "/workerd/workerd.capnp";
const config :Workerd.Config = (
  services = [
    (name = "floor", worker = .floor),
    (name = "handler", worker = (modules = [(name = "handler.js", esModule = embed "handler.js")], compatibilityDate = "2026-11-01")),
    (name = "internet", network = (allow = ["private", "local"])),
    (name = "state", disk = (path = ${JSON.stringify(state)}, writable = true)),
  ],
  sockets = [(name = "http", address = "127.0.0.1:${port}", http = (), service = "floor")],
);
const floor :Workerd.Worker = (
  modules = [(name = "worker.js", esModule = embed "worker.js")],
  compatibilityDate = "2026-11-01",
  compatibilityFlags = ["no_web_socket_compression"],
  bindings = [(name = "FLOOR", durableObjectNamespace = "FloorObject"), (name = "HANDLER", service = "handler")],
  durableObjectNamespaces = [(className = "FloorObject", uniqueKey = "floor", enableSql = true)],
  durableObjectStorage = (localDisk = "state"),
);
`;

export async function startFloor() {
  const directory = scratch();
  const port = await freePort();
  for (const name of ['worker.js', 'handler.js']) {
    copyFileSync(fileURLToPath(new URL(name, import.meta.url)), join(directory, name));
  }
  const state = join(directory, 'state');
  mkdirSync(state);
  const file = join(directory, 'config.capnp');
  writeFileSync(file, config(port, state));
  const child = start(binary, ['serve', file]);
  const close = async () => {
    await stop(child);
    discard(directory);
  };
  try {
    await untilHealthy(child, port, performance.now(), 10_000);
  } catch (error) {
    await close();
    throw error;
  }
  return { port, cpuMs: () => cpuMs(child.child.pid), close };
}
