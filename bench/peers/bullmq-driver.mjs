/**
 * Takes the measures of BullMQ: `node bullmq-driver.mjs <folder with node_modules> <port of Redis> <quick>`. Producers
 * share one connection, on which commands follow each other without waiting.
 */
import { createRequire } from 'node:module';
import { setTimeout as delay } from 'node:timers/promises';
import { BULK, CALLERS, repeat, sizes } from '../load/compare.mjs';
import { IN_FLIGHT } from '../load/steps.mjs';
import { quantile, rate } from '../stats.mjs';

const [directory, port, quick] = process.argv.slice(2);
const require = createRequire(`${directory}/`);
const { Queue, Worker } = require('bullmq');
const ioredis = require('ioredis');
const Redis = ioredis.Redis ?? ioredis.default ?? ioredis;

const { ms, warmUpMs, drain, due } = sizes(quick === 'true');
const DATA = { to: 'someone@example.com', template: 'welcome', n: 1 };
/** Jobs that the worker runs at once. */
const CONCURRENCY = 100;

const connect = () => new Redis({ host: '127.0.0.1', port: Number(port), maxRetriesPerRequest: null });
const producer = connect();

async function withQueue(name, use) {
  const queue = new Queue(name, { connection: producer });
  await queue.waitUntilReady();
  const answer = await use(queue);
  await queue.close();
  return answer;
}

/** Starts a worker; `close` ends it without waiting for jobs. */
async function work(name, handler, concurrency = CONCURRENCY) {
  const connection = connect();
  const worker = new Worker(name, handler, { connection, concurrency });
  await worker.waitUntilReady();
  return async () => {
    await worker.close(true);
    connection.disconnect();
  };
}

const bulkOf = (count, options) => Array.from({ length: count }, () => ({ name: 'noop', data: DATA, opts: options }));

const result = {};

result.single_s = await withQueue('single', async (queue) => {
  await repeat(CALLERS, warmUpMs, () => queue.add('noop', DATA));
  const done = await repeat(CALLERS, ms, () => queue.add('noop', DATA));
  return rate(done.calls, done.ms);
});

result.bulk_s = await withQueue('bulk', async (queue) => {
  const bulk = bulkOf(BULK);
  await repeat(IN_FLIGHT, warmUpMs, () => queue.addBulk(bulk));
  const done = await repeat(IN_FLIGHT, ms, () => queue.addBulk(bulk));
  return rate(done.calls * BULK, done.ms);
});

result.drain_s = await withQueue('drain', async (queue) => {
  for (let done = 0; done < drain; done += BULK) await queue.addBulk(bulkOf(BULK));
  let left = drain;
  const begun = performance.now();
  let finished;
  const end = new Promise((resolve) => {
    finished = resolve;
  });
  const close = await work('drain', async () => {
    if (--left === 0) finished(performance.now());
  });
  const perSecond = rate(drain, (await end) - begun);
  await close();
  return perSecond;
});

result.start_p50_ms = await withQueue('start', async (queue) => {
  let started = () => undefined;
  const close = await work('start', async () => started(performance.now()));
  const samples = [];
  for (let n = 0; n < 250; n++) {
    const start = new Promise((resolve) => {
      started = resolve;
    });
    const sentAt = performance.now();
    await queue.add('noop', DATA);
    const startedAt = await start;
    if (n >= 50) samples.push(startedAt - sentAt);
    await delay(n % 4);
  }
  await close();
  return Math.round(quantile(samples, 0.5) * 1000) / 1000;
});

result.due_p50_ms = await withQueue('due', async (queue) => {
  const late = [];
  let dueAt = 0;
  let finished;
  const end = new Promise((resolve) => {
    finished = resolve;
  });
  const close = await work('due', async () => {
    late.push(Date.now() - dueAt);
    if (late.length === due) finished();
  });
  dueAt = Date.now() + 2_000;
  await queue.addBulk(bulkOf(due, { delay: dueAt - Date.now() }));
  await end;
  await close();
  return quantile(late, 0.5);
});

producer.disconnect();
console.log(JSON.stringify(result));
process.exit(0);
