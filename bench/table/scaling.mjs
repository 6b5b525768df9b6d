/**
 * What a job costs as a queue grows: by jobs that wait, by queues, by size. Jobs are enqueued in batches of 100 over four
 * connections, then pulled 100 at a time over HTTP, each fetch with the reports of the one before; as many come as go. Each
 * size is measured three times, in turn with the others. Beside large payloads stands the floor, which hands them out as it has
 * stored them.
 */
import { startFloor } from '../floor/server.mjs';
import { Connection, load, request } from '../http.mjs';
import { enqueueRequest, job } from '../jobs.mjs';
import { ask } from '../load/steps.mjs';
import { startWorkerd } from '../load/workerd.mjs';
import { block } from '../report.mjs';
import { cpuPer, median, rate } from '../stats.mjs';
import { shown } from './figures.mjs';
import { check } from './steps.mjs';

const TIMES = 3;
const LANES = 4;
const BATCH = 100;
/** Stocked in one request, which takes a second or two. */
const PORTION = 100_000;
/** Bytes of bodies in a request, and in all. */
const MOST_IN_REQUEST = 900_000;
const MOST_IN_ALL = 40_000_000;

const names = (prefix, count) => Array.from({ length: count }, (_, n) => `${prefix}-${n}`);
const size = (bytes) => (bytes < 1_000 ? `${bytes} B` : `${bytes / 1_000} kB`);

function dimensions(quick) {
  const depths = quick ? [1_000, 10_000, 100_000] : [1_000, 100_000, 1_000_000];
  return [
    ...depths.map((waiting) => ({
      title: `${waiting.toLocaleString('en-US')} waiting`,
      queues: [`depth-${waiting}`],
      waiting,
    })),
    ...[1, 8, 64].map((count) => ({
      title: count === 1 ? '1 queue' : `${count} queues`,
      queues: names(`queues-${count}`, count),
    })),
    ...[100, 1_000, 10_000, 100_000].map((bytes) => ({
      title: `payload of ${size(bytes)}`,
      queues: [`bytes-${bytes}`],
      bytes,
      hasFloor: bytes >= 1_000,
    })),
  ];
}

/** Measures, prints and answers the lines. */
export async function scaling({ quick }) {
  const server = await startWorkerd();
  const floor = await startFloor();
  try {
    const lines = dimensions(quick).map((line) => ({ ...line, samples: [], floors: [] }));
    for (const { queues, waiting = 0 } of lines) await stock(server.port, queues[0], waiting);
    const jobs = quick ? 2_000 : 20_000;
    // The first pass makes the queues, and is not counted.
    for (let time = 0; time <= TIMES; time++) {
      for (const line of lines) {
        const sample = await pass(server, line, jobs);
        const least = line.hasFloor ? await pass(floor, line, jobs) : undefined;
        if (time === 0) continue;
        line.samples.push(sample);
        if (least) line.floors.push(least);
      }
    }
    const rows = lines.map(({ title, samples, floors }) => ({ title, ...medians(samples), floor: medians(floors) }));
    console.log(block('As a queue grows', COLUMNS, rows.map(cells)));
    return rows;
  } finally {
    await server.close();
    await floor.close();
  }
}

/** Of each figure of a pass; none where nothing was measured. */
function medians(samples) {
  const names = Object.keys(samples[0] ?? {});
  return Object.fromEntries(names.map((name) => [name, median(samples.map((sample) => sample[name]))]));
}

const COLUMNS = [
  '',
  ...['enqueued: CPU µs/job', 'pulled: CPU µs/job'].flatMap((cpu) => [cpu, 'floor', 'jobs/s', 'floor']),
];

function cells({ title, floor, ...ours }) {
  const names = ['enqueue_cpu', 'enqueue_s', 'run_cpu', 'run_s'];
  return [title, ...names.flatMap((name) => [shown(ours[name]), shown(floor[name])])];
}

async function stock(port, queue, count) {
  for (let left = count; left > 0; left -= PORTION) {
    await ask(port, 'stock', queue, `?count=${Math.min(left, PORTION)}&due_in=0`);
  }
}

async function pass({ port, cpuMs }, { queues, bytes = BATCH }, most) {
  const batch = Math.min(BATCH, Math.floor(MOST_IN_REQUEST / bytes));
  // As many for each queue, and for each lane.
  const unit = batch * Math.max(LANES, queues.length);
  const jobs = Math.max(1, Math.floor(Math.min(most, MOST_IN_ALL / bytes) / unit)) * unit;
  const around = JSON.stringify(['']).length;
  const requests = queues.map((queue) => enqueueRequest(batch, job(queue, { args: ['x'.repeat(bytes - around)] })));
  let sent = 0;
  const next = () => (sent * batch < jobs ? requests[sent++ % requests.length] : undefined);
  const cpuAtFirst = cpuMs();
  const filled = await load({ port, connections: LANES, next });
  check('refusals', 0, filled.errors);
  const enqueue_cpu = cpuPer(cpuMs, cpuAtFirst, jobs);
  const cpuBetween = cpuMs();
  const begun = performance.now();
  const perLane = Math.ceil(jobs / LANES);
  const pulled = await Promise.all(Array.from({ length: LANES }, (_, lane) => pull(port, queues, lane, perLane)));
  const run_s = rate(jobs, performance.now() - begun);
  check(
    'jobs pulled',
    jobs,
    pulled.reduce((sum, count) => sum + count, 0),
  );
  return { enqueue_cpu, enqueue_s: rate(jobs, filled.ms), run_cpu: cpuPer(cpuMs, cpuBetween, jobs), run_s };
}

/** Pulls at most this many jobs from the queues in turn, and reports all of them. Answers how many it was given. */
async function pull(port, queues, lane, jobs) {
  const connection = await Connection.open(port);
  const send = async (path, body) => {
    const { status, body: text } = await connection.send(request('POST', `/ojs/v1/workers/${path}`, body));
    check(`the status of ${path}`, 200, status);
    return JSON.parse(text.toString());
  };
  const worker_id = `scaling-${lane}`;
  const ended = new Map(queues.map((queue) => [queue, []]));
  let left = jobs;
  try {
    let empty = 0;
    for (let turn = lane; left > 0; turn++) {
      const queue = queues[turn % queues.length];
      const reports = ended.get(queue);
      const ask = { queues: [queue], worker_id, count: Math.min(BATCH, left), ...(reports.length > 0 && { reports }) };
      const { jobs, heads: taken = jobs } = await send('fetch', ask);
      ended.set(
        queue,
        taken.map(({ id, attempt }) => ({ action: 'ack', job_id: id, attempt })),
      );
      left -= taken.length;
      empty = taken.length === 0 ? empty + 1 : 0;
      // Other lanes have taken what this one came for.
      if (empty > queues.length) break;
    }
    for (const reports of ended.values()) if (reports.length > 0) await send('report', { worker_id, reports });
    return jobs - left;
  } finally {
    connection.close();
  }
}
