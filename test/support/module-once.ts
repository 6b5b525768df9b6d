/**
 * Asks for the Worker's main module once for each file of tests. Whoever calls an object or the Worker, the test pool has its module
 * imported again, and each time a process outside is asked where it is: that took a third of the time of all tests.
 */
type Import = (specifier: string) => Promise<unknown>;

interface Runner {
  import: Import & { unmemoized?: Import };
}

const MAIN = '/src/index.ts';

const { moduleRunner } = (globalThis as unknown as { __vitest_mocker__: { moduleRunner: Runner } }).__vitest_mocker__;
const load = moduleRunner.import.unmemoized ?? moduleRunner.import.bind(moduleRunner);
const known = new Map<string, Promise<unknown>>();

function importOnce(specifier: string): Promise<unknown> {
  if (!specifier.endsWith(MAIN)) return load(specifier);
  const module = known.get(specifier) ?? load(specifier);
  known.set(specifier, module);
  return module;
}

moduleRunner.import = Object.assign(importOnce, { unmemoized: load });
