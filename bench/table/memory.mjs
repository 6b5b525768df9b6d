/** Heap of the isolate whose queue holds much, by the inspector, after a garbage collection. */
import { call } from '../http.mjs';
import { bench } from '../jobs.mjs';
import { ask } from '../load/steps.mjs';
import { startWorkerd } from '../load/workerd.mjs';
import { block } from '../report.mjs';
import { followers, groups, workers } from './crowds.mjs';
import { shown } from './figures.mjs';

const QUEUE = 'load-memory';
const PORTION = 100_000;
const HOUR = 3_600_000;

/**
 * What a queue holds.
 * @typedef {object} Holding
 * @property {string} title
 * @property {number} most MB that the isolate may hold
 * @property {(port: number, queue: string) => Promise<void>} fill
 * @property {(port: number, queue: string) => Promise<void>} [use] makes the queue work with it; absent: evicts it, and claims
 * @property {() => void} [end]
 */

/** @returns {Holding[]} */
const holdings = (quick) => [
  backlog('available', 0, quick ? 100_000 : 1_000_000),
  backlog('scheduled', HOUR, quick ? 100_000 : 1_000_000),
  groups(quick ? 500 : 5_000),
  workers(quick ? 500 : 10_000),
  followers(quick ? 100 : 1_000),
];

/** Measures, prints and answers the lines. @throws when an isolate holds more than it may */
export async function memory({ quick }) {
  const rows = [];
  for (const holding of holdings(quick)) {
    rows.push({ title: holding.title, most: holding.most, ...(await measure(holding)) });
  }
  const columns = ['MB', 'heap, empty', 'full', 'in use', 'at most', 'process'];
  const cells = ({ title, empty, full, used, most, rss }) => [title, ...[empty, full, used, most, rss].map(shown)];
  console.log(block('Memory', columns, rows.map(cells)));
  const over = rows.filter(({ full, used, most }) => !(Math.max(full, used) < most));
  if (over.length > 0) throw new Error(`More than it may hold: ${over.map(({ title }) => title).join('; ')}.`);
  return rows;
}

/** Jobs that wait. */
function backlog(state, dueIn, jobs) {
  return {
    title: `${jobs.toLocaleString('en-US')} jobs ${state}`,
    most: 12,
    fill: async (port, queue) => {
      for (let left = jobs; left > 0; left -= PORTION) {
        await ask(port, 'stock', queue, `?count=${Math.min(left, PORTION)}&due_in=${dueIn}`);
      }
    },
  };
}

async function evictAndClaim(port, queue) {
  await bench(port, 'evict', queue);
  await call(port, 'POST', '/ojs/v1/workers/fetch', { queues: [queue], worker_id: 'memory', count: 100 });
}

async function measure({ fill, use = evictAndClaim, end }) {
  const server = await startWorkerd({ inspect: true });
  const { port } = server;
  const collected = async () => {
    if (!(await ask(port, 'collect', QUEUE))) throw new Error('The server has no gc() to call.');
    return server.memory();
  };
  try {
    const empty = await collected();
    await fill(port, QUEUE);
    const full = await collected();
    await use(port, QUEUE);
    const used = await collected();
    return { empty: empty.heap_mb, full: full.heap_mb, used: used.heap_mb, rss: used.rss_mb };
  } finally {
    end?.();
    await server.close();
  }
}
