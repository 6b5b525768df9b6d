/** A backlog of a million jobs: enqueued over HTTP in batches of 1,000, then drained through a no-op handler Worker. */
import { fillAndDrain } from '../steps.mjs';

export const title = 'Backlog of 1,000,000 jobs';
export const columns = [
  ...['jobs', 'enqueued_s', 'enqueue_cpu_us', 'drain_s', 'drain_cpu_us', 'completed'],
  ...['rss_empty_mb', 'rss_full_mb', 'peak_mb'],
];

export async function run(server, { quick }) {
  const jobs = quick ? 10_000 : 1_000_000;
  const empty = await server.memory();
  let full = {};
  const result = await fillAndDrain(server, 'load-backlog', jobs, 180_000, async () => {
    full = await server.memory();
  });
  const { peak_mb } = await server.memory();
  return [{ jobs, ...result, rss_empty_mb: empty.rss_mb, rss_full_mb: full.rss_mb, peak_mb }];
}
