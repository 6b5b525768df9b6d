/**
 * How fast enqueued jobs run: a paused queue is filled and resumed. Timed in the server's own clock, from the answer to
 * `resume` to the end of the last job.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { bench, configure, fill, job, pause, resume } from '../jobs.mjs';
import { cpuPer, rate } from '../stats.mjs';

const SHAPES = [
  { queue: 'drain-10', concurrency: 10, batch_size: 10, share: 0.2 },
  { queue: 'drain-1000', concurrency: 1000, batch_size: 100, share: 1 },
];

export const title = 'Drain through a no-op handler Worker';
export const servers = ['workerd', 'wrangler'];
export const columns = ['concurrency', 'batch_size', 'jobs', 'ms', 'jobs_s', 'cpu_us_job'];

export async function run({ port, cpuMs }, { quick }) {
  const rows = [];
  for (const { queue, concurrency, batch_size, share } of SHAPES) {
    const jobs = (quick ? 10_000 : 100_000) * share;
    await configure(port, queue, { concurrency });
    await pause(port, queue);
    await fill(port, jobs, 1000, job(queue));
    const cpuBefore = cpuMs?.();
    const resumedAt = Date.parse((await resume(port, queue)).resumed_at);
    const { at } = await untilEnded(port, queue, jobs, 60_000);
    const cpu_us_job = cpuPer(cpuMs, cpuBefore, jobs);
    rows.push({ concurrency, batch_size, jobs, ms: at - resumedAt, jobs_s: rate(jobs, at - resumedAt), cpu_us_job });
  }
  return rows;
}

/** Waits until this many jobs have completed. It polls rarely, because the object is busy. */
export async function untilEnded(port, queue, jobs, limitMs, pauseMs = 100) {
  const start = performance.now();
  for (;;) {
    const ended = await bench(port, 'ended', queue);
    if (ended.jobs >= jobs) return ended;
    if (performance.now() - start > limitMs) throw new Error(`Only ${ended.jobs} of ${jobs} jobs of ${queue} ended.`);
    await delay(pauseMs);
  }
}
