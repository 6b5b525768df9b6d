/** A Worker with the queue runs at old compatibility dates, with the flags that `init` adds. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';
import { convertV4MiniflareOptions, Miniflare } from 'miniflare';
import { load } from './cli.mjs';

const { NEEDED_FLAGS, OBJECT_CLASSES } = await load('project/toolchain.ts');
const root = fileURLToPath(new URL('../..', import.meta.url));

const MAIN = `
import { createTocsin, defineHandlers } from './src/library/headless';
export { QueueObject, DirectoryObject, UniqueLockObject, WorkflowObject, TocsinHandlers, Tocsin } from './src/library/headless';
const handlers = defineHandlers({ 'add': ({ args: [a, b] }) => a + b });
export default createTocsin({ handlers }).worker({});
`;

const { outputFiles } = await build({
  stdin: { contents: MAIN, resolveDir: root, loader: 'ts' },
  ...{ bundle: true, format: 'esm', target: 'es2023', external: ['cloudflare:*', 'node:*'], write: false },
  loader: { '.sql': 'text' },
});

/** Runs a job to its end. */
async function runAt(compatibilityDate, compatibilityFlags) {
  const miniflare = new Miniflare(
    convertV4MiniflareOptions({
      modules: [{ type: 'ESModule', path: 'index.mjs', contents: outputFiles[0].text }],
      ...{ compatibilityDate, compatibilityFlags, bindings: { ALLOW_LOCALHOST: 'true' } },
      durableObjects: Object.fromEntries(
        OBJECT_CLASSES.map((className) => [className, { className, useSQLite: true }]),
      ),
    }),
  );
  try {
    const job = { type: 'add', args: [1, 2] };
    const call = async (path, init) => (await miniflare.dispatchFetch(`http://localhost/ojs/v1${path}`, init)).json();
    const { id } = await call('/jobs', {
      method: 'POST',
      headers: { 'Content-Type': 'application/json' },
      body: JSON.stringify(job),
    });
    for (;;) {
      const { job: now } = await call(`/jobs/${id}?wait=10`);
      if (now.state === 'completed') return now.result;
      assert.ok(['available', 'active'].includes(now.state), JSON.stringify(now));
      await new Promise((resolve) => setImmediate(resolve));
    }
  } finally {
    await miniflare.dispose();
  }
}

describe('a Worker with the queue', () => {
  for (const date of ['2024-09-23', '2025-05-05', '2026-03-03']) {
    it(`runs with the date ${date}, and the flags that it needs`, { timeout: 900_000 }, async () => {
      const flags = NEEDED_FLAGS.filter(({ since }) => date < since).map(({ flag }) => flag);
      assert.equal(await runAt(date, flags), 3);
    });
  }

  it('starts at an old date with the vital flag alone', { timeout: 900_000 }, async () => {
    const flags = NEEDED_FLAGS.filter(({ vital }) => vital).map(({ flag }) => flag);
    assert.equal(await runAt('2024-09-23', flags), 3);
  });
});
