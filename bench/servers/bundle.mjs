/** Bundles TypeScript as wrangler does: `.sql` files are text, what the runtime brings stays outside. */
import { buildSync } from 'esbuild';

const root = new URL('../../', import.meta.url).pathname;

export function bundle(entry, outfile) {
  buildSync({
    absWorkingDir: root,
    entryPoints: [entry],
    outfile,
    bundle: true,
    format: 'esm',
    target: 'es2023',
    loader: { '.sql': 'text' },
    external: ['cloudflare:*', 'node:*'],
    logLevel: 'error',
  });
}
