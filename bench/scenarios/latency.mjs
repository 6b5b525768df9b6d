/**
 * From the moment a producer sends the request to the start of the handler, on an idle queue, one job at a time. The
 * handler notes `Date.now()`, whole ms of its process's clock, and then calls back. The difference of the clocks is known by its
 * error (`clock_error_ms`). Within its millisecond a start lies where the callback says, less the median of its way.
 */
import { createServer } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import { byClockOf } from '../clock.mjs';
import { Connection } from '../http.mjs';
import { enqueueRequest, job } from '../jobs.mjs';
import { median, round, summary } from '../stats.mjs';

/** Pushed from, on the servers of every scenario. */
export const QUEUE = 'latency';

export const title = 'Enqueue to handler start';
export const servers = ['workerd', 'wrangler'];
export const columns = ['measured', 'jobs', 'p50_ms', 'p99_ms', 'max_ms', 'clock_error_ms'];

/** @param options `enqueue` sends one job, instead of a request over plain HTTP; the first `warmUp` jobs do not count */
export async function run({ port }, { quick, jobs = quick ? 200 : 3_000, warmUp = 50, enqueue }) {
  const callbacks = await listen();
  const connection = enqueue ? undefined : await Connection.open(port);
  enqueue ??= async (type, args) => {
    const { status } = await connection.send(enqueueRequest(1, job(QUEUE, { type, args })));
    if (status !== 201) throw new Error(`The enqueue was answered ${status}.`);
  };
  const one = async (n) => {
    const start = callbacks.of(n);
    const sentAt = performance.now();
    await enqueue('bench.start', [{ n, port: callbacks.port }]);
    const answeredAt = performance.now();
    const sample = { sentAt, answeredAt, ...(await withinSeconds(start, 10)) };
    // Not in step with the server's own timers.
    await delay(n % 4);
    return sample;
  };
  try {
    for (let n = 0; n < warmUp; n++) await one(n);
    const measured = await byClockOf(port, async () => {
      const samples = [];
      for (let n = warmUp; n < warmUp + jobs; n++) samples.push(await one(n));
      return samples;
    });
    return rowsOf(measured);
  } finally {
    connection?.close();
    callbacks.close();
  }
}

/** Hears the handler's callbacks. `of` resolves to when that of a job came, and to what its handler noted. */
async function listen() {
  const started = new Map();
  const listener = createServer((request, response) => {
    const seenAt = performance.now();
    const [, n, noted] = request.url.split('/');
    response.end();
    started.get(Number(n))?.({ seenAt, noted: Number(noted) });
    started.delete(Number(n));
  });
  await new Promise((resolve) => listener.listen(0, '127.0.0.1', resolve));
  return {
    port: listener.address().port,
    of: (n) => new Promise((resolve) => started.set(n, resolve)),
    close: () => {
      listener.close();
      listener.closeAllConnections();
    },
  };
}

function rowsOf({ value: samples, ours, error }) {
  const starts = startsOf(samples.map(({ seenAt, noted }) => ({ seenAt, from: ours(noted) })));
  const row = (measured, values) => {
    const { p50, p99, max } = summary(values);
    return { measured, jobs: samples.length, p50_ms: p50, p99_ms: p99, max_ms: max };
  };
  const since = (of) => samples.map((sample, n) => of(sample, n) - sample.sentAt);
  return [
    row(
      'enqueue answered (durable)',
      since(({ answeredAt }) => answeredAt),
    ),
    {
      ...row(
        'handler start, noted by the handler',
        since((_, n) => starts[n]),
      ),
      clock_error_ms: round(error, 3),
    },
    row(
      "handler's callback arrived (upper bound)",
      since(({ seenAt }) => seenAt),
    ),
  ];
}

/**
 * When the handlers began. A handler noted a millisecond, and its callback was seen later.
 * @param samples `from`, where the noted millisecond begins in our clock, and `seenAt`
 */
export function startsOf(samples) {
  const way = median(samples.map(({ seenAt, from }) => seenAt - (from + 0.5)));
  return samples.map(({ seenAt, from }) => Math.min(from + 1, Math.max(from, seenAt - way)));
}

function withinSeconds(promise, seconds) {
  const limit = AbortSignal.timeout(seconds * 1000);
  return Promise.race([
    promise,
    new Promise((_, reject) =>
      limit.addEventListener('abort', () => reject(new Error(`No handler start within ${seconds} s.`))),
    ),
  ]);
}
