/**
 * Builds what the package exports into dist/: one module for each library and for the program, what libraries share, and
 * declarations. Those of the libraries for handlers and producers are made against the DOM's types only, so that they hold in a
 * project without the Workers' types. dist/serve/ gets the Worker of `tocsin serve`. Beside it, dist-create/ gets the package
 * behind `npm create tocsin`.
 */
import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';
import { buildCli, buildCreate, packagesIn, writeLicences } from './cli.mjs';
import { buildServe } from './serve.mjs';
import { writeBuilt } from './ui.mjs';

const root = join(dirname(fileURLToPath(import.meta.url)), '..');
const dist = join(root, 'dist');
const { dependencies } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));

/** Progress goes to stderr: stdout may be read for the name of a tarball. */
const report = (what) => process.stderr.write(`tocsin: building ${what}\n`);

report('the dashboard');
const dashboard = await writeBuilt();
rmSync(dist, { recursive: true, force: true });
report('the libraries');
await build({
  absWorkingDir: root,
  entryPoints: {
    'handler/index': 'src/handler/index.ts',
    'client/index': 'src/client/index.ts',
    'queue/index': 'src/library/index.ts',
    'queue/headless': 'src/library/headless.ts',
    'testing/index': 'src/testing/index.ts',
    'testing/vitest/index': 'src/testing/vitest/index.ts',
  },
  outdir: 'dist',
  bundle: true,
  // One copy of what they share: an error of one library is an instance of the class that another exports.
  splitting: true,
  chunkNames: 'shared/[name]-[hash]',
  format: 'esm',
  platform: 'neutral',
  target: 'es2022',
  external: ['cloudflare:*', 'vitest', ...Object.keys(dependencies)],
  loader: { '.sql': 'text' },
  logLevel: 'warning',
});
report('the command line and tocsin serve');
writeLicences(root, await buildCli(root, 'index.ts', 'dist/cli/index.js'), join(dist, 'cli/LICENSES.txt'));
writeLicences(root, packagesIn(dashboard), join(dist, 'queue/LICENSES.txt'));
await buildCreate(root);
await buildServe(root, join(dist, 'serve'));
report('the type declarations, which takes longest');
const tsc = join(root, 'node_modules/typescript/bin/tsc');
for (const config of ['tsconfig.queue.json', 'tsconfig.package.json']) {
  execFileSync(process.execPath, [tsc, '-p', join(root, '.ci', config)], { cwd: root, stdio: 'inherit' });
}

/** What stands before the path of an import in a declaration: of names, of a module for what it adds, of a type in place. */
const IMPORT = String.raw`\bfrom '|^import '|\bimport\(['"]`;

// Node's own resolution wants file names in relative imports; the sources leave them to the bundler.
for (const name of readdirSync(dist, { recursive: true, encoding: 'utf8' })) {
  if (!name.endsWith('.d.ts')) continue;
  const file = join(dist, name);
  const text = readFileSync(file, 'utf8').replace(
    new RegExp(`(${IMPORT})(\\.{1,2}/[^'"]+)(?=['"])`, 'gm'),
    (_, before, path) => {
      if (!existsSync(`${resolve(dirname(file), path)}.d.ts`))
        throw new Error(`${name} imports ${path}, which is not built`);
      return `${before}${path}.js`;
    },
  );
  writeFileSync(file, text);
}

// The queue's declarations were made with those of everything inside it. What no library shows goes.
const shown = new Set();
const follow = (file) => {
  if (shown.has(file)) return;
  shown.add(file);
  for (const [, path] of readFileSync(file, 'utf8').matchAll(
    new RegExp(`(?:${IMPORT})(\\.{1,2}/[^'"]+)\\.js(?=['"])`, 'gm'),
  )) {
    follow(`${resolve(dirname(file), path)}.d.ts`);
  }
};
for (const library of [
  'handler/index',
  'client/index',
  'library/index',
  'library/headless',
  'testing/index',
  'testing/vitest/index',
])
  follow(join(dist, `${library}.d.ts`));
for (const name of readdirSync(dist, { recursive: true, encoding: 'utf8' })) {
  if (name.endsWith('.d.ts') && !shown.has(join(dist, name))) rmSync(join(dist, name));
}
