/**
 * Jobs of 1 MiB: one to a request over four connections, then through a handler that answers how much it was given.
 * `heap_seen_mb` is the most that lived in the queue's isolate when it could be looked at, so it may have been more.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { load, request } from '../../http.mjs';
import { configure, job, pause, resume } from '../../jobs.mjs';
import { rate, round, summary } from '../../stats.mjs';
import { ask, IN_FLIGHT, untilEnded } from '../steps.mjs';
import { startWorkerd } from '../workerd.mjs';

/** The largest request with a single job that is accepted, in bytes. */
const MAX_REQUEST = 1_048_576;
/** Room for what the queue adds to a job that it stores. */
const RESERVE = 256;

export const title = 'Payloads of 1 MiB';
export const columns = [
  ...['jobs', 'payload_bytes', 'enqueued_s', 'enqueue_p50_ms', 'enqueue_p99_ms', 'drain_s', 'drain_mb_s'],
  ...['whole', 'heap_seen_mb', 'peak_mb'],
];

export const start = () => startWorkerd({ inspect: true });

export async function run(server, { quick }) {
  const around = JSON.stringify(job('', { type: 'load.size', args: [''] })).length;
  const length = MAX_REQUEST - RESERVE - around;
  const timed = await pass(server, 'load-payload', quick ? 10 : 200, length);
  // Collecting garbage takes time, so that what is held is looked at in a pass of its own.
  const held = sampleHeap(server, 'load-payload-held');
  const { whole } = await pass(server, 'load-payload-held', quick ? 10 : 200, length);
  const heap = await held.stop();
  return [{ ...timed, whole: timed.whole + whole, heap_seen_mb: heap, peak_mb: (await server.memory()).peak_mb }];
}

async function pass({ port }, queue, jobs, length) {
  await configure(port, queue, { concurrency: 1000 });
  await pause(port, queue);
  const bytes = request('POST', '/ojs/v1/jobs', job(queue, { type: 'load.size', args: ['x'.repeat(length)] }));
  let left = jobs;
  const filled = await load({ port, connections: IN_FLIGHT, next: () => (left-- > 0 ? bytes : undefined) });
  if (filled.errors > 0) throw new Error(`${filled.errors} enqueue requests were refused.`);
  const { p50, p99 } = summary(filled.latencies);
  const resumedAt = Date.parse((await resume(port, queue)).resumed_at);
  const { at } = await untilEnded(port, queue, jobs, 60_000);
  const ms = at - resumedAt;
  const whole = (await ask(port, 'results', queue)).filter((received) => received === length).length;
  if (whole !== jobs) throw new Error(`Only ${whole} of ${jobs} payloads arrived whole.`);
  return {
    jobs,
    payload_bytes: length,
    enqueued_s: rate(jobs, filled.ms),
    enqueue_p50_ms: p50,
    enqueue_p99_ms: p99,
    drain_s: rate(jobs, ms),
    drain_mb_s: round((jobs * length) / 1_000 / ms, 1),
    whole,
  };
}

/** The largest heap seen, in MB, each time after a garbage collection: what lives, not what has not been tidied up. */
function sampleHeap(server, queue) {
  let isOver = false;
  const largest = (async () => {
    let max = 0;
    while (!isOver) {
      await ask(server.port, 'collect', queue);
      max = Math.max(max, (await server.memory()).heap_mb ?? 0);
      await delay(50);
    }
    return max;
  })();
  return {
    stop: () => {
      isOver = true;
      return largest;
    },
  };
}
