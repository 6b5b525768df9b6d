/**
 * Jobs of 1 MiB for many workers at once, over HTTP and over sockets; each answers with half of what it was given. First as
 * many ask for pages of these jobs: `pages` were given.
 */
import { call, load, request } from '../../http.mjs';
import { job } from '../../jobs.mjs';
import { loadClient } from '../../servers/client.mjs';
import { rate } from '../../stats.mjs';
import { ask, untilEnded } from '../steps.mjs';

const LENGTH = 1_047_000;

export const title = 'Payloads of 1 MiB for workers that pull';
export const columns = ['over', 'workers', 'jobs', 'pages', 'runs', 'completed', 'jobs_s'];

export async function run(server, { quick }) {
  const rows = [];
  for (const over of ['HTTP', 'sockets']) rows.push(await pass(server, over, quick ? 10 : 40, quick ? 30 : 300));
  return rows;
}

async function pass({ port }, over, workers, jobs) {
  const queue = `pulled-large-${over.toLowerCase()}`;
  const one = job(queue, { type: 'load.half-of', args: ['x'.repeat(LENGTH)] });
  let left = jobs;
  const next = () => (left-- > 0 ? request('POST', '/ojs/v1/jobs', one) : undefined);
  const { errors } = await load({ port, connections: 8, next });
  if (errors > 0) throw new Error(`${errors} enqueue requests were refused.`);
  const asked = Array.from({ length: workers }, () => call(port, 'GET', `/ojs/v1/jobs?queue=${queue}&limit=100`));
  const pages = (await Promise.all(asked)).filter(({ jobs: page }) => page.length > 0).length;
  const TocsinClient = await loadClient();
  const client = new TocsinClient({ url: `http://127.0.0.1:${port}` });
  const stop = new AbortController();
  let runs = 0;
  const handlers = {
    'load.half-of': ({ args: [text] }) => {
      runs++;
      return text.slice(0, LENGTH / 2);
    },
  };
  const options = { signal: stop.signal, concurrency: 100, socket: over === 'sockets', log: () => undefined };
  const begun = performance.now();
  const working = Array.from({ length: workers }, (_, n) =>
    client.worker(`large-${n}`, { queues: [queue] }).run(handlers, { ...options, onError: () => undefined }),
  );
  try {
    await untilEnded(port, queue, jobs, 120_000);
    const ms = performance.now() - begun;
    const { completed } = await ask(port, 'progress', queue);
    return { over, workers, jobs, pages, runs, completed, jobs_s: rate(jobs, ms) };
  } finally {
    stop.abort();
    await Promise.all(working);
  }
}
