/**
 * Rows written and read over a job's whole life: enqueued, claimed, completed, kept and removed. Counted by the cursors of
 * every statement; `setAlarm` is billed as a row written and counted with them.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { bench, configure, fill, job } from '../jobs.mjs';
import { price } from '../price.mjs';
import { round } from '../stats.mjs';
import { untilEnded } from './drain.mjs';

export const title = 'Rows per job';
export const servers = ['counting'];
export const columns = ['life', 'jobs', 'written', 'of_these_set_alarm', 'read', 'budget', 'dollars_per_million'];

const retry = { max_attempts: 2, backoff_strategy: 'constant', initial_interval: 200, jitter: false };

const LIVES = [
  { life: 'immediate, batches of 100', queue: 'life-100', jobs: 2000, batch: 100, concurrency: 1000, budget: 0.1 },
  { life: 'immediate, one by one', queue: 'life-1', jobs: 50, batch: 1, concurrency: 10, budget: 3.1, oneByOne: true },
  {
    life: 'delayed by 1 s, batches of 100',
    queue: 'life-delayed',
    jobs: 2000,
    batch: 1000,
    concurrency: 1000,
    budget: 3.1,
    options: { delay_until: '+PT1S' },
  },
  {
    life: 'one retry, batches of 100',
    queue: 'life-retried',
    jobs: 2000,
    batch: 1000,
    concurrency: 1000,
    budget: 0.1 + 3,
    options: { type: 'bench.fail-once', retry },
  },
];

export async function run({ port }) {
  const rows = [];
  for (const shape of LIVES) rows.push(await live(port, shape));
  rows.push(await idle(port));
  return rows;
}

async function live(port, { life, queue, jobs, batch, concurrency, budget, options = {}, oneByOne = false }) {
  await configure(port, queue, { concurrency });
  // The target is asked once what it takes; that is not part of a job's life.
  await fill(port, 1, 1, job(queue));
  await untilEnded(port, queue, 1, 10_000);
  await bench(port, 'forgetEnded', queue);
  await configure(port, queue, { retention: null });
  const before = await bench(port, 'counts', queue);
  if (oneByOne) {
    for (let n = 1; n <= jobs; n++) {
      await fill(port, 1, 1, job(queue, options));
      await untilEnded(port, queue, n, 10_000);
    }
  } else {
    await fill(port, jobs, batch, job(queue, options));
    await untilEnded(port, queue, jobs, 30_000);
  }
  await bench(port, 'forgetEnded', queue);
  const after = await bench(port, 'counts', queue);
  const perJob = (name) => (after[name] - before[name]) / jobs;
  const written = perJob('rowsWritten') + perJob('setAlarm');
  return {
    life,
    jobs,
    written: round(written, 2),
    of_these_set_alarm: round(perJob('setAlarm'), 3),
    read: round(perJob('rowsRead'), 1),
    budget,
    dollars_per_million: price({
      written,
      read: perJob('rowsRead'),
      objectRequests: 1 / batch,
      workerRequests: 1 / batch,
    }).total,
  };
}

/** A queue that was used and has nothing to do. */
async function idle(port) {
  const queue = 'life-100';
  await configure(port, queue, { retention: null });
  await delay(1_500);
  const before = await bench(port, 'counts', queue);
  await delay(3_000);
  const after = await bench(port, 'counts', queue);
  const diff = (name) => after[name] - before[name];
  return {
    life: 'idle for 3 s, in all',
    jobs: 0,
    written: diff('rowsWritten') + diff('setAlarm'),
    of_these_set_alarm: diff('setAlarm'),
    read: diff('rowsRead'),
    budget: 0,
  };
}
