/** `wrangler dev`: what a developer runs. Its proxy stands in front of the same workerd. */
import { mkdtempSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { HANDLERS } from '../workers/handlers.mjs';
import { freePort, start, stop, untilHealthy } from './process.mjs';

const wrangler = join(dirname(createRequire(import.meta.url).resolve('wrangler/package.json')), 'bin/wrangler.js');
const workers = fileURLToPath(new URL('../workers/', import.meta.url));

export async function startWrangler({ count = false } = {}) {
  const directory = mkdtempSync(join(tmpdir(), 'tocsin-bench-'));
  const [port, inspector] = [await freePort(), await freePort()];
  const args = [
    ...[wrangler, 'dev', '-c', join(workers, 'queue.toml'), '-c', join(workers, 'handler.toml')],
    ...['--ip', '127.0.0.1', '--port', String(port), '--inspector-port', String(inspector)],
    ...['--persist-to', directory, '--log-level', 'error', '--show-interactive-dev-session', 'false'],
    ...['--var', `HANDLERS:${JSON.stringify(HANDLERS)}`, ...(count ? ['BENCH_COUNT:true'] : [])],
  ];
  const env = { X_LOCAL_OBSERVABILITY: 'false', WRANGLER_SEND_METRICS: 'false', CI: 'true' };
  const since = performance.now();
  const state = start(process.execPath, args, env);
  const close = async () => {
    await stop(state);
    rmSync(directory, { recursive: true, force: true });
  };
  try {
    const startupMs = await untilHealthy(state, port, since, 30_000);
    return {
      name: 'wrangler dev',
      port,
      startupMs,
      pid: state.child.pid,
      directory,
      output: () => state.output,
      close,
    };
  } catch (error) {
    await close();
    throw error;
  }
}
