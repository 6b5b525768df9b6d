/** Takes the measures of the local Cloudflare Queues: `node queues-driver.mjs <quick>`. */
import { readFileSync } from 'node:fs';
import { convertV4MiniflareOptions, Log, LogLevel, Miniflare } from 'miniflare';
import { sizes } from '../load/compare.mjs';
import { run as latency } from '../scenarios/latency.mjs';
import { quantile } from '../stats.mjs';

const quick = process.argv[2] === 'true';
const { ms, warmUpMs, drain, due } = sizes(quick);

const NAMES = ['single', 'bulk', 'drain', 'start', 'due'];
const consumer = { maxBatchSize: 100, maxBatchTimeout: 0, maxRetries: 0 };

const miniflare = new Miniflare(
  convertV4MiniflareOptions({
    host: '127.0.0.1',
    port: 0,
    log: new Log(LogLevel.NONE),
    name: 'peer',
    modules: [
      {
        type: 'ESModule',
        path: 'queues-worker.js',
        contents: readFileSync(new URL('queues-worker.js', import.meta.url), 'utf8'),
      },
    ],
    compatibilityDate: '2026-11-01',
    queueProducers: Object.fromEntries(NAMES.map((name) => [name.toUpperCase(), { queueName: name }])),
    queueConsumers: Object.fromEntries(NAMES.map((name) => [name, consumer])),
  }),
);

try {
  const url = await miniflare.ready;
  const ask = async (path) => {
    const response = await fetch(new URL(path, url));
    if (!response.ok) throw new Error(`${path}: ${response.status} ${await response.text()}`);
    return response.json();
  };
  const result = {};
  // On an idle simulator first: what the other measures leave behind keeps it busy.
  const starts = await latency({ port: Number(url.port) }, { quick: true });
  result.start_p50_ms = starts.find(({ measured }) => measured.includes('noted')).p50_ms;
  result.due_p50_ms = quantile((await ask(`/due?jobs=${due}`)).late, 0.5);
  result.drain_s = (await ask(`/drain?jobs=${drain}`)).per_s;
  await ask(`/bulk?ms=${warmUpMs}`);
  result.bulk_s = (await ask(`/bulk?ms=${ms}`)).per_s;
  await ask(`/single?ms=${warmUpMs}`);
  result.single_s = (await ask(`/single?ms=${ms}`)).per_s;
  console.log(JSON.stringify(result));
} finally {
  await miniflare.dispose();
}
process.exit(0);
