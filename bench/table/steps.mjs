/** What every system of the table is measured by: the same jobs, sizes and windows, and counts that must be right. */
import { setTimeout as delay } from 'node:timers/promises';
import { load } from '../http.mjs';
import { enqueueRequest, job } from '../jobs.mjs';
import { repeat } from '../load/compare.mjs';
import { run as latency } from '../scenarios/latency.mjs';
import { rate, summary } from '../stats.mjs';

export const DATA = { to: 'someone@example.com', template: 'welcome', n: 1 };

/** The retry policy of jobs that fail once: a second attempt as the last one would be pushed alone. */
export const RETRY = { max_attempts: 3, backoff_strategy: 'constant', initial_interval: 1, jitter: false };

/** Jobs that a worker runs at once where a line does not say. */
export const IN_HAND = 100;

/** How long and how much, of each of the three times. */
export const sizesOf = (quick) => ({
  warmUpMs: quick ? 60 : 1_000,
  ms: quick ? 250 : 1_500,
  pulled: quick ? { 1: 200, 10: 1_000, 100: 5_000 } : { 1: 1_000, 10: 10_000, 100: 40_000 },
  retried: quick ? 1_000 : 5_000,
  firstStarts: quick ? 20 : 1_000,
  starts: quick ? 60 : 500,
  due: 1_000,
  dueInMs: quick ? 1_000 : 1_500,
  pushed: quick ? 10_000 : 100_000,
});

/** @throws when a system lost or doubled something: a figure that is wrong must not pass */
export function check(what, expected, found) {
  if (expected !== found) throw new Error(`${what}: expected ${expected}, found ${found}.`);
}

/**
 * Callers that repeat an enqueue, each awaiting its own.
 * @param enqueue enqueues `perCall` jobs
 * @param stored how many jobs the system has then
 * @returns jobs/s
 */
export async function enqueues({ warmUpMs, ms }, { callers, perCall = 1 }, enqueue, stored) {
  const before = await repeat(callers, warmUpMs, enqueue);
  const { calls, ms: elapsed } = await repeat(callers, ms, enqueue);
  check('jobs stored', (before.calls + calls) * perCall, await stored());
  return rate(calls * perCall, elapsed);
}

/**
 * Callers over plain HTTP, with a connection each, that repeat an enqueue of `batch` jobs.
 * @param stored how many jobs the queue has then
 * @returns jobs/s
 */
export async function requests({ warmUpMs, ms }, { port, queue, callers, batch, minimal }, stored) {
  const bytes = enqueueRequest(batch, job(queue), minimal);
  const first = await load({ port, connections: callers, ms: warmUpMs, next: () => bytes });
  const done = await load({ port, connections: callers, ms, next: () => bytes });
  check('refusals', 0, done.errors + first.errors);
  check('jobs stored', (first.requests + done.requests) * batch, await stored());
  return rate(done.requests * batch, done.ms);
}

/**
 * From the call of an enqueue to the start of the job, one job at a time, on an idle queue.
 * @param work starts a worker that calls what it is given at each start; answers how to stop it
 */
export async function starts({ firstStarts, starts: count }, enqueue, work) {
  let started = () => undefined;
  const stop = await work(() => started(performance.now()));
  const samples = [];
  for (let n = 0; n < firstStarts + count; n++) {
    const start = new Promise((resolve) => {
      started = resolve;
    });
    const sentAt = performance.now();
    await enqueue();
    const startedAt = await within(start, 10_000, 'a start');
    if (n >= firstStarts) samples.push(startedAt - sentAt);
    // Not in step with anybody's timers.
    await delay(n % 4);
  }
  await stop();
  const { p50, p99 } = summary(samples);
  return { p50, p99 };
}

/**
 * The same of jobs that are pushed.
 * @param enqueue (type, args) → the answer
 */
export async function startsPushed(server, { firstStarts, starts: jobs }, enqueue) {
  const rows = await latency(server, { warmUp: firstStarts, jobs, enqueue });
  const { p50_ms, p99_ms, clock_error_ms } = rows.find(({ measured }) => measured.includes('noted'));
  return { p50: p50_ms, p99: p99_ms, clockError: clock_error_ms };
}

/**
 * Jobs that are all due at one moment, and by how many ms each starts late.
 * @param enqueue enqueues that many jobs for that moment (epoch ms)
 * @param work as above
 */
export async function dueTogether({ due, dueInMs }, enqueue, work) {
  const late = [];
  let dueAt = 0;
  let finished;
  const end = new Promise((resolve) => {
    finished = resolve;
  });
  const stop = await work(() => {
    late.push(Date.now() - dueAt);
    if (late.length === due) finished();
  });
  // At any moment of a peer's polls, not always at the same one.
  dueAt = Date.now() + dueInMs + Math.floor(Math.random() * 500);
  await enqueue(due, dueAt);
  if (Date.now() > dueAt) throw new Error('The jobs were due before all of them were enqueued.');
  await within(end, 30_000, 'the jobs that are due');
  await stop();
  check('starts', due, late.length);
  if (late.some((ms) => ms < 0)) throw new Error('A job started early.');
  return lateness(late);
}

export function lateness(late) {
  const { p50, max } = summary(late);
  return { p50, last: max };
}

/**
 * How fast jobs that wait already are run: from the start of the worker to the last job's. What is still to be reported
 * then is at most what a worker holds.
 * @param work as above; its stop resolves when all that has begun is reported
 * @returns jobs/s
 */
export async function runs(jobs, work) {
  let left = jobs;
  let finished;
  const end = new Promise((resolve) => {
    finished = resolve;
  });
  const begun = performance.now();
  const stop = await work(() => {
    if (--left === 0) finished(performance.now());
  });
  const endedAt = await within(end, 120_000, `${jobs} jobs`);
  await stop();
  check('jobs run', 0, left);
  return rate(jobs, endedAt - begun);
}

export async function within(promise, ms, what) {
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`No sign of ${what} within ${ms} ms.`)), ms);
  });
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}
