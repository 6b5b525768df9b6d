/**
 * Builds what `tocsin serve` runs: the Worker with the queue alone, whole and small, and the entrypoint through which the
 * program reaches the Worker that it serves.
 */
import { join } from 'node:path';
import { build } from 'esbuild';
import { packagesIn, writeLicences } from './cli.mjs';

/**
 * @param {string} root of the project
 * @param {string} outdir
 */
export async function buildServe(root, outdir) {
  const { metafile } = await build({
    absWorkingDir: root,
    entryPoints: { queue: 'src/index.ts', served: 'src/library/served.ts' },
    outdir,
    bundle: true,
    minify: true,
    format: 'esm',
    target: 'es2023',
    conditions: ['workerd', 'worker', 'browser'],
    external: ['cloudflare:*', 'node:*'],
    loader: { '.sql': 'text' },
    legalComments: 'none',
    logLevel: 'warning',
    metafile: true,
  });
  writeLicences(root, packagesIn(Object.keys(metafile.inputs)), join(outdir, 'LICENSES.txt'));
}
