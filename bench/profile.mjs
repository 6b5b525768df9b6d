/**
 * Where the time of a job goes: CPU profiles of the queue's isolate, by file of the source.
 *
 *     node bench/profile.mjs [enqueue-1 enqueue-64 batch-100 push pull-socket pull-http] [--seconds 5] [--out DIR]
 *
 * Prints microseconds a job by file, then by function. `--out` writes the profiles too, which Chrome's DevTools
 * (Performance, "Load profile") and speedscope show as flame graphs.
 *
 * "(program)" is the runtime's own code: HTTP, SQLite, crossing between Worker and object. `cpu` is the time of the whole
 * process, its other threads included.
 */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { load } from './http.mjs';
import { configure, enqueueRequest, fill, job, pause, resume } from './jobs.mjs';
import { table } from './report.mjs';
import { untilEnded } from './scenarios/drain.mjs';
import { loadClient } from './servers/client.mjs';
import { inspect } from './servers/inspector.mjs';
import { freePort } from './servers/process.mjs';
import { startWorkerd } from './servers/workerd.mjs';
import { round } from './stats.mjs';

const SHOWN = 30;

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { seconds: { type: 'string', default: '5' }, out: { type: 'string' } },
});
const ms = Number(values.seconds) * 1000;

/** Each prepares what it needs and answers what is profiled, which answers how many jobs it did. */
const CASES = {
  'enqueue-1': ({ port }) => enqueue(port, 1, 1),
  'enqueue-64': ({ port }) => enqueue(port, 1, 64),
  'batch-100': ({ port }) => enqueue(port, 100, 16),
  push: async ({ port }) => {
    const jobs = ms * 30;
    await configure(port, 'drain-1000', { concurrency: 1000 });
    await pause(port, 'drain-1000');
    await fill(port, jobs, 1000, job('drain-1000'));
    return async () => {
      await resume(port, 'drain-1000');
      await untilEnded(port, 'drain-1000', jobs, 60_000);
      return jobs;
    };
  },
  'pull-socket': ({ port }) => pull(port, true),
  'pull-http': ({ port }) => pull(port, false),
};

async function enqueue(port, batch, connections) {
  const bytes = enqueueRequest(batch, job('profile'));
  await load({ port, connections, ms: 1000, next: () => bytes });
  return async () => (await load({ port, connections, ms, next: () => bytes })).requests * batch;
}

async function pull(port, socket) {
  const jobs = ms * 3;
  const client = new (await loadClient())({ url: `http://127.0.0.1:${port}` });
  await fill(port, jobs, 1000, { ...job('pull'), type: 'pull.noop' });
  return async () => {
    const stop = new AbortController();
    let begun = 0;
    const handler = () => {
      if (++begun === jobs) stop.abort();
    };
    await client
      .worker('profile', { queues: ['pull'] })
      .run({ 'pull.noop': handler }, { signal: stop.signal, concurrency: 100, socket });
    return jobs;
  };
}

/** Lines of a bundle → file of the source: esbuild writes its name before each. */
function filesOf(bundled) {
  let file = '(bundle)';
  return bundled.split('\n').map((line) => {
    const [, name] = /^\/\/ ((?:src|bench|node_modules)\/\S+)$/.exec(line) ?? [];
    if (name !== undefined) file = name.replace(/^node_modules\/((?:@[^/]+\/)?[^/]+)\/.*/, '$1');
    return file;
  });
}

/** Sums the samples of a profile. @returns [name, microseconds] of each, the most first */
function sum({ nodes, samples, timeDeltas }, nameOf) {
  const names = new Map(nodes.map(({ id, callFrame }) => [id, nameOf(callFrame)]));
  const sums = new Map();
  for (const [at, id] of samples.entries()) {
    const name = names.get(id);
    sums.set(name, (sums.get(name) ?? 0) + timeDeltas[at]);
  }
  return [...sums].sort(([, a], [, b]) => b - a);
}

async function profile(name) {
  const inspector = await freePort();
  const server = await startWorkerd({ inspector });
  try {
    const act = await CASES[name](server);
    const files = filesOf(readFileSync(join(server.directory, 'queue.js'), 'utf8'));
    const session = await inspect(inspector, 'queue');
    if (!session) throw new Error('The inspector knows no queue.');
    await session.send('Profiler.enable');
    await session.send('Profiler.setSamplingInterval', { interval: 200 });
    await session.send('Profiler.start');
    const cpuBefore = server.cpuMs();
    const jobs = await act();
    const cpu = ((server.cpuMs() - cpuBefore) * 1000) / jobs;
    const { profile: taken } = await session.send('Profiler.stop');
    session.close();
    if (values.out) {
      mkdirSync(values.out, { recursive: true });
      writeFileSync(join(values.out, `${name}.cpuprofile`), JSON.stringify(taken));
    }
    const fileOf = ({ functionName, url, lineNumber }) => (url === '' ? functionName : (files[lineNumber] ?? url));
    const rowsOf = (sums) => sums.slice(0, SHOWN).map(([of, us]) => ({ of, us_job: round(us / jobs, 2) }));
    const title = `${name}: ${jobs} jobs, ${round(cpu, 1)} µs of CPU each`;
    console.log(table(`${title}, by file`, ['of', 'us_job'], rowsOf(sum(taken, fileOf))));
    const functionOf = (frame) =>
      `${frame.functionName || '(anonymous)'} ${frame.url === '' ? '' : fileOf(frame)}:${frame.lineNumber}`;
    console.log(table('By function', ['of', 'us_job'], rowsOf(sum(taken, functionOf))));
  } finally {
    await server.close();
  }
}

for (const name of positionals.length > 0 ? positionals : Object.keys(CASES)) await profile(name);
process.exit(0);
