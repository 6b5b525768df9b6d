/**
 * A steady load: a producer that sends each 25 ms what has come due by then, one worker with 64 jobs in hand that work 1 ms, and
 * each 5 s a sample of what a user feels. Latency runs from the call that enqueues a job to its start.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { round } from '../stats.mjs';
import { Histogram } from './histogram.mjs';
import { usage } from './processes.mjs';

export const IN_HAND = 64;
export const WORK_MS = 1;

const TICK_MS = 25;
/** Jobs in one call. */
const MAX_CALL = 1_000;
/** Calls without an answer: a producer with more waits, and what comes due is sent later. */
const MAX_CALLS = 64;
const SAMPLE_MS = 5_000;
/** Jobs of a worker that was killed come back when their lease of a minute ends. */
const DRAIN_MS = 90_000;
const WARM_UP_S = 5;

/** What a job carries besides its moment, so that it has the size of a real one. */
export const PAYLOAD = { to: 'someone@example.com', template: 'welcome', order: 4711 };

/** Epoch ms with a fraction: that of the machine. */
export const now = () => performance.timeOrigin + performance.now();

/**
 * @typedef {object} Subject what is loaded
 * @property {(stamps: number[]) => Promise<unknown>} enqueue enqueues a job for each of these moments
 * @property {(onStart: (stamp: number) => void) => Promise<() => Promise<void>>} [work] starts the worker; answers how to stop it
 * @property {(onCounted: (counted: object) => void) => () => void} [workApart] as `work`, of a worker that counts by itself
 * @property {() => Promise<Histogram>} [starts] the latencies since it was last asked, where the server runs the jobs
 * @property {() => number[]} pids of the server
 * @property {() => Promise<number>} depth jobs that wait
 * @property {() => number} bytes that are stored
 * @property {() => Promise<number>} [rows] that were written, as the server counts them
 * @property {() => Promise<number>} [unended] jobs that wait or run; absent: those that wait
 * @property {() => Promise<number>} [completed] jobs that have ended well and are kept
 */

/**
 * Loads it for some seconds.
 * @param order.rate jobs/s; a function: of the seconds since the beginning
 * @param order.events what happens when, by seconds: `[[30, 'kill', async () => …], …]`
 * @param order.phaseAt the name of the phase at a second
 * @param onSample gets each sample as it is taken
 * @returns the samples, and a summary
 */
export async function steadily(
  subject,
  { rate, seconds, events = [], phaseAt, sampleMs = SAMPLE_MS },
  onSample = () => undefined,
) {
  const rateAt = typeof rate === 'function' ? rate : () => rate;
  const all = new Histogram();
  let window = new Histogram();
  const counts = { enqueued: 0, started: 0, refused: 0 };
  const onStart = (stamp) => {
    counts.started++;
    window.record(now() - stamp);
  };
  const onCounted = (counted) => {
    const started = new Histogram();
    started.merge(counted);
    counts.started += started.total;
    window.merge(started);
  };
  const stopWork = subject.workApart?.(onCounted) ?? (await subject.work?.(onStart));
  // Code is compiled and memory grows in the first seconds: they are not counted.
  await produce(subject, rateAt, WARM_UP_S, { enqueued: 0, refused: 0 });
  await drained(subject);
  await subject.starts?.();
  window = new Histogram();
  counts.started = 0;
  const before = { completed: await subject.completed?.(), rows: await subject.rows?.() };
  const samples = [];
  const begun = performance.now();
  const cpu = { server: usage(subject.pids()).cpuMs, client: process.cpuUsage() };
  let last = { at: begun, ...counts };

  const sample = async () => {
    if (subject.starts) {
      window = await subject.starts();
      counts.started += window.total;
    }
    const at = performance.now();
    const per = (name) => round(((counts[name] - last[name]) * 1_000) / (at - last.at), 1);
    const depth = await subject.depth().catch(() => undefined);
    const second = round((at - begun) / 1_000, 1);
    const one = {
      second,
      ...(phaseAt && { phase: phaseAt(second) }),
      ...percentiles(window),
      enqueue_rate: per('enqueued'),
      completion_rate: per('started'),
      queue_depth: depth,
      rss_mb: round(usage(subject.pids()).rssMb, 1),
      stored_mb: round(subject.bytes() / 2 ** 20, 1),
    };
    last = { at, ...counts };
    all.merge(window);
    samples.push({ ...one, histogram: window });
    window = new Histogram();
    onSample(one);
  };

  const isOver = () => performance.now() - begun >= seconds * 1_000;
  const sampling = async () => {
    while (!isOver()) {
      // One that took longer than its time leaves out those that it has missed.
      const n = Math.floor((performance.now() - begun) / sampleMs) + 1;
      await delay(begun + n * sampleMs - performance.now());
      await sample();
    }
  };
  await Promise.all([produce(subject, rateAt, seconds, counts), sampling(), happen(events, begun, samples)]);

  await drained(subject);
  // What is in hand ends, too.
  await delay(1_000);
  await stopWork?.();
  await sample();
  const client = process.cpuUsage(cpu.client);
  const perJob = (amount) => round(amount / Math.max(1, counts.started), 4);
  const summary = {
    rate: typeof rate === 'function' ? undefined : rate,
    seconds,
    ...percentiles(all),
    ...counts,
    left: counts.enqueued - (subject.completed ? (await subject.completed()) - before.completed : counts.started),
    server_cpu_ms: perJob(usage(subject.pids()).cpuMs - cpu.server),
    client_cpu_ms: perJob((client.user + client.system) / 1_000),
    rss_mb: samples.at(-1).rss_mb,
    stored_mb: samples.at(-1).stored_mb,
    ...(subject.rows && { rows_job: perJob((await subject.rows()) - before.rows) }),
    ...trends(samples),
  };
  return { summary, samples: samples.map(({ histogram: _, ...one }) => one) };
}

