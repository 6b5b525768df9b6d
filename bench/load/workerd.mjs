/** Raw workerd with the Worker under load, its handler Workers, and on request the inspector. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { bundle } from '../servers/bundle.mjs';
import { cpuMs, freePort, start, stop, untilHealthy } from '../servers/process.mjs';
import { HANDLERS, POISON_HANDLERS } from './handlers.mjs';
import { memory } from './memory.mjs';
import { discard, scratch } from './scratch.mjs';

export const binary = createRequire(import.meta.url)('workerd').default;

/** An isolate that needs more ends here as it does at Cloudflare. Buffers come in addition. */
const MAX_HEAP_MB = 128;

const text = (value) => JSON.stringify(value);

/** A collection that was asked for must not make code be compiled again either. */
const young = (mb) =>
  mb === undefined ? [] : [`--min-semi-space-size=${mb}`, `--max-semi-space-size=${mb}`, '--no-flush-bytecode'];

const config = ({
  port,
  state,
  count,
  inspect,
  youngMb,
  poisonPort,
  handlers,
}) => `using Workerd = import "/workerd/workerd.capnp";
const config :Workerd.Config = (
  v8Flags = ${text([`--max-old-space-size=${MAX_HEAP_MB}`, ...(inspect ? ['--expose-gc'] : []), ...young(youngMb)])},
  services = [
    (name = "queue", worker = .queue),
    (name = "handler", worker = (modules = [(name = "handler.js", esModule = embed "handler.js")], compatibilityDate = "2026-11-01")),
    (name = "load", worker = (modules = [(name = "load.js", esModule = embed "load.js")], compatibilityDate = "2026-11-01")),
    ${poisonPort ? `(name = "poison", external = (address = "127.0.0.1:${poisonPort}", http = ())),` : ''}
    (name = "state", disk = (path = ${text(state)}, writable = true)),
    (name = "internet", network = (allow = ["private", "local"])),
  ],
  sockets = [(name = "http", address = "127.0.0.1:${port}", http = (), service = "queue")],
);
const queue :Workerd.Worker = (
  modules = [(name = "queue.js", esModule = embed "queue.js")],
  compatibilityDate = "2026-11-01",
  compatibilityFlags = ["no_web_socket_compression"],
  bindings = [
    (name = "QUEUES", durableObjectNamespace = "LoadQueueObject"),
    (name = "DIRECTORY", durableObjectNamespace = "DirectoryObject"),
    (name = "UNIQUE_LOCKS", durableObjectNamespace = "UniqueLockObject"),
    (name = "HANDLER", service = "handler"),
    (name = "LOAD", service = "load"),
    ${poisonPort ? '(name = "POISON", service = "poison"),' : ''}
    (name = "HANDLERS", json = ${text(text({ ...HANDLERS, ...handlers, ...(poisonPort && POISON_HANDLERS) }))}),
    (name = "BENCH_COUNT", json = "${count}"),
    (name = "ALLOW_LOCALHOST", text = "true"),
  ],
  durableObjectNamespaces = [
    (className = "LoadQueueObject", uniqueKey = "queue", enableSql = true),
    (className = "DirectoryObject", uniqueKey = "directory", enableSql = true),
    (className = "UniqueLockObject", uniqueKey = "locks", enableSql = true),
  ],
  durableObjectStorage = (localDisk = "state"),
);
`;

/**
 * @param options.count count rows and alarms
 * @param options.inspect open the inspector, so that `memory()` knows the heap
 * @param options.youngMb nothing is collected before that much was allocated
 * @param options.handlers more of `HANDLERS`
 * @param options.poisonPort where the handler Worker that dies listens
 */
export async function startWorkerd({ count = false, inspect = false, youngMb, poisonPort, handlers } = {}) {
  const directory = scratch();
  const [port, inspector] = [await freePort(), inspect ? await freePort() : undefined];
  bundle('bench/load/queue.ts', join(directory, 'queue.js'));
  bundle('bench/workers/handler.ts', join(directory, 'handler.js'));
  bundle('bench/load/handler.ts', join(directory, 'load.js'));
  const state = join(directory, 'state');
  mkdirSync(state);
  const file = join(directory, 'config.capnp');
  writeFileSync(file, config({ port, state, count, inspect, youngMb, poisonPort, handlers }));
  const since = performance.now();
  const child = start(binary, ['serve', file, ...(inspector ? [`--inspector-addr=127.0.0.1:${inspector}`] : [])]);
  const close = async () => {
    await stop(child);
    discard(directory);
  };
  try {
    await untilHealthy(child, port, since, 10_000);
  } catch (error) {
    await close();
    throw error;
  }
  const { pid } = child.child;
  return {
    kind: 'workerd',
    port,
    inspector,
    cpuMs: () => cpuMs(pid),
    memory: () => memory(pid, inspector),
    output: () => child.output,
    close,
  };
}
