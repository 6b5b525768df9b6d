/**
 * From the moment a producer sends the request to the start of the handler, on an idle queue, one job at a time. The
 * handler notes `Date.now()`, whole ms of the same machine's clock (half a ms is added, the mean of what is cut off), and
 * then calls back: seen from outside, the start lies before the callback.
 */
import { createServer } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import { Connection } from '../http.mjs';
import { enqueueRequest, job } from '../jobs.mjs';
import { summary } from '../stats.mjs';

/** Pushed from, on the servers of every scenario. */
export const QUEUE = 'latency';

export const title = 'Enqueue to handler start';
export const servers = ['workerd', 'wrangler'];
export const columns = ['measured', 'jobs', 'p50_ms', 'p99_ms', 'max_ms'];

const epochMs = () => performance.timeOrigin + performance.now();

/** @param options `enqueue` sends one job, instead of a request over plain HTTP; the first `warmUp` jobs do not count */
export async function run({ port }, { quick, jobs = quick ? 200 : 3_000, warmUp = 50, enqueue }) {
  const started = new Map();
  const listener = createServer((request, response) => {
    const seenAt = epochMs();
    const [, n, startedAt] = request.url.split('/');
    response.end();
    started.get(Number(n))?.({ seenAt, startedAt: Number(startedAt) + 0.5 });
    started.delete(Number(n));
  });
  await new Promise((resolve) => listener.listen(0, '127.0.0.1', resolve));
  const connection = enqueue ? undefined : await Connection.open(port);
  enqueue ??= async (type, args) => {
    const { status } = await connection.send(enqueueRequest(1, job(QUEUE, { type, args })));
    if (status !== 201) throw new Error(`The enqueue was answered ${status}.`);
  };
  const samples = { answered: [], noted: [], seen: [] };
  try {
    for (let n = 0; n < warmUp + jobs; n++) {
      const start = new Promise((resolve) => started.set(n, resolve));
      const args = [{ n, port: listener.address().port }];
      const sentAt = epochMs();
      await enqueue('bench.start', args);
      const answeredAt = epochMs();
      const { seenAt, startedAt } = await withinSeconds(start, 10);
      if (n >= warmUp) {
        samples.answered.push(answeredAt - sentAt);
        samples.noted.push(startedAt - sentAt);
        samples.seen.push(seenAt - sentAt);
      }
      // Not in step with the server's own timers.
      await delay(n % 4);
    }
  } finally {
    connection?.close();
    listener.close();
    listener.closeAllConnections();
  }
  const row = (measured, values) => {
    const { p50, p99, max } = summary(values);
    return { measured, jobs, p50_ms: p50, p99_ms: p99, max_ms: max };
  };
  return [
    row('enqueue answered (durable)', samples.answered),
    row('handler start, noted by the handler', samples.noted),
    row("handler's callback arrived (upper bound)", samples.seen),
  ];
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
