/**
 * `wrangler dev`: what a developer runs. Its proxy stands in front of the same workerd. It gets a bundled copy, because it
 * watches the sources it is given: a file saved during a run would restart the Worker in the middle of it.
 */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { HANDLERS } from '../workers/handlers.mjs';
import { bundle } from './bundle.mjs';
import { freePort, start, stop, untilHealthy } from './process.mjs';

const wrangler = join(dirname(createRequire(import.meta.url).resolve('wrangler/package.json')), 'bin/wrangler.js');

/** Puts a Worker and its configuration into `directory`; answers the configuration's path. */
function copy(name, directory) {
  bundle(`bench/workers/${name}.ts`, join(directory, `${name}.js`));
  const toml = readFileSync(new URL(`../workers/${name}.toml`, import.meta.url), 'utf8');
  const file = join(directory, `${name}.toml`);
  writeFileSync(file, toml.replace(`"${name}.ts"`, `"${name}.js"`));
  return file;
}

export async function startWrangler({ count = false } = {}) {
  const directory = mkdtempSync(join(tmpdir(), 'tocsin-bench-'));
  const [port, inspector] = [await freePort(), await freePort()];
  const args = [
    ...[wrangler, 'dev', '-c', copy('queue', directory), '-c', copy('handler', directory)],
    ...['--ip', '127.0.0.1', '--port', String(port), '--inspector-port', String(inspector)],
    ...['--persist-to', join(directory, 'state'), '--log-level', 'error', '--show-interactive-dev-session', 'false'],
    ...[
      '--var',
      'ALLOW_LOCALHOST:true',
      `HANDLERS:${JSON.stringify(HANDLERS)}`,
      ...(count ? ['BENCH_COUNT:true'] : []),
    ],
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
