/** Heap of the isolate that holds a queue with a backlog, by the inspector, after a garbage collection. */
import { call } from '../http.mjs';
import { bench } from '../jobs.mjs';
import { ask } from '../load/steps.mjs';
import { startWorkerd } from '../load/workerd.mjs';
import { block } from '../report.mjs';
import { shown } from './figures.mjs';

const QUEUE = 'load-memory';
const PORTION = 100_000;
const HOUR = 3_600_000;
/** MB. */
const MOST = 16;

/** Measures, prints and answers the lines. @throws when the isolate holds more than it may */
export async function memory({ quick }) {
  const jobs = quick ? 100_000 : 1_000_000;
  const rows = [];
  for (const [backlog, dueIn] of [
    ['available', 0],
    ['scheduled', HOUR],
  ]) {
    rows.push({ jobs, backlog, ...(await measure(jobs, dueIn)) });
  }
  const columns = ['MB', 'heap, empty', 'full', 'evicted, 100 claimed', 'process'];
  const cells = ({ backlog, empty, full, used, rss }) => [
    `${jobs.toLocaleString('en-US')} jobs ${backlog}`,
    ...[empty, full, used, rss].map(shown),
  ];
  console.log(block('Memory', columns, rows.map(cells)));
  const worst = Math.max(...rows.flatMap(({ full, used }) => [full, used]));
  if (!(worst < MOST)) throw new Error(`The isolate holds ${worst} MB, more than ${MOST}.`);
  return rows;
}

async function measure(jobs, dueIn) {
  const server = await startWorkerd({ inspect: true });
  const { port } = server;
  const collected = async () => {
    if (!(await ask(port, 'collect', QUEUE))) throw new Error('The server has no gc() to call.');
    return server.memory();
  };
  try {
    const empty = await collected();
    for (let left = jobs; left > 0; left -= PORTION) {
      await ask(port, 'stock', QUEUE, `?count=${Math.min(left, PORTION)}&due_in=${dueIn}`);
    }
    const full = await collected();
    await bench(port, 'evict', QUEUE);
    const fetch = { queues: [QUEUE], worker_id: 'memory', count: 100 };
    await call(port, 'POST', '/ojs/v1/workers/fetch', fetch);
    const used = await collected();
    return { empty: empty.heap_mb, full: full.heap_mb, used: used.heap_mb, rss: used.rss_mb };
  } finally {
    await server.close();
  }
}
