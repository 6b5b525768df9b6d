/** graphile-worker in its batched mode, in a PostgreSQL cluster of its own. */
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';
import { versionOf } from './packages.mjs';
import { findPostgres, NO_POSTGRES, startPostgres } from './postgres.mjs';

/** 500 jobs claimed at once, completed in one statement what ended in a turn. */
const BATCHED = { localQueue: { size: 500 }, completeJobBatchDelay: 0, failJobBatchDelay: 0 };
/** Connections of the producers, and of the worker. */
const CONNECTIONS = 20;

/** @returns its parts, and `work(taskList, concurrentJobs)`, which starts a worker; or why it was `skipped` */
export async function openGraphile(packages) {
  const found = findPostgres();
  if (found === undefined) return { skipped: NO_POSTGRES };
  const require = createRequire(`${packages}/`);
  const { Pool } = require('pg');
  const { Logger, makeWorkerUtils, run } = await import(pathToFileURL(require.resolve('graphile-worker')).href);
  const logger = new Logger(() => () => undefined);
  const postgres = await startPostgres(found);
  const pool = new Pool({ connectionString: postgres.connectionString, max: CONNECTIONS });
  // A connection that is cut when the cluster ends.
  pool.on('error', () => undefined);
  const utils = await makeWorkerUtils({ pgPool: pool, logger });
  await utils.migrate();
  return {
    versions: `graphile-worker ${versionOf(packages, 'graphile-worker')} on PostgreSQL ${found.version}`,
    ...{ pool, utils, postgres },
    work: (taskList, concurrentJobs) => {
      const preset = { worker: { ...BATCHED, concurrentJobs } };
      return run({ pgPool: pool, preset, taskList, logger, noHandleSignals: true });
    },
    close: async () => {
      await utils.release();
      await pool.end();
      await postgres.close();
    },
  };
}
