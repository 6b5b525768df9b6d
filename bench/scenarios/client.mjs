/** Single enqueues through the client library, which gathers those made in the same turn into one request. */
import { loadClient } from '../servers/client.mjs';
import { cpuPer, rate, summary } from '../stats.mjs';

const CALLERS = [1, 64, 1000];

export const title = 'Single enqueues through the client library';
export const servers = ['workerd', 'wrangler'];
export const columns = ['callers', 'jobs_s', 'p50_ms', 'p99_ms', 'cpu_us_job', 'errors'];

export async function run({ port, cpuMs }, { quick }) {
  const TocsinClient = await loadClient();
  const client = new TocsinClient({ url: `http://127.0.0.1:${port}`, maxBatch: 1000 });
  const rows = [];
  for (const callers of CALLERS) {
    await callFor(client, callers, quick ? 100 : 500);
    const cpuBefore = cpuMs?.();
    const { jobs, ...row } = await callFor(client, callers, quick ? 500 : 4_000);
    rows.push({ ...row, cpu_us_job: cpuPer(cpuMs, cpuBefore, jobs) });
  }
  return rows;
}

/** This many callers enqueue one job after the other, each awaiting its own. */
async function callFor(client, callers, ms) {
  const latencies = [];
  let errors = 0;
  const start = performance.now();
  const caller = async () => {
    for (let sentAt = start; sentAt - start < ms; sentAt = performance.now()) {
      const options = { queue: `client-${callers}` };
      await client.enqueue('bench.noop', [{ to: 'someone@example.com', n: 1 }], options).catch(() => errors++);
      latencies.push(performance.now() - sentAt);
    }
  };
  await Promise.all(Array.from({ length: callers }, caller));
  const elapsed = performance.now() - start;
  const { p50, p99 } = summary(latencies);
  return {
    jobs: latencies.length,
    callers,
    jobs_s: rate(latencies.length, elapsed),
    p50_ms: p50,
    p99_ms: p99,
    errors,
  };
}
