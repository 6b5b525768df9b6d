/** Raw workerd: the runtime alone, without wrangler's proxy in front. State lies on disk, as in `wrangler dev`. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { HANDLERS } from '../workers/handlers.mjs';
import { bundle } from './bundle.mjs';
import { cpuMs, freePort, start, stop, untilHealthy } from './process.mjs';

const binary = createRequire(import.meta.url)('workerd').default;

const config = (port, statePath, count, v8Flags) => `using Workerd = import "/workerd/workerd.capnp";
const config :Workerd.Config = (
  ${v8Flags.length > 0 ? `v8Flags = ${JSON.stringify(v8Flags)},` : ''}
  services = [
    (name = "queue", worker = .queue),
    (name = "handler", worker = .handler),
    (name = "state", disk = (path = ${JSON.stringify(statePath)}, writable = true)),
    (name = "internet", network = (allow = ["private", "local"])),
  ],
  sockets = [(name = "http", address = "127.0.0.1:${port}", http = (), service = "queue")],
);
const queue :Workerd.Worker = (
  modules = [(name = "queue.js", esModule = embed "queue.js")],
  compatibilityDate = "2026-11-01",
  compatibilityFlags = ["no_web_socket_compression"],
  bindings = [
    (name = "QUEUES", durableObjectNamespace = "BenchQueueObject"),
    (name = "DIRECTORY", durableObjectNamespace = "DirectoryObject"),
    (name = "HANDLER", service = "handler"),
    (name = "HANDLERS", json = ${JSON.stringify(JSON.stringify(HANDLERS))}),
    (name = "BENCH_COUNT", json = "${count}"),
    (name = "ALLOW_LOCALHOST", text = "true"),
  ],
  durableObjectNamespaces = [
    (className = "BenchQueueObject", uniqueKey = "queue", enableSql = true),
    (className = "DirectoryObject", uniqueKey = "directory", enableSql = true),
  ],
  durableObjectStorage = (localDisk = "state"),
);
const handler :Workerd.Worker = (
  modules = [(name = "handler.js", esModule = embed "handler.js")],
  compatibilityDate = "2026-11-01",
);
`;

/**
 * @param options.count count rows and alarms
 * @param options.inspector port of the inspector, for profiles
 */
export async function startWorkerd({ count = false, inspector, v8Flags = [] } = {}) {
  const directory = mkdtempSync(join(tmpdir(), 'tocsin-bench-'));
  const port = await freePort();
  bundle('bench/workers/queue.ts', join(directory, 'queue.js'));
  bundle('bench/workers/handler.ts', join(directory, 'handler.js'));
  mkdirSync(join(directory, 'state'));
  const file = join(directory, 'config.capnp');
  writeFileSync(file, config(port, join(directory, 'state'), count, v8Flags));
  const args = ['serve', file, ...(inspector ? [`--inspector-addr=127.0.0.1:${inspector}`] : [])];
  const since = performance.now();
  const state = start(binary, args);
  const close = async () => {
    await stop(state);
    rmSync(directory, { recursive: true, force: true });
  };
  try {
    const startupMs = await untilHealthy(state, port, since, 10_000);
    return {
      name: 'workerd',
      port,
      startupMs,
      pid: state.child.pid,
      cpuMs: () => cpuMs(state.child.pid),
      directory,
      output: () => state.output,
      close,
    };
  } catch (error) {
    await close();
    throw error;
  }
}
