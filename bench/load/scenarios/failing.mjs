/** A handler that fails half of its runs. The coin is deterministic, so every outcome is predicted and checked. */
import { load, request } from '../../http.mjs';
import { configure, job, pause, resume } from '../../jobs.mjs';
import { cpuPer, rate } from '../../stats.mjs';
import { predict } from '../coin.mjs';
import { ask, untilEnded } from '../steps.mjs';

const QUEUE = 'load-failing';
const MAX_ATTEMPTS = 5;
const RETRY = { max_attempts: MAX_ATTEMPTS, backoff_strategy: 'constant', initial_interval: 100, jitter: false };

export const title = 'Handler that fails 50 % of its runs (5 attempts, 100 ms apart)';
export const columns = ['jobs', 'runs', 'completed', 'discarded', 'expected', 'ms', 'runs_s', 'cpu_us_run'];

export async function run({ port, cpuMs }, { quick }) {
  const jobs = quick ? 1_000 : 20_000;
  await configure(port, QUEUE, { concurrency: 1000 });
  await pause(port, QUEUE);
  let next = 0;
  const batch = () => {
    if (next >= jobs) return undefined;
    const numbers = Array.from({ length: 1000 }, () => next++);
    const jobsOf = numbers.map((n) => job(QUEUE, { type: 'load.half', args: [{ n }], retry: RETRY }));
    return request('POST', '/ojs/v1/jobs/batch', { jobs: jobsOf });
  };
  const { errors } = await load({ port, connections: 1, next: batch });
  if (errors > 0) throw new Error(`${errors} enqueue requests were refused.`);
  const expected = predict(jobs, MAX_ATTEMPTS);
  const cpuBefore = cpuMs?.();
  const resumedAt = Date.parse((await resume(port, QUEUE)).resumed_at);
  const { at } = await untilEnded(port, QUEUE, jobs, 60_000);
  const outcomes = await ask(port, 'outcomes', QUEUE);
  const counted = { completed: 0, discarded: 0, runs: 0 };
  for (const [attempt, count] of Object.entries(outcomes.completed)) {
    counted.completed += count;
    counted.runs += count * Number(attempt);
  }
  for (const { attempt, jobs: count } of outcomes.ended) {
    counted.discarded += count;
    counted.runs += count * attempt;
  }
  const { runs } = counted;
  const isExpected = Object.keys(expected).every((name) => expected[name] === counted[name]);
  if (!isExpected) throw new Error(`Expected ${JSON.stringify(expected)}, found ${JSON.stringify(counted)}.`);
  const ms = at - resumedAt;
  return [
    {
      jobs,
      ...counted,
      expected: 'as expected',
      ms,
      runs_s: rate(runs, ms),
      cpu_us_run: cpuPer(cpuMs, cpuBefore, runs),
    },
  ];
}
