/** Where this program was installed from, so that a new project gets the same package: a registry may not have it. */
import { readFileSync, realpathSync } from 'node:fs';
import { homedir } from 'node:os';
import { dirname, join, relative, resolve, sep } from 'node:path';
import { fileURLToPath } from 'node:url';

const NAME = 'tocsin';

/** How a project names this package; undefined: a version of the registry. @param program as called, its real path */
export function originFor(
  folder: string,
  program: readonly string[] = [process.argv[1] ?? '', fileURLToPath(import.meta.url)],
): string | undefined {
  const named = program.map(installerOf).find((found) => found !== undefined);
  if (named === undefined) {
    const own = program.map(checkoutOf).find((found) => found !== undefined);
    return own && fileSpec(folder, own);
  }
  const { base, spec } = named;
  const path = spec.replace(/^(?:file|link|portal):/, '');
  if (path !== spec || /^(?:~?\/|\.\.?\/|[a-z]:[\\/])/i.test(path)) {
    return fileSpec(folder, resolve(base, path.replace(/^~(?=\/)/, homedir())));
  }
  if (spec.startsWith('workspace:')) return fileSpec(folder, realpathSync(join(base, 'node_modules', NAME)));
  return /^(?:git|https?:|github:|gitlab:|bitbucket:)|^[^@:]+\/[^@]+$/.test(spec) ? spec : undefined;
}

const fileSpec = (folder: string, path: string): string => `file:${relative(folder, path).split(sep).join('/')}`;

/** The project, or the cache of npx, that has this package among its dependencies. */
function installerOf(program: string): { base: string; spec: string } | undefined {
  for (const base of above(program)) {
    const { dependencies, devDependencies, optionalDependencies } = packageIn(base) ?? {};
    const all = { ...optionalDependencies, ...devDependencies, ...dependencies };
    if (typeof all[NAME] === 'string') return { base, spec: all[NAME] };
  }
  return undefined;
}

/** The package's own folder, where it was not installed. */
function checkoutOf(program: string): string | undefined {
  const base = above(program).find((folder) => packageIn(folder) !== undefined);
  const isOwn = base !== undefined && packageIn(base)?.name === NAME;
  return isOwn && !base.split(sep).includes('node_modules') ? base : undefined;
}

function above(file: string): string[] {
  const folders: string[] = [];
  for (let folder = dirname(resolve(file)); !folders.includes(folder); folder = dirname(folder)) folders.push(folder);
  return folders;
}

interface PackageJson {
  name?: unknown;
  dependencies?: Record<string, unknown>;
  devDependencies?: Record<string, unknown>;
  optionalDependencies?: Record<string, unknown>;
}

function packageIn(folder: string): PackageJson | undefined {
  try {
    return JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as PackageJson;
  } catch {
    // There is none, or it is not one that can be installed.
    return undefined;
  }
}
