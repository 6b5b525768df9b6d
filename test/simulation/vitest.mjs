/** Runs a file of tests, also where npm has not put its folders on the path. */
import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** The folder of the project. */
export const ROOT = fileURLToPath(new URL('../..', import.meta.url));

/** The project's own Node, which npm installs because the one at hand may be too old, and the tools that npm installs. */
const TOOLS = ['node_modules/node/bin', 'node_modules/.bin'].map((folder) => join(ROOT, folder));

const VITEST = 'node_modules/vitest/vitest.mjs';

/** Why nothing can be played here, and what to do; undefined: it can. */
export function whyNot() {
  return existsSync(join(ROOT, VITEST)) ? undefined : `There is no ${VITEST}: run npm install in ${ROOT} first.`;
}

/**
 * Runs a file of tests in a process of its own.
 * @param root the project, or a copy of it
 * @returns whether all agreed, and what was said
 */
export function runTest(test, root) {
  const node = [join(ROOT, 'node_modules/node/bin/node'), process.execPath].find(existsSync);
  return new Promise((resolve) => {
    const vitest = spawn(node, [join(root, VITEST), 'run', test, '--maxWorkers=1'], {
      cwd: root,
      env: { ...process.env, PATH: [...TOOLS, process.env.PATH].join(delimiter) },
    });
    let said = '';
    for (const stream of [vitest.stdout, vitest.stderr]) stream.on('data', (data) => (said += data));
    vitest.on('error', (error) => resolve({ agreed: false, said: String(error) }));
    vitest.on('close', (status) => resolve({ agreed: status === 0, said }));
  });
}
