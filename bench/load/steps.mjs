/** Steps that several scenarios share. */
import { setTimeout as delay } from 'node:timers/promises';
import { call, load } from '../http.mjs';
import { configure, enqueueRequest, job, pause, resume } from '../jobs.mjs';
import { cpuPer, rate } from '../stats.mjs';

/** Requests of 1,000 jobs that are under way at once. */
export const IN_FLIGHT = 4;

/** See `queue.ts`. */
export const ask = (port, action, queue, query = '') => call(port, 'GET', `/load/${action}/${queue}${query}`);

/** Waits until this many jobs have ended, whichever way, and returns how. It polls rarely: the object is busy. */
export async function untilEnded(port, queue, jobs, limitMs, pauseMs = 200) {
  const start = performance.now();
  for (;;) {
    const progress = await ask(port, 'progress', queue);
    const ended = progress.completed + progress.discarded;
    if (ended >= jobs) return progress;
    if (performance.now() - start > limitMs) {
      throw new Error(`Only ${ended} of ${jobs} jobs of ${queue} ended within ${limitMs} ms.`);
    }
    await delay(pauseMs);
  }
}

/** Enqueues jobs in batches of 1,000 over several connections. @throws when one is refused */
export async function fill(port, count, one) {
  let left = Math.ceil(count / 1000);
  const bytes = enqueueRequest(1000, one);
  const result = await load({ port, connections: IN_FLIGHT, next: () => (left-- > 0 ? bytes : undefined) });
  if (result.errors > 0) throw new Error(`${result.errors} enqueue requests were refused.`);
  return result;
}

/**
 * Fills a paused queue with a multiple of 1,000 jobs, no-op ones unless told, resumes it and waits until all have completed. Timed in the
 * server's clock, from the answer to `resume` to the end of the last job.
 */
export async function fillAndDrain(
  { port, cpuMs },
  queue,
  jobs,
  limitMs,
  filled = async () => undefined,
  one = job(queue),
) {
  await configure(port, queue, { concurrency: 1000 });
  await pause(port, queue);
  const cpuAtFill = cpuMs?.();
  const { ms: fillMs } = await fill(port, jobs, one);
  const enqueueCpu = cpuPer(cpuMs, cpuAtFill, jobs);
  await filled();
  const cpuAtResume = cpuMs?.();
  const resumedAt = Date.parse((await resume(port, queue)).resumed_at);
  const { at, completed } = await untilEnded(port, queue, jobs, limitMs, jobs > 200_000 ? 1_000 : 100);
  return {
    enqueued_s: rate(jobs, fillMs),
    enqueue_cpu_us: enqueueCpu,
    drain_s: rate(jobs, at - resumedAt),
    drain_ms: at - resumedAt,
    drain_cpu_us: cpuPer(cpuMs, cpuAtResume, jobs),
    completed,
  };
}

/** Enqueues jobs that are all due at one moment and returns by how many ms each started late. */
export async function startsLate(port, queue, jobs, aheadMs) {
  await configure(port, queue, { concurrency: 1000 });
  // The target is asked what it takes before the moment comes, as in any queue that has been used before.
  await fillOne(port, job(queue, { type: 'load.due' }));
  await untilEnded(port, queue, 1, 10_000);
  const dueAt = Date.now() + aheadMs;
  await fill(port, jobs, job(queue, { type: 'load.due', delay_until: new Date(dueAt).toISOString() }));
  if (Date.now() > dueAt) throw new Error('The jobs were due before all of them were enqueued.');
  await delay(Math.max(0, dueAt - Date.now()));
  await untilEnded(port, queue, jobs + 1, 60_000);
  const late = (await ask(port, 'results', queue)).map((startedAt) => startedAt - dueAt).sort((a, b) => a - b);
  // The first is the job that went ahead.
  return late.slice(1);
}

const fillOne = (port, one) => call(port, 'POST', '/ojs/v1/jobs', one);
