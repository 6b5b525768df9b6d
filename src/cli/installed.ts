/** Packages that a command uses where they are installed, and that this one does not depend on. */
import { createRequire } from 'node:module';
import { join } from 'node:path';

/** Loads a package from `first`, the project in this folder, or beside this program; undefined: not installed. */
export function installed<T>(name: string, first: readonly string[] = []): T | undefined {
  for (const from of [...first, join(process.cwd(), 'package.json'), import.meta.url]) {
    if (pathFrom(from, name) !== undefined) return createRequire(from)(name) as T;
  }
  return undefined;
}

/** The file of a package, as seen from another one; undefined: there is none. */
export function pathFrom(from: string, name: string): string | undefined {
  try {
    return createRequire(from).resolve(name);
  } catch {
    return undefined;
  }
}
