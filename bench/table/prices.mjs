/**
 * What a job costs over its whole life, by how it comes and how it is run: rows, alarms and requests are counted, the
 * dollars follow. A life is enqueue, claim, completion, archive and removal. `alone` jobs come one after the other, each
 * when the one before has ended; the others come 100 to a request, and `delayed` ones are due together.
 */
import { call } from '../http.mjs';
import { bench, configure, fill, job } from '../jobs.mjs';
import { startWorkerd } from '../load/workerd.mjs';
import { MESSAGES_PER_REQUEST, OTHERS, price, priceElsewhere } from '../price.mjs';
import { block } from '../report.mjs';
import { untilEnded } from '../scenarios/drain.mjs';
import { loadClient } from '../servers/client.mjs';
import { round } from '../stats.mjs';
import { IN_HAND, RETRY } from './steps.mjs';

/** `perSecond`: the rate at which the time awake is shared among jobs. */
const KINDS = {
  batch: { title: 'in batches of 100', options: {}, perSecond: 1_000 },
  alone: { title: 'alone', options: {}, perSecond: 100 },
  delayed: { title: 'delayed, due together', options: { delay_until: '+PT2S' }, perSecond: 1_000 },
  retry: { title: 'in batches, with one retry', options: { type: 'bench.fail-once', retry: RETRY }, perSecond: 1_000 },
};
const WAYS = { pushed: 'pushed', socket: 'pulled, socket', http: 'pulled, HTTP' };

const target = { binding: 'HANDLER', batch_size: 100 };
const HANDLERS = Object.fromEntries(Object.keys(KINDS).map((kind) => [`price-pushed-${kind}/*`, target]));

/** Measures, prints and answers the lines. */
export async function prices({ quick }) {
  const server = await startWorkerd({ count: true, handlers: HANDLERS });
  const TocsinClient = await loadClient();
  const client = new TocsinClient({ url: `http://127.0.0.1:${server.port}` });
  const rows = [];
  try {
    for (const kind of Object.keys(KINDS)) {
      for (const way of Object.keys(WAYS)) rows.push({ kind, way, ...(await life(server, client, kind, way, quick)) });
    }
  } finally {
    await server.close();
  }
  print(rows);
  return rows;
}

async function life({ port }, client, kind, way, quick) {
  const { options, perSecond } = KINDS[kind];
  const queue = `price-${way}-${kind}`;
  await configure(port, queue, { concurrency: 1000 });
  const stop = way === 'pushed' ? async () => undefined : work(client, queue, way === 'socket');
  // The target is asked once what it takes, and a worker connects; that is not part of a job's life.
  await fill(port, 1, 1, job(queue));
  await untilEnded(port, queue, 1, 10_000);
  await bench(port, 'forgetEnded', queue);
  await configure(port, queue, { retention: null });
  const jobs = kind === 'alone' ? (quick ? 20 : 100) : 2_000;
  const before = await counts(port, queue);
  if (kind === 'alone') {
    for (let n = 1; n <= jobs; n++) {
      await fill(port, 1, 1, job(queue, options));
      await untilEnded(port, queue, n, 10_000, 10);
    }
  } else {
    await fill(port, jobs, 100, job(queue, options));
    await untilEnded(port, queue, jobs, 30_000);
  }
  const between = await counts(port, queue);
  // A worker that waits would go on counting.
  await stop();
  const stopped = await counts(port, queue);
  await bench(port, 'forgetEnded', queue);
  const after = await counts(port, queue);
  const perJob = (name) => (between[name] - before[name] + after[name] - stopped[name]) / jobs;
  const written = perJob('rowsWritten') + perJob('setAlarm');
  const objectRequests = perJob('calls') + perJob('alarms') + perJob('messages') / MESSAGES_PER_REQUEST;
  const used = { written, read: perJob('rowsRead'), objectRequests, workerRequests: perJob('worker') };
  return {
    jobs,
    written: round(written, 3),
    alarms: round(perJob('setAlarm'), 3),
    read: round(used.read, 1),
    object_requests: round(objectRequests, 3),
    worker_requests: round(used.workerRequests, 3),
    ...price({ ...used, ms: 1_000 / perSecond }),
  };
}

/** Of the queue's object, and of all requests so far. */
async function counts(port, queue) {
  return { ...(await bench(port, 'counts', queue)), ...(await call(port, 'GET', '/bench/requests')) };
}

/** A worker of the library. Answers how to stop it. */
function work(client, queue, socket) {
  const stop = new AbortController();
  const failOnce = (_job, { attempt }) => {
    if (attempt === 1) throw new Error('fails once');
  };
  const handlers = { 'bench.noop': () => undefined, 'bench.fail-once': failOnce };
  const options = { signal: stop.signal, concurrency: IN_HAND, socket, log: () => undefined };
  const done = client.worker(`bench-${queue}`, { queues: [queue] }).run(handlers, options);
  return async () => {
    stop.abort();
    await done;
  };
}

const dollars = (value) => value.toFixed(2);

function print(rows) {
  const columns = ['', 'rows written', 'alarms of them', 'read', 'object requests', 'Worker', 'dollars'];
  const cells = (row) => [
    WAYS[row.way],
    ...[row.written, row.alarms, row.read, row.object_requests, row.worker_requests].map(String),
    dollars(row.total),
  ];
  const grouped = Object.keys(KINDS).flatMap((kind) => [
    [KINDS[kind].title],
    ...rows.filter((row) => row.kind === kind).map(cells),
  ]);
  console.log(block('Rows and requests of a job', columns, grouped));
  const ways = Object.keys(WAYS);
  const all = Object.keys(KINDS).map((kind) => [
    KINDS[kind].title,
    ...ways.map((way) => dollars(rows.find((row) => row.kind === kind && row.way === way).total)),
    ...OTHERS.map((service) => dollars(priceElsewhere(service, kind))),
  ]);
  const heads = ['', ...ways.map((way) => WAYS[way]), ...OTHERS];
  console.log(block('Dollars for a million jobs', heads, all));
}
