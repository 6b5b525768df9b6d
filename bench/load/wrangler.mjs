/** `wrangler dev` with the Worker under load and its handler Workers. */
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { freePort, start, stop, untilHealthy } from '../servers/process.mjs';
import { HANDLERS } from './handlers.mjs';
import { discard, scratch } from './scratch.mjs';

const wrangler = join(dirname(createRequire(import.meta.url).resolve('wrangler/package.json')), 'bin/wrangler.js');
const file = (path) => fileURLToPath(new URL(path, import.meta.url));

export async function startWrangler() {
  const directory = scratch();
  const [port, inspector] = [await freePort(), await freePort()];
  const args = [
    ...[wrangler, 'dev', '-c', file('queue.toml'), '-c', file('../workers/handler.toml'), '-c', file('handler.toml')],
    ...['--ip', '127.0.0.1', '--port', String(port), '--inspector-port', String(inspector)],
    ...['--persist-to', directory, '--log-level', 'error', '--show-interactive-dev-session', 'false'],
    ...['--var', 'ALLOW_LOCALHOST:true', `HANDLERS:${JSON.stringify(HANDLERS)}`],
  ];
  const env = { X_LOCAL_OBSERVABILITY: 'false', WRANGLER_SEND_METRICS: 'false', CI: 'true' };
  const since = performance.now();
  const child = start(process.execPath, args, env);
  const close = async () => {
    await stop(child);
    discard(directory);
  };
  try {
    await untilHealthy(child, port, since, 30_000);
  } catch (error) {
    await close();
    throw error;
  }
  return { kind: 'wrangler', port, output: () => child.output, close };
}
