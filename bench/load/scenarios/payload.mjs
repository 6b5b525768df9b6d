/** Jobs of 1 MiB: one to a request over four connections, then through a handler that answers how much it was given. */
import { load, request } from '../../http.mjs';
import { configure, job, pause, resume } from '../../jobs.mjs';
import { rate, round, summary } from '../../stats.mjs';
import { ask, IN_FLIGHT, untilEnded } from '../steps.mjs';

const QUEUE = 'load-payload';
/** The largest request with a single job that is accepted, in bytes. */
const MAX_REQUEST = 1_048_576;
/** Room for what the queue adds to a job that it stores. */
const RESERVE = 256;

export const title = 'Payloads of 1 MiB';
export const columns = [
  ...['jobs', 'payload_bytes', 'enqueued_s', 'enqueue_p50_ms', 'enqueue_p99_ms', 'drain_s', 'drain_mb_s'],
  ...['whole', 'peak_mb'],
];

export async function run(server, { quick }) {
  const { port } = server;
  const jobs = quick ? 10 : 200;
  await configure(port, QUEUE, { concurrency: 1000 });
  await pause(port, QUEUE);
  const around = JSON.stringify(job(QUEUE, { type: 'load.size', args: [''] })).length;
  const length = MAX_REQUEST - RESERVE - around;
  const bytes = request('POST', '/ojs/v1/jobs', job(QUEUE, { type: 'load.size', args: ['x'.repeat(length)] }));
  let left = jobs;
  const filled = await load({ port, connections: IN_FLIGHT, next: () => (left-- > 0 ? bytes : undefined) });
  if (filled.errors > 0) throw new Error(`${filled.errors} enqueue requests were refused.`);
  const { p50, p99 } = summary(filled.latencies);
  const resumedAt = Date.parse((await resume(port, QUEUE)).resumed_at);
  const { at } = await untilEnded(port, QUEUE, jobs, 60_000);
  const ms = at - resumedAt;
  const whole = (await ask(port, 'results', QUEUE)).filter((received) => received === length).length;
  if (whole !== jobs) throw new Error(`Only ${whole} of ${jobs} payloads arrived whole.`);
  return [
    {
      jobs,
      payload_bytes: length,
      enqueued_s: rate(jobs, filled.ms),
      enqueue_p50_ms: p50,
      enqueue_p99_ms: p99,
      drain_s: rate(jobs, ms),
      drain_mb_s: round((jobs * length) / 1_000 / ms, 1),
      whole,
      peak_mb: (await server.memory()).peak_mb,
    },
  ];
}
