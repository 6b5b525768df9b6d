/** graphile-worker in its batched mode. */
import { openGraphile } from '../../peers/graphile.mjs';
import { check, DATA, dueTogether, enqueues, IN_HAND, runs, starts } from '../steps.mjs';

export async function open({ sizes, packages }) {
  const { skipped, versions, pool, utils, work, close } = await openGraphile(packages);
  if (skipped !== undefined) return { skipped };

  const left = async () =>
    Number((await pool.query('SELECT count(*) AS n FROM graphile_worker._private_jobs')).rows[0].n);
  const emptied = async (use) => {
    const value = await use();
    await pool.query('TRUNCATE graphile_worker._private_jobs');
    return value;
  };
  const many = (count, spec) => Array.from({ length: count }, () => ({ identifier: 'noop', payload: DATA, ...spec }));
  const fill = async (count) => {
    for (let done = 0; done < count; done += 1000) await utils.addJobs(many(Math.min(1000, count - done)));
  };
  const worker =
    (concurrentJobs = IN_HAND) =>
    async (onStart) => {
      const runner = await work({ noop: async () => onStart() }, concurrentJobs);
      return () => runner.stop();
    };

  const measures = {
    start: () => emptied(() => starts(sizes, () => utils.addJob('noop', DATA), worker())),
    due: () =>
      emptied(() => dueTogether(sizes, (count, at) => utils.addJobs(many(count, { runAt: new Date(at) })), worker())),
  };
  for (const callers of [1, 16, 64]) {
    measures[`single-${callers}`] = () =>
      emptied(() => enqueues(sizes, { callers }, () => utils.addJob('noop', DATA), left));
  }
  for (const perCall of [100, 1000]) {
    const jobs = many(perCall);
    for (const callers of [1, 16]) {
      measures[`batch-${perCall}-${callers}`] = () =>
        emptied(() => enqueues(sizes, { callers, perCall }, () => utils.addJobs(jobs), left));
    }
  }
  for (const inHand of [1, 10, 100]) {
    measures[`pulled-${inHand}`] = () =>
      emptied(async () => {
        await fill(sizes.pulled[inHand]);
        const perSecond = await runs(sizes.pulled[inHand], worker(inHand));
        check('jobs left', 0, await left());
        return perSecond;
      });
  }
  const notes = [
    `${versions}, \`fsync\` and \`synchronous_commit\` on; batched: \`localQueue.size\` 500, \`completeJobBatchDelay\` 0. Its retry delay cannot be set, so that line is empty.`,
  ];
  return { measures, close, notes };
}
