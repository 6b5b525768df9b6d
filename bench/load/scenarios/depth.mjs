/**
 * Rows read by a claim, and memory of an object, at 1,000, 100,000 and 1,000,000 waiting jobs, and with a million
 * scheduled ones beside them. The object is stocked from within; claims go over HTTP like a worker's.
 */
import { call, load, request } from '../../http.mjs';
import { bench } from '../../jobs.mjs';
import { ask } from '../steps.mjs';
import { startWorkerd } from '../workerd.mjs';

const QUEUE = 'load-depth';
/** In one request, which takes a second or two. */
const PORTION = 100_000;
const HOUR = 3_600_000;

export const title = 'Rows of a claim, and memory, by depth';
export const columns = [
  ...['waiting', 'scheduled', 'read_claim_1', 'read_claim_100', 'written_claim_100', 'read_first_claim_after_eviction'],
  ...['heap_mb', 'rss_mb'],
];

export const start = () => startWorkerd({ count: true, inspect: true });

export async function run(server, { quick }) {
  const { port } = server;
  const [small, middle, large] = quick ? [1_000, 5_000, 20_000] : [1_000, 100_000, 1_000_000];
  const rows = [{ waiting: 0, scheduled: 0, ...(await collected(server)) }];
  let waiting = 0;
  for (const depth of [small, middle, large]) {
    await stock(port, depth - waiting);
    waiting = depth;
    rows.push({ waiting, scheduled: 0, ...(await measure(server)) });
  }
  await stock(port, large, HOUR);
  rows.push({ waiting, scheduled: large, ...(await measure(server)) });
  return rows;
}

async function stock(port, count, dueIn = 0) {
  for (let left = count; left > 0; left -= PORTION) {
    await ask(port, 'stock', QUEUE, `?count=${Math.min(left, PORTION)}&due_in=${dueIn}`);
  }
}

async function measure(server) {
  const { port } = server;
  const taken = await claim(port, 1);
  const one = await counted(port, async () => taken.push(...(await claim(port, 1))));
  const hundred = await counted(port, async () => taken.push(...(await claim(port, 100))));
  // What runs is read again when the object is constructed; here it is only to hold what waits.
  await ackAll(port, taken);
  const { heap_mb, rss_mb } = await collected(server);
  await bench(port, 'evict', QUEUE);
  const first = await claim(port, 1);
  const cold = await bench(port, 'counts', QUEUE);
  await ackAll(port, first);
  return {
    read_claim_1: one.rowsRead,
    read_claim_100: hundred.rowsRead,
    written_claim_100: hundred.rowsWritten + hundred.setAlarm,
    read_first_claim_after_eviction: cold.rowsRead,
    heap_mb,
    rss_mb,
  };
}

/** Memory after a garbage collection. */
async function collected(server) {
  if (!(await ask(server.port, 'collect', QUEUE))) throw new Error('The server has no gc() to call.');
  return server.memory();
}

async function claim(port, count) {
  const { jobs } = await call(port, 'POST', '/ojs/v1/workers/fetch', { queues: [QUEUE], worker_id: 'depth', count });
  if (jobs.length !== count) throw new Error(`${jobs.length} of ${count} jobs were claimed.`);
  return jobs;
}

async function ackAll(port, jobs) {
  let next = 0;
  const bytes = () => {
    const job = jobs[next++];
    return job && request('POST', '/ojs/v1/workers/ack', { job_id: job.id });
  };
  const { errors } = await load({ port, connections: 4, next: bytes });
  if (errors > 0) throw new Error(`${errors} of ${jobs.length} acknowledgements were refused.`);
}

async function counted(port, action) {
  const before = await bench(port, 'counts', QUEUE);
  await action();
  const after = await bench(port, 'counts', QUEUE);
  return Object.fromEntries(Object.keys(after).map((name) => [name, after[name] - before[name]]));
}
