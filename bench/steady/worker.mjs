/** A worker in a process of its own, to be killed: `node worker.mjs <url> <queue>`. Sends what it counted to its parent. */
import { loadClient } from '../servers/client.mjs';
import { Histogram } from './histogram.mjs';
import { IN_HAND, now, WORK_MS } from './load.mjs';

const REPORT_MS = 100;

const [url, queue] = process.argv.slice(2);
process.once('disconnect', () => process.exit());

let waited = new Histogram();
setInterval(() => {
  if (waited.total > 0) process.send(waited);
  waited = new Histogram();
}, REPORT_MS);

const TocsinClient = await loadClient();
const handlers = {
  'steady.work': async ({ args }) => {
    waited.record(now() - args[0]);
    await new Promise((done) => setTimeout(done, WORK_MS));
  },
};
// It is killed, never stopped.
const { signal } = new AbortController();
const options = { signal, concurrency: IN_HAND, socket: true, onError: () => undefined, log: () => undefined };
await new TocsinClient({ url }).worker(`steady-${process.pid}`, { queues: [queue] }).run(handlers, options);
