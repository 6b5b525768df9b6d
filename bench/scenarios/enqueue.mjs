/** How many jobs are accepted, each durable when it is answered: batches of 1 … 1000 over 1, 16 and 64 connections. */
import { load } from '../http.mjs';
import { enqueueRequest, job } from '../jobs.mjs';
import { cpuPer, rate, summary } from '../stats.mjs';

const BATCHES = [1, 10, 100, 1000];
const CONNECTIONS = [1, 16, 64];
/** Answers of 1,000 jobs are near 1 MB: more of them at once measure memory, not the queue. */
const MAX_JOBS_UNDER_WAY = 16_000;

export const title = 'Enqueue over HTTP';
export const servers = ['workerd', 'wrangler'];
export const columns = ['batch', 'connections', 'requests_s', 'jobs_s', 'p50_ms', 'p99_ms', 'cpu_us_job', 'errors'];

export async function run({ port, cpuMs }, { quick }) {
  const rows = [];
  for (const batch of BATCHES) {
    for (const connections of CONNECTIONS) {
      if (batch * connections > MAX_JOBS_UNDER_WAY) continue;
      const bytes = enqueueRequest(batch, job(`enqueue-${batch}-${connections}`));
      await load({ port, connections, ms: quick ? 100 : 500, next: () => bytes });
      const cpuBefore = cpuMs?.();
      const result = await load({ port, connections, ms: quick ? 300 : 4_000, next: () => bytes });
      const { p50, p99 } = summary(result.latencies);
      rows.push({
        batch,
        connections,
        requests_s: rate(result.requests, result.ms),
        jobs_s: rate(result.requests * batch, result.ms),
        p50_ms: p50,
        p99_ms: p99,
        cpu_us_job: cpuPer(cpuMs, cpuBefore, result.requests * batch),
        errors: result.errors,
      });
    }
  }
  return rows;
}
