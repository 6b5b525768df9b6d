/**
 * 64 producers, each on a connection of its own with one job to a request, while a handler Worker runs their jobs.
 * Every accepted job must have completed soon after they stop.
 */
import { load } from '../../http.mjs';
import { configure, enqueueRequest, job } from '../../jobs.mjs';
import { cpuPer, rate, summary } from '../../stats.mjs';
import { untilEnded } from '../steps.mjs';

const QUEUE = 'load-producers';
const PRODUCERS = 64;

export const title = '64 concurrent producers, one job to a request, with a handler at work';
export const columns = [
  ...['producers', 'accepted', 'accepted_s', 'p50_ms', 'p99_ms', 'errors', 'completed', 'done_after_ms', 'cpu_us_job'],
];

export async function run({ port, cpuMs }, { quick }) {
  await configure(port, QUEUE, { concurrency: 1000 });
  const bytes = enqueueRequest(1, job(QUEUE));
  const cpuBefore = cpuMs?.();
  const result = await load({ port, connections: PRODUCERS, ms: quick ? 500 : 6_000, next: () => bytes });
  const stoppedAt = Date.now();
  const accepted = result.requests - result.errors;
  const { completed, at } = await untilEnded(port, QUEUE, accepted, 30_000);
  if (completed !== accepted) throw new Error(`${accepted} jobs were accepted, ${completed} completed.`);
  const { p50, p99 } = summary(result.latencies);
  return [
    {
      producers: PRODUCERS,
      accepted,
      accepted_s: rate(accepted, result.ms),
      p50_ms: p50,
      p99_ms: p99,
      errors: result.errors,
      completed,
      done_after_ms: Math.max(0, at - stoppedAt),
      cpu_us_job: cpuPer(cpuMs, cpuBefore, accepted),
    },
  ];
}
