/** Optional peers of `tocsin serve`: the runtime, and the bundler for projects. */
import { join } from 'node:path';
import type * as Esbuild from 'esbuild';
import { peerDependencies } from '../../../package.json';
import { CliError } from '../failure';
import { installed } from '../installed';

export interface Workerd {
  binary: string;
  version: string;
  /** The newest compatibility date that it knows. */
  newestDate: string;
}

/** The runtime of this folder's project, else the one beside this program. @throws {CliError} where there is none */
export function findWorkerd(): Workerd {
  type Package = { default: string; version: string; compatibilityDate: string };
  const found = required<Package>('workerd', [], 'tocsin serve runs the queue on workerd');
  return { binary: found.default, version: found.version, newestDate: found.compatibilityDate };
}

/** Finds the bundler of a Worker's own project, else in the same places. @throws {CliError} where there is none */
export const findEsbuild = (folder: string): typeof Esbuild =>
  required('esbuild', [join(folder, 'package.json')], 'A Worker is bundled by esbuild');

function required<T>(name: 'workerd' | 'esbuild', first: readonly string[], why: string): T {
  const found = installed<T>(name, first);
  if (found) return found;
  const all = Object.entries(peerDependencies).map(([peer, range]) => `${peer}@${/\d+/.exec(range)?.[0]}`);
  throw new CliError(`${why}, which is not installed here.`, `npm install ${all.join(' ')}`, 'not_installed');
}
