/**
 * How fast workers that pull run no-op jobs, through the client: over a socket, and over HTTP. `in_hand` is the most jobs that
 * the worker runs at once. Timed from the start of the worker to the end of the last job.
 */
import { fill, job } from '../jobs.mjs';
import { loadClient } from '../servers/client.mjs';
import { cpuPer, rate } from '../stats.mjs';

const SHAPES = [
  { in_hand: 1, jobs: 2_000 },
  { in_hand: 10, jobs: 10_000 },
  { in_hand: 100, jobs: 20_000 },
];

export const title = 'Jobs pulled by one worker of the client library';
export const servers = ['workerd'];
export const columns = ['over', 'in_hand', 'jobs', 'jobs_s', 'cpu_us_job', 'errors'];

export async function run({ port, cpuMs }, { quick }) {
  const TocsinClient = await loadClient();
  const client = new TocsinClient({ url: `http://127.0.0.1:${port}` });
  const rows = [];
  for (const over of ['socket', 'HTTP']) {
    for (const shape of SHAPES) {
      const jobs = quick ? shape.jobs / 10 : shape.jobs;
      const queue = `pulled-${over.toLowerCase()}-${shape.in_hand}`;
      await fill(port, jobs, 1000, { ...job(queue), type: 'pulled.noop' });
      rows.push(await pull(client, { over, queue, jobs, in_hand: shape.in_hand, cpuMs }));
    }
  }
  return rows;
}

async function pull(client, { over, queue, jobs, in_hand, cpuMs }) {
  const stop = new AbortController();
  let begun = 0;
  let errors = 0;
  const cpuBefore = cpuMs?.();
  const start = performance.now();
  const handler = () => {
    if (++begun === jobs) stop.abort();
  };
  const options = { signal: stop.signal, concurrency: in_hand, socket: over === 'socket', onError: () => errors++ };
  await client.worker(`bench-${queue}`, { queues: [queue] }).run({ 'pulled.noop': handler }, options);
  const elapsed = performance.now() - start;
  return { over, in_hand, jobs, jobs_s: rate(jobs, elapsed), cpu_us_job: cpuPer(cpuMs, cpuBefore, jobs), errors };
}
