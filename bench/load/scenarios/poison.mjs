/**
 * A poison job that kills its isolate, in the middle of 1,000 good ones, with the default retry policy. Every job that
 * runs in the isolate when it dies loses its attempt; all good ones must complete all the same.
 */
import { call } from '../../http.mjs';
import { configure, job, pause, resume } from '../../jobs.mjs';
import { startPoisonHost } from '../poison-host.mjs';
import { ask, untilEnded } from '../steps.mjs';
import { startWorkerd } from '../workerd.mjs';

const QUEUE = 'load-poison';

export const title = 'A poison job that kills its isolate, among 1,000 good ones';
export const columns = [
  ...['good', 'completed', 'completed_1st', 'completed_2nd', 'completed_later', 'good_lost'],
  ...['poison_attempts', 'isolate_deaths', 'ms'],
];

/** What is wrong with the outcome, if anything. */
export function verdict([{ good, completed, good_lost }]) {
  return good_lost > 0 || completed < good ? `${good_lost} good jobs were lost to the poison one.` : undefined;
}

/** Runs on a server of its own, beside the process that is killed. */
export async function start() {
  const host = await startPoisonHost();
  try {
    const server = await startWorkerd({ poisonPort: host.port });
    const close = async () => {
      await server.close();
      await host.close();
    };
    return { ...server, deaths: host.deaths, close };
  } catch (error) {
    await host.close();
    throw error;
  }
}

export async function run({ port, deaths }, { quick }) {
  const half = quick ? 50 : 500;
  await configure(port, QUEUE, { concurrency: 100 });
  await pause(port, QUEUE);
  const good = Array(half).fill(job(QUEUE, { type: 'load.good' }));
  await call(port, 'POST', '/ojs/v1/jobs/batch', { jobs: good });
  await call(port, 'POST', '/ojs/v1/jobs', job(QUEUE, { type: 'load.poison' }));
  await call(port, 'POST', '/ojs/v1/jobs/batch', { jobs: good });
  const resumedAt = Date.parse((await resume(port, QUEUE)).resumed_at);
  const { at } = await untilEnded(port, QUEUE, 2 * half + 1, 60_000);
  const { completed, ended } = await ask(port, 'outcomes', QUEUE);
  const all = Object.values(completed).reduce((sum, count) => sum + count, 0);
  const poison = ended.find(({ type }) => type === 'load.poison');
  const lost = ended.filter(({ type }) => type === 'load.good').reduce((sum, { jobs }) => sum + jobs, 0);
  if (!poison) throw new Error('The poison job was not discarded.');
  return [
    {
      good: 2 * half,
      completed: all,
      completed_1st: completed[1] ?? 0,
      completed_2nd: completed[2] ?? 0,
      completed_later: all - (completed[1] ?? 0) - (completed[2] ?? 0),
      good_lost: lost,
      poison_attempts: poison.attempt,
      isolate_deaths: deaths(),
      ms: at - resumedAt,
    },
  ];
}
