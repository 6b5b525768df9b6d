/**
 * What a single enqueue over HTTP takes, step by step: from a Worker that answers at once, over one that reads the body, one that
 * calls an object which stores nothing, and the floor (`floor/worker.js`), to the queue itself.
 *
 *     node bench/ladder.mjs [--seconds 1] [--rounds 5]
 *
 * CPU is that of the runtime's process, all threads, in microseconds a request; medians of the rounds, in which the steps take
 * turns.
 */
import { parseArgs } from 'node:util';
import { startFloor } from './floor/server.mjs';
import { load, request } from './http.mjs';
import { job } from './jobs.mjs';
import { table } from './report.mjs';
import { startWorkerd } from './servers/workerd.mjs';
import { cpuPer, quantile, rate, round } from './stats.mjs';

const { values } = parseArgs({
  options: { seconds: { type: 'string', default: '1' }, rounds: { type: 'string', default: '5' } },
});
const ms = Number(values.seconds) * 1000;
const CONNECTIONS = [1, 16, 64];

const floor = await startFloor();
const tocsin = await startWorkerd();
const STEPS = [
  ['answers at once', floor, '/steps/empty'],
  ['reads the body, writes an envelope', floor, '/steps/read'],
  ['calls an object', floor, '/steps/call'],
  ['stores the job: the floor', floor, '/ojs/v1/jobs'],
  ['Tocsin', tocsin, '/ojs/v1/jobs'],
];

const rows = STEPS.map(([step]) => ({ step }));
for (const connections of CONNECTIONS) {
  const samples = STEPS.map(() => []);
  for (let time = 0; time < Number(values.rounds); time++) {
    for (const [at, [, { port, cpuMs }, path]] of STEPS.entries()) {
      const bytes = request('POST', path, job('ladder'));
      await load({ port, connections, ms: ms / 5, next: () => bytes });
      const before = cpuMs?.();
      const done = await load({ port, connections, ms, next: () => bytes });
      if (done.errors > 0) throw new Error(`${done.errors} requests were refused at ${path}.`);
      samples[at].push({ cpu: cpuPer(cpuMs, before, done.requests), perSecond: rate(done.requests, done.ms) });
    }
  }
  for (const [at, row] of rows.entries()) {
    row[`cpu_${connections}`] = round(
      quantile(
        samples[at].map(({ cpu }) => cpu),
        0.5,
      ),
    );
    row[`per_s_${connections}`] = quantile(
      samples[at].map(({ perSecond }) => perSecond),
      0.5,
    );
  }
}
const columns = ['step', ...CONNECTIONS.flatMap((connections) => [`cpu_${connections}`, `per_s_${connections}`])];
console.log(
  table('A single enqueue, step by step: CPU µs and requests/s with 1, 16 and 64 connections', columns, rows),
);
await floor.close();
await tocsin.close();
process.exit(0);
