/** The wrangler that a project has installed, and the Node that it needs. */
import { existsSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { CliError } from '../failure';

export interface Wrangler {
  version: string;
  script: string;
  /** The oldest Node that runs it, like 22. */
  node: number;
  /** The newest compatibility date that its runtime knows; undefined: it does not say. */
  newestDate: string | undefined;
}

export function findWrangler(folder: string): Wrangler | undefined {
  const file = packageFile(folder, 'wrangler');
  if (file === undefined) return undefined;
  const { version, bin, engines, dependencies } = JSON.parse(readFileSync(file, 'utf8'));
  return {
    version,
    script: join(dirname(file), typeof bin === 'string' ? bin : bin.wrangler),
    node: Number(/\d+/.exec(engines?.node ?? '')?.[0] ?? 0),
    newestDate: dateOf(dependencies?.workerd ?? ''),
  };
}

/** `1.20261102.1` knows dates up to 2026-11-02. */
export function dateOf(workerd: string): string | undefined {
  const [, year, month, day] = /\.(\d{4})(\d\d)(\d\d)\./.exec(workerd) ?? [];
  return year && `${year}-${month}-${day}`;
}

export function installedVersion(folder: string, name: string): string | undefined {
  const file = packageFile(folder, name);
  return file && JSON.parse(readFileSync(file, 'utf8')).version;
}

function packageFile(folder: string, name: string): string | undefined {
  const paths = createRequire(join(folder, 'package.json')).resolve.paths(name) ?? [];
  return paths.map((path) => join(path, name, 'package.json')).find((file) => existsSync(file));
}

/** Node and wrangler of a folder's project, to be run. @throws {CliError} where one is missing, or Node is too old */
export function runnableWrangler(folder: string): { node: string; script: string } {
  const wrangler = findWrangler(folder);
  if (!wrangler) {
    throw new CliError('wrangler is not installed here.', 'npm install; or npm install --save-dev wrangler');
  }
  return { node: nodeFor(folder, wrangler.node), script: wrangler.script };
}

/** A Node that is new enough: this one, or the project's own. */
function nodeFor(folder: string, oldest: number): string {
  if (Number.parseInt(process.versions.node, 10) >= oldest) return process.execPath;
  const file = packageFile(folder, 'node');
  const own = ['node.exe', 'node'].map((name) => join(dirname(file ?? ''), 'bin', name));
  const found = file && own.find((path) => existsSync(path));
  if (found) return found;
  const hint = 'npm install --save-dev node@24 installs one for the scripts of this project.';
  throw new CliError(`wrangler needs Node ${oldest}, this is ${process.versions.node}.`, hint);
}
