/** The measures taken of every system, and how to take them of Tocsin. */
import { run as latency } from '../scenarios/latency.mjs';
import { loadClient } from '../servers/client.mjs';
import { cpuPer, quantile, rate } from '../stats.mjs';
import { fillAndDrain, IN_FLIGHT, startsLate } from './steps.mjs';

/** What each measure is, in the order of the table. */
export const MEASURES = {
  single_s: 'single enqueues/s, 64 callers on one client',
  bulk_s: 'jobs/s enqueued in bulk, 4 calls under way',
  drain_s: 'jobs/s drained, no-op handler',
  start_p50_ms: 'enqueue to handler start on an idle queue, p50 ms',
  due_p50_ms: '1,000 jobs due together: start after it, p50 ms',
};

export const CALLERS = 64;
export const BULK = 1000;

/** How long and how much. */
export const sizes = (quick) => ({
  warmUpMs: quick ? 100 : 500,
  ms: quick ? 500 : 4_000,
  drain: quick ? 10_000 : 100_000,
  due: 1_000,
});

const ARGS = [{ to: 'someone@example.com', template: 'welcome', n: 1 }];

/** Takes all measures of Tocsin on this server. */
export async function compare(server, { quick }) {
  const { ms, warmUpMs, drain, due } = sizes(quick);
  const { port, cpuMs } = server;
  const result = {};
  const TocsinClient = await loadClient();
  const client = new TocsinClient({ url: `http://127.0.0.1:${port}`, maxBatch: BULK });
  const single = (queue) => client.enqueue('bench.noop', ARGS, { queue });
  const bulk = (queue) => client.enqueueMany(Array(BULK).fill({ type: 'bench.noop', args: ARGS, options: { queue } }));
  await repeat(CALLERS, warmUpMs, () => single('compare-single'));
  let cpuBefore = cpuMs?.();
  const singles = await repeat(CALLERS, ms, () => single('compare-single'));
  result.single_s = rate(singles.calls, singles.ms);
  result.single_cpu_us = cpuPer(cpuMs, cpuBefore, singles.calls);
  await repeat(IN_FLIGHT, warmUpMs, () => bulk('compare-bulk'));
  cpuBefore = cpuMs?.();
  const bulks = await repeat(IN_FLIGHT, ms, () => bulk('compare-bulk'));
  result.bulk_s = rate(bulks.calls * BULK, bulks.ms);
  result.bulk_cpu_us = cpuPer(cpuMs, cpuBefore, bulks.calls * BULK);
  const drained = await fillAndDrain(server, 'load-drain', drain, 60_000);
  result.drain_s = drained.drain_s;
  result.drain_cpu_us = drained.drain_cpu_us;
  // The quick variant's 200 samples are enough for a median.
  const starts = await latency(server, { quick: true });
  result.start_p50_ms = starts.find(({ measured }) => measured.includes('noted')).p50_ms;
  result.due_p50_ms = quantile(await startsLate(port, 'load-due', due, 2_000), 0.5);
  return result;
}

/** This many callers repeat an action for this time, each awaiting its own. */
export async function repeat(callers, ms, action) {
  let calls = 0;
  const start = performance.now();
  const caller = async () => {
    while (performance.now() - start < ms) {
      await action();
      calls++;
    }
  };
  await Promise.all(Array.from({ length: callers }, caller));
  return { calls, ms: performance.now() - start };
}
