/** graphile-worker in its batched mode. It deletes what has ended. */
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';
import { versionOf } from '../../peers/packages.mjs';
import { findPostgres, NO_POSTGRES, startPostgres } from '../../peers/postgres.mjs';
import { IN_HAND, PAYLOAD, WORK_MS } from '../load.mjs';
import { bytesBelow } from '../processes.mjs';

export const MODES = { pulled: [] };

const BATCHED = { localQueue: { size: 500 }, completeJobBatchDelay: 0, failJobBatchDelay: 0 };
const CONNECTIONS = 20;

export async function open({ packages }) {
  const found = findPostgres();
  if (found === undefined) return { skipped: NO_POSTGRES };
  const require = createRequire(`${packages}/`);
  const { Pool } = require('pg');
  const { Logger, makeWorkerUtils, run } = await import(pathToFileURL(require.resolve('graphile-worker')).href);
  const logger = new Logger(() => () => undefined);
  const postgres = await startPostgres(found);
  const pool = new Pool({ connectionString: postgres.connectionString, max: CONNECTIONS });
  pool.on('error', () => undefined);
  const utils = await makeWorkerUtils({ pgPool: pool, logger });
  await utils.migrate();
  const waiting = 'SELECT count(*) AS n FROM graphile_worker._private_jobs WHERE locked_at IS NULL';
  return {
    notes: [`graphile-worker ${versionOf(packages, 'graphile-worker')} on PostgreSQL ${found.version}, batched.`],
    enqueue: (stamps) => utils.addJobs(stamps.map((at) => ({ identifier: 'work', payload: { at, ...PAYLOAD } }))),
    work: async (onStart) => {
      const preset = { worker: { ...BATCHED, concurrentJobs: IN_HAND } };
      const work = async ({ at }) => {
        onStart(at);
        await new Promise((done) => setTimeout(done, WORK_MS));
      };
      const runner = await run({ pgPool: pool, preset, taskList: { work }, logger, noHandleSignals: true });
      return () => runner.stop();
    },
    pids: () => [postgres.pid],
    depth: async () => Number((await pool.query(waiting)).rows[0].n),
    bytes: () => bytesBelow(postgres.directory),
    close: async () => {
      await utils.release();
      await pool.end();
      await postgres.close();
    },
  };
}
