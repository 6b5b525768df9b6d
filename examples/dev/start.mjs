/**
 * `npm start`: the queue with the example handlers. Arguments go to wrangler: `npm start -- --port 8799`. Requests come
 * through a server of our own before wrangler's, which keeps pages of strangers out. Jobs are
 * stored in `.wrangler/state` of the project, so they survive a restart; `--persist-to` names another folder. Variables
 * in `.dev.vars` of the project apply; `--env-file` names another file. Requests to localhost need no key. Should wrangler
 * end by itself, it is started again.
 */
import { existsSync } from 'node:fs';
import { constants } from 'node:os';
import { join } from 'node:path';
import { importTypeScript } from '../demo/modules.mjs';
import { keepDevelopment } from './keep.mjs';
import { onceWithoutNpm } from './processes.mjs';
import { root } from './wrangler.mjs';

const EXAMPLE = '{"type":"document.digest","args":[{"path":"hello.md","markdown":"# Hello\\n\\nIt works."}]}';

const given = process.argv.slice(2);
const names = (option) => given.some((arg) => arg === option || arg.startsWith(`${option}=`));
const defaults = names('--persist-to') ? [] : ['--persist-to', join(root, '.wrangler/state')];
const variables = join(root, '.dev.vars');
if (existsSync(variables) && !names('--env-file')) defaults.push('--env-file', variables);

/** Where wrangler would listen by itself. */
const PORT = 8787;
const { openFront } = await importTypeScript('src/cli/front.ts');
const { optionIn } = await importTypeScript('src/cli/option.ts');
const { value: port, rest: withoutPort } = optionIn(given, '--port');
const { value: ip, rest } = optionIn(withoutPort, '--ip');
const open = async (at) => await openFront(at, ip);
const front = await (port === undefined ? open(PORT).catch(() => open(0)) : open(Number(port))).catch((error) => {
  console.error(error.message);
  process.exit(1);
});
const development = keepDevelopment(
  [...defaults, ...rest, ...front.args],
  (chunk) => process.stdout.write(front.read(String(chunk))),
  { ...(process.stdout.isTTY && { FORCE_COLOR: '1' }) },
);

let stopping = false;
async function stop(exitCode) {
  if (stopping) return;
  stopping = true;
  front.close();
  await development.stop();
  process.exit(exitCode);
}
// Ctrl-C is the normal way to stop. Any other signal comes from outside, so its exit code is reported.
process.on('SIGINT', () => stop(0));
for (const signal of ['SIGTERM', 'SIGHUP']) process.on(signal, () => stop(128 + constants.signals[signal]));
onceWithoutNpm(() => stop(1));
development.ended.then((code) => {
  front.close();
  if (!stopping) process.exitCode = code;
});

try {
  await development.ready;
  const { url } = front;
  console.log(`
Tocsin is ready at ${url} and keeps going until Ctrl-C.

  Watch it in a browser:   ${url}/ui

  Enqueue a job:           curl -s ${url}/ojs/v1/jobs -H 'Content-Type: application/json' \\
                             -d '${EXAMPLE}'
  See what became of it:   curl -s ${url}/ojs/v1/jobs/<id>
  See its queue:           curl -s ${url}/ojs/v1/queues/default/stats

  Jobs document.render, document.digest and link.check run in examples/documents; all others wait for workers that pull.
`);
} catch (error) {
  if (!stopping) console.error(error.message);
}
