/** Plays histories in a runtime of its own, without the test runner: it starts in a moment, and calls no module through a proxy. */
import { spawn } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { build } from 'esbuild';
import { ROOT } from './vitest.mjs';

const workerd = createRequire(import.meta.url)('workerd').default;

/** Where Linux keeps files in memory: nothing that a history stores is needed later. */
const MEMORY = '/dev/shm';

const WORKER = 'simulation.js';

/** What runs, by its folder: whoever stops this process stops all of it, and nothing is left. */
const running = new Map();
process.on('exit', () => {
  for (const [folder, runtime] of running) {
    runtime.kill();
    rmSync(folder, { recursive: true, force: true });
  }
});
for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => process.exit(1));

const configOf = (folder, order) => `using Workerd = import "/workerd/workerd.capnp";
const config :Workerd.Config = (services = [
  (name = "objects", disk = (path = ${JSON.stringify(folder)}, writable = true)),
  (name = "simulation", worker = (
    modules = [(name = "${WORKER}", esModule = embed "${WORKER}")],
    compatibilityDate = "2026-05-03",
    compatibilityFlags = ["enable_request_signal"],
    durableObjectNamespaces = [
      (className = "Simulated", uniqueKey = "simulated", enableSql = true, preventEviction = true),
    ],
    durableObjectStorage = (localDisk = "objects"),
    bindings = [
      (name = "SIMULATED", durableObjectNamespace = "Simulated"),
      (name = "ORDER", json = ${JSON.stringify(JSON.stringify(order))}),
    ],
  )),
]);
`;

/** Bundles the simulation. @param edited texts of sources that differ from what is stored, by file of the project */
async function bundle(edited) {
  const texts = new Map(Array.from(edited, ([file, text]) => [resolve(ROOT, file), text]));
  const edit = {
    name: 'edit',
    setup: ({ onLoad }) =>
      onLoad({ filter: /\.ts$/ }, ({ path }) => {
        const contents = texts.get(path);
        return contents === undefined ? undefined : { contents, loader: 'ts' };
      }),
  };
  const { outputFiles } = await build({
    absWorkingDir: ROOT,
    entryPoints: ['test/simulation/worker.ts'],
    bundle: true,
    format: 'esm',
    target: 'es2023',
    external: ['cloudflare:*'],
    loader: { '.sql': 'text' },
    write: false,
    ...(texts.size > 0 && { plugins: [edit] }),
  });
  return outputFiles[0].text;
}

/**
 * @param order what to play: see `check.ts`
 * @param edited as {@link bundle} has it
 * @returns whether all agreed, and what was said
 */
export async function playHistories(order, edited = new Map()) {
  const folder = mkdtempSync(join(existsSync(MEMORY) ? MEMORY : tmpdir(), 'simulation-'));
  try {
    writeFileSync(join(folder, WORKER), await bundle(edited));
    writeFileSync(join(folder, 'config.capnp'), configOf(folder, order));
    return await new Promise((done) => {
      const runtime = spawn(workerd, ['test', '--experimental', join(folder, 'config.capnp')]);
      running.set(folder, runtime);
      let said = '';
      for (const stream of [runtime.stdout, runtime.stderr]) stream.on('data', (data) => (said += data));
      runtime.on('error', (error) => done({ agreed: false, said: String(error) }));
      runtime.on('close', (status) => {
        running.delete(folder);
        done({ agreed: status === 0, said });
      });
    });
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
