/**
 * The garbage of a job: bytes of JavaScript objects that the queue's isolate allocates for what happens to it, the Worker in front
 * included. The young generation is so large that nothing is collected meanwhile, so the heap grows by what was allocated,
 * whatever else the machine does. What lies outside of the heap, such as buffers and SQLite's memory, does not count.
 */
import { Connection } from '../http.mjs';
import { enqueueRequest, job } from '../jobs.mjs';
import { ask, untilEnded } from '../load/steps.mjs';
import { startWorkerd } from '../load/workerd.mjs';
import { block } from '../report.mjs';
import { inspect } from '../servers/inspector.mjs';
import { openWorker } from '../socket.mjs';
import { median, round } from '../stats.mjs';
import { shown } from './figures.mjs';
import { check } from './steps.mjs';

const YOUNG_MB = 128;
/** Rounds that compile the code, and rounds that count. */
const WARM_UP = 3;
const ROUNDS = 3;
/** Of a round: jobs that come one after the other, and batches. */
const ALONE = 100;
const BATCHES = 10;
const BATCH = 100;

const PUSHED = 'garbage-pushed';
const HANDLERS = { [`${PUSHED}/*`]: { binding: 'HANDLER', batch_size: 100 } };

/** Measures, prints and answers the lines. */
export async function garbage() {
  const figures = await allocated();
  const rows = Object.entries(figures).flatMap(([how, lines]) => [
    [how],
    ...Object.entries(lines).map(([what, bytes]) => [what, shown(bytes / 1000)]),
  ]);
  console.log(block('Garbage', ['', 'kB/job'], rows));
  return figures;
}

/** Bytes that a job allocates, by how it comes and by what happens to it. */
export async function allocated() {
  const server = await startWorkerd({ inspect: true, youngMb: YOUNG_MB, handlers: HANDLERS });
  const session = await inspect(server.inspector, 'queue');
  const measure = async (step, jobs) => {
    if (!(await ask(server.port, 'collect', 'any'))) throw new Error('The server has no gc() to call.');
    const before = await session.send('Runtime.getHeapUsage');
    await step();
    const after = await session.send('Runtime.getHeapUsage');
    return (after.usedSize - before.usedSize) / jobs;
  };
  try {
    return {
      alone: await turns(await alone(server.port), (step) => measure(step, ALONE)),
      'in batches of 100': await turns(await batches(server.port), (step) => measure(step, BATCHES * BATCH)),
    };
  } finally {
    session.close();
    await server.close();
  }
}

/** Measures steps in turn, because each has to do with what the one before has left. @returns the median of each */
async function turns(steps, measure) {
  const samples = Object.fromEntries(Object.keys(steps).map((what) => [what, []]));
  for (let time = 1; time <= WARM_UP + ROUNDS; time++) {
    for (const [what, step] of Object.entries(steps)) {
      const bytes = await measure(step);
      if (time > WARM_UP) samples[what].push(bytes);
    }
  }
  return Object.fromEntries(Object.entries(samples).map(([what, values]) => [what, round(median(values))]));
}

async function alone(port) {
  const bytes = enqueueRequest(1, job('alone-http'));
  const [waiting, started, pushed] = await Promise.all(
    ['alone-waiting', 'alone-started', PUSHED].map(async (queue) => {
      const producer = await openWorker(port, queue, 'producer');
      return () => producer.ask({ type: 'enqueue', id: 1, jobs: [job(queue)] }, 'enqueued');
    }),
  );
  const worker = await openWorker(port, 'alone-started', 'worker');
  const held = [];
  let ended = 0;
  return {
    'enqueued, socket': () => times(ALONE, waiting),
    'enqueued, HTTP': () => post(port, ALONE, bytes),
    'enqueued and started, socket': async () => {
      worker.say({ type: 'ready', count: ALONE });
      await times(ALONE, async () => {
        const [{ jobs }] = await Promise.all([worker.next('jobs'), started()]);
        held.push(...jobs);
      });
    },
    'completed, socket': () => times(ALONE, () => complete(worker, [held.shift()])),
    'a whole life, pushed': async () => {
      await times(ALONE, pushed);
      ended += ALONE;
      await untilEnded(port, PUSHED, ended, 30_000);
    },
  };
}

async function batches(port) {
  const bytes = enqueueRequest(BATCH, job('batch'));
  const worker = await openWorker(port, 'batch', 'worker');
  const held = [];
  return {
    'enqueued, HTTP': () => post(port, BATCHES, bytes),
    'started, socket': () =>
      times(BATCHES, async () => held.push((await worker.ask({ type: 'ready', count: BATCH }, 'jobs')).jobs)),
    'completed, socket': () => times(BATCHES, () => complete(worker, held.shift())),
  };
}

/** Acts so often, each time when the last one is over. */
async function times(count, act) {
  for (let n = 0; n < count; n++) await act();
}

async function post(port, count, bytes) {
  const connection = await Connection.open(port);
  await times(count, async () => check('the status of an enqueue', 201, (await connection.send(bytes)).status));
  connection.close();
}

async function complete(worker, jobs) {
  const reports = jobs.map(({ id, attempt }) => ({ action: 'ack', job_id: id, attempt }));
  const { succeeded } = await worker.ask({ type: 'report', id: 2, reports }, 'reported');
  check('reports taken', jobs.length, succeeded);
}
