/** Makes the modules that workerd runs: the packaged queue, or a project bundled by esbuild. */
import { copyFileSync, existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { builtinModules } from 'node:module';
import { basename, extname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { BuildFailure } from 'esbuild';
import { own } from '../../job/own';
import { CliError } from '../failure';
import { findEsbuild } from './packages';
import type { ServedWorker } from './worker';

export interface Module {
  name: string;
  kind: 'esModule' | 'wasm' | 'data';
  file: string;
}

/** The entrypoint through which this program reaches the Worker with the queue. */
export const SERVED = 'TocsinServed';

const OWN = fileURLToPath(new URL('../serve/', import.meta.url));

const AROUND = `export * from "./worker.js";
export { default } from "./worker.js";
export { ${SERVED} } from "./served.js";
`;

/**
 * Writes a Worker's modules into a folder below `run`, the main module first. @param id names the folder
 * @param isQueue it holds the queue @throws {CliError} with the first error of the bundler
 */
export async function modulesOf(worker: ServedWorker, run: string, id: string, isQueue: boolean): Promise<Module[]> {
  const folder = join(run, id);
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  const names = worker.main === undefined ? ['worker.js'] : await bundled(worker, worker.main, folder);
  if (worker.main === undefined) copyFileSync(ownFile('queue.js'), join(folder, 'worker.js'));
  if (isQueue) {
    writeFileSync(join(folder, 'main.js'), AROUND);
    copyFileSync(ownFile('served.js'), join(folder, 'served.js'));
    names.unshift('main.js', 'served.js');
  }
  return names.map((name) => ({ name, kind: own(KINDS, extname(name)) ?? 'data', file: `${id}/${name}` }));
}

const KINDS: Readonly<Record<string, Module['kind']>> = { '.js': 'esModule', '.wasm': 'wasm' };

function ownFile(name: string): string {
  const path = join(OWN, name);
  if (existsSync(path)) return path;
  throw new CliError(`${path} is missing: the package is not whole.`, 'npm run pack builds it in a checkout.');
}

/** Modules of Node that are named without `node:`. */
const BUILTINS = Object.fromEntries(
  builtinModules.filter((name) => !name.includes(':') && !name.startsWith('_')).map((name) => [name, `node:${name}`]),
);

/** @returns the names of the files that were written, the main module first */
async function bundled(worker: ServedWorker, main: string, folder: string): Promise<string[]> {
  const { build } = findEsbuild(worker.folder);
  try {
    const { metafile } = await build({
      absWorkingDir: worker.folder,
      entryPoints: { worker: main },
      outdir: folder,
      bundle: true,
      format: 'esm',
      target: 'es2023',
      conditions: ['workerd', 'worker', 'browser'],
      external: ['cloudflare:*', 'workerd:*', 'node:*'],
      alias: { ...BUILTINS, ...worker.alias },
      define: { 'process.env.NODE_ENV': '"production"', ...worker.define },
      loader: { '.sql': 'text', '.txt': 'text', '.html': 'text', '.wasm': 'copy', '.bin': 'copy' },
      keepNames: true,
      metafile: true,
      logLevel: 'silent',
    });
    const names = Object.keys(metafile.outputs).map((path) => basename(relative('.', path)));
    return names.sort((a, b) => Number(b === 'worker.js') - Number(a === 'worker.js'));
  } catch (error) {
    const [first] = (error as Partial<BuildFailure>).errors ?? [];
    if (!first) throw error;
    const at = first.location ? `${first.location.file}, line ${first.location.line}: ` : '';
    throw new CliError(`${at}${first.text}.`, `${worker.name} could not be bundled.`);
  }
}
