/**
 * Loads TypeScript of this project into Node. It is bundled in memory, because its imports need a bundler to resolve.
 */
import { build } from 'esbuild';
import { root } from '../dev/wrangler.mjs';

/**
 * @param {string} path of a module in the project
 * @returns {Promise<Record<string, any>>} its exports
 */
export async function importTypeScript(path) {
  const { outputFiles } = await build({
    absWorkingDir: root,
    entryPoints: [path],
    bundle: true,
    format: 'esm',
    platform: 'node',
    write: false,
    logLevel: 'error',
  });
  const code = Buffer.from(outputFiles[0].contents).toString('base64');
  return await import(`data:text/javascript;base64,${code}`);
}
