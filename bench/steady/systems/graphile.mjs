/** graphile-worker in its batched mode. It deletes what has ended. */
import { openGraphile } from '../../peers/graphile.mjs';
import { IN_HAND, PAYLOAD, WORK_MS } from '../load.mjs';
import { bytesBelow } from '../processes.mjs';

const WAITING = 'SELECT count(*) AS n FROM graphile_worker._private_jobs WHERE locked_at IS NULL';

export async function open({ packages }) {
  const { skipped, versions, pool, utils, postgres, work, close } = await openGraphile(packages);
  if (skipped !== undefined) return { skipped };
  return {
    notes: [`${versions}, batched.`],
    enqueue: (stamps) => utils.addJobs(stamps.map((at) => ({ identifier: 'work', payload: { at, ...PAYLOAD } }))),
    work: async (onStart) => {
      const run = async ({ at }) => {
        onStart(at);
        await new Promise((done) => setTimeout(done, WORK_MS));
      };
      const runner = await work({ work: run }, IN_HAND);
      return () => runner.stop();
    },
    pids: () => [postgres.pid],
    depth: async () => Number((await pool.query(WAITING)).rows[0].n),
    bytes: () => bytesBelow(postgres.directory),
    close,
  };
}
