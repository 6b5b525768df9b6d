/**
 * graphile-worker's named queues, the nearest thing to a strict order of groups: the jobs of one name run one after the other.
 * What `npm run bench -- --only groups` measures here, on PostgreSQL, which flushes each commit to disk.
 *
 *     node bench/peers/named-queues.mjs [--quick]
 *
 * BullMQ has nothing like it in its open edition: `queue-per-group.mjs` measures what its users do instead.
 */
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { rate } from '../stats.mjs';
import { installPeers, versionOf } from './packages.mjs';
import { findPostgres, NO_POSTGRES, startPostgres } from './postgres.mjs';

const ADD = `SELECT count(graphile_worker.add_job('noop', '{}'::json, queue_name := 'group ' || (i % $1::int)))
  FROM generate_series(1, $2::int) AS i`;

/** Jobs that one worker runs at a time. */
const CONCURRENCY = 100;

const part = process.argv.includes('--quick') ? 10 : 1;
const found = findPostgres();
if (!found) {
  console.error(`Left out: ${NO_POSTGRES}`);
  process.exit(0);
}
const peers = installPeers();
if (peers.problem) {
  console.error(`Left out: ${peers.problem}`);
  process.exit(0);
}
const require = createRequire(join(peers.directory, 'package.json'));
const { run, Logger, makeWorkerUtils } = require('graphile-worker');
const { Pool } = require('pg');
const quiet = new Logger(() => () => undefined);
const rows = [];
try {
  for (const groups of [1, 100, 10_000 / part]) {
    const jobs = groups === 1 ? 2_000 / part : 20_000 / part;
    const postgres = await startPostgres(found);
    const pool = new Pool({ connectionString: postgres.connectionString });
    const utils = await makeWorkerUtils({ pgPool: pool, logger: quiet });
    await utils.migrate();
    await pool.query(ADD, [groups, jobs]);
    let left = jobs;
    let done;
    const all = new Promise((resolve) => {
      done = resolve;
    });
    const started = performance.now();
    const runner = await run({
      ...{ connectionString: postgres.connectionString, concurrency: CONCURRENCY, logger: quiet, pollInterval: 10 },
      noHandleSignals: true,
      taskList: {
        noop: () => {
          if (--left === 0) done();
        },
      },
    });
    await all;
    rows.push({ groups, jobs, jobs_s: rate(jobs, performance.now() - started) });
    await runner.stop();
    await utils.release();
    await pool.end();
    await postgres.close();
  }
  console.log(`graphile-worker ${versionOf(peers.directory, 'graphile-worker')}, PostgreSQL ${found.version}`);
  console.table(rows);
} finally {
  peers.remove();
}
