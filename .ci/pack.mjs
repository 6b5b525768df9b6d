/**
 * Builds what the package exports into dist/: one self-contained module for each library, and its declarations.
 * The declarations are made against the DOM's types only, so that they hold in a project without the Workers' types.
 */
import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';

const root = join(dirname(fileURLToPath(import.meta.url)), '..');
const dist = join(root, 'dist');

rmSync(dist, { recursive: true, force: true });
await build({
  absWorkingDir: root,
  entryPoints: { 'handler/index': 'src/handler/index.ts', 'client/index': 'src/client/index.ts' },
  outdir: 'dist',
  bundle: true,
  format: 'esm',
  platform: 'neutral',
  target: 'es2022',
  logLevel: 'warning',
});
const tsc = join(root, 'node_modules/typescript/bin/tsc');
execFileSync(process.execPath, [tsc, '-p', join(root, '.ci/tsconfig.package.json')], { cwd: root, stdio: 'inherit' });

// Node's own resolution wants file names in relative imports; the sources leave them to the bundler.
for (const name of readdirSync(dist, { recursive: true, encoding: 'utf8' })) {
  if (!name.endsWith('.d.ts')) continue;
  const file = join(dist, name);
  const text = readFileSync(file, 'utf8').replace(
    /(from '|import\(['"])(\.{1,2}\/[^'"]+)(?=['"])/g,
    (_, before, path) => {
      if (!existsSync(`${resolve(dirname(file), path)}.d.ts`))
        throw new Error(`${name} imports ${path}, which is not built`);
      return `${before}${path}.js`;
    },
  );
  writeFileSync(file, text);
}