/** Sends what has come due by the time that has passed, however late a timer rings. */
async function produce(subject, rateAt, seconds, counts) {
  const begun = performance.now();
  let [due, sent, before] = [0, 0, 0];
  const calls = new Set();
  for (let tick = 1; before < seconds; tick++) {
    await delay(Math.max(0, begun + tick * TICK_MS - performance.now()));
    const second = Math.min(seconds, (performance.now() - begun) / 1_000);
    due += (second - before) * rateAt(second);
    before = second;
    while (sent < Math.floor(due) && calls.size < MAX_CALLS) {
      const size = Math.min(MAX_CALL, Math.floor(due) - sent);
      sent += size;
      const call = subject.enqueue(Array(size).fill(now())).then(
        () => {
          counts.enqueued += size;
        },
        () => {
          counts.refused += size;
        },
      );
      calls.add(call);
      call.then(() => calls.delete(call));
    }
  }
  await Promise.all(calls);
}

async function happen(events, begun, samples) {
  for (const [second, name, run] of events) {
    await delay(Math.max(0, begun + second * 1_000 - performance.now()));
    await run();
    if (samples.length > 0) samples.at(-1).event = name;
  }
}

/** Waits until nothing waits, or for as long as that may take. */
async function drained(subject) {
  const begun = performance.now();
  while ((await unended(subject)) > 0 && performance.now() - begun < DRAIN_MS) await delay(50);
}

const unended = (subject) => (subject.unended ?? subject.depth)().catch(() => 1);

/** @param histogram of ms */
export function percentiles(histogram) {
  const of = (q) => (histogram.total === 0 ? undefined : round(histogram.quantile(q), 2));
  return {
    claim_p50_ms: of(0.5),
    claim_p95_ms: of(0.95),
    claim_p99_ms: of(0.99),
    claim_p999_ms: of(0.999),
    claim_max_ms: histogram.total === 0 ? undefined : round(histogram.max, 1),
  };
}

/** What a long run shows: the first ten minutes beside the last ten, as a ratio; nothing of a short one. */
export function trends(samples, minutes = 10) {
  const span = minutes * 60;
  const end = samples.at(-1).second;
  if (end < 2 * span) return {};
  const merged = (part) => {
    const histogram = new Histogram();
    for (const sample of part) histogram.merge(sample.histogram);
    return histogram;
  };
  const first = samples.filter(({ second }) => second <= span);
  const after = samples.filter(({ second }) => second > end - span);
  const ratio = (a, b) => round(a / b, 3);
  return {
    p99_last_to_first: ratio(merged(after).quantile(0.99), merged(first).quantile(0.99)),
    rss_last_to_first: ratio(after.at(-1).rss_mb, first.at(-1).rss_mb),
    stored_last_to_first: ratio(after.at(-1).stored_mb, first.at(-1).stored_mb),
  };
}
