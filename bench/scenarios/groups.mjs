/**
 * What groups cost and bring. `fair`: of one group nine tenths of all jobs are enqueued, then one job of each of many
 * others; the figure is how many jobs were handed out when the last of these started. Beside it, as many jobs that have
 * no group, and that have one each. `strict`: jobs are fetched and acknowledged by 100 while one of each group runs at a
 * time.
 */
import { Connection, call, request } from '../http.mjs';
import { configure, job } from '../jobs.mjs';
import { rate } from '../stats.mjs';

export const title = 'Jobs in groups, fetched over HTTP by one worker';
export const servers = ['workerd'];
export const columns = ['order', 'groups', 'jobs', 'quiet_out_after', 'jobs_s'];

/** Jobs of a fetch, and of a request that enqueues. */
const FETCHED = 100;
const BATCH = 1000;

export async function run({ port }, { quick }) {
  const part = quick ? 10 : 1;
  const all = 100_000 / part;
  const rows = [await each(port, all, 0), await each(port, all, all), await fair(port, 0.9 * all, 0.1 * all)];
  for (const groups of [1, 100, 10_000 / part])
    rows.push(await strict(port, groups, groups === 1 ? 2_000 / part : 20_000 / part));
  return rows;
}

/** Jobs without a group, or each in a group of its own. @param groups 0, or as many as jobs */
async function each(port, jobs, groups) {
  const queue = `groups-each-${groups}`;
  const order = groups === 0 ? '' : 'fair';
  if (groups > 0) await configure(port, queue, { groups: { order } });
  await enqueue(
    port,
    queue,
    Array.from({ length: jobs }, (_, at) => (groups === 0 ? undefined : `group ${at}`)),
  );
  const started = performance.now();
  await drain(port, queue, jobs);
  return { order, groups, jobs, quiet_out_after: '', jobs_s: rate(jobs, performance.now() - started) };
}

async function fair(port, noisy, quiet) {
  const queue = 'groups-fair';
  await configure(port, queue, { groups: { order: 'fair' } });
  await enqueue(port, queue, Array(noisy).fill('noisy'));
  await enqueue(
    port,
    queue,
    Array.from({ length: quiet }, (_, at) => `quiet ${at}`),
  );
  let left = quiet;
  let quiet_out_after = 0;
  const started = performance.now();
  const taken = await drain(port, queue, noisy + quiet, (jobs) => {
    for (const { group } of jobs) {
      if (left > 0) quiet_out_after++;
      if (group !== 'noisy') left--;
    }
  });
  return {
    order: 'fair',
    groups: quiet + 1,
    jobs: taken,
    quiet_out_after,
    jobs_s: rate(taken, performance.now() - started),
  };
}

async function strict(port, groups, jobs) {
  const queue = `groups-strict-${groups}`;
  await configure(port, queue, { groups: { order: 'strict' } });
  await enqueue(
    port,
    queue,
    Array.from({ length: jobs }, (_, at) => `group ${at % groups}`),
  );
  const started = performance.now();
  await drain(port, queue, jobs);
  return { order: 'strict', groups, jobs, quiet_out_after: '', jobs_s: rate(jobs, performance.now() - started) };
}

async function enqueue(port, queue, groups) {
  for (let at = 0; at < groups.length; at += BATCH) {
    const jobs = groups.slice(at, at + BATCH).map((group) => job(queue, { group }));
    await call(port, 'POST', '/ojs/v1/jobs/batch', { jobs });
  }
}

/** Fetches and acknowledges until all jobs were taken. @returns how many were */
async function drain(port, queue, count, seen = () => undefined) {
  const connection = await Connection.open(port);
  const send = async (path, body) => JSON.parse((await connection.send(request('POST', path, body))).body);
  const fetched = { queues: [queue], count: FETCHED, worker_id: 'bench' };
  let taken = 0;
  while (taken < count) {
    const { jobs } = await send('/ojs/v1/workers/fetch', fetched);
    if (jobs.length === 0) throw new Error(`Only ${taken} of ${count} jobs of ${queue} were handed out.`);
    seen(jobs);
    taken += jobs.length;
    await send('/ojs/v1/workers/report', {
      worker_id: 'bench',
      reports: jobs.map(({ id }) => ({ action: 'ack', job_id: id })),
    });
  }
  connection.close();
  return taken;
}
