/** pg-boss, whose workers are notified of new jobs. */
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';
import { versionOf } from '../../peers/packages.mjs';
import { findPostgres, NO_POSTGRES, startPostgres } from '../../peers/postgres.mjs';
import { IN_HAND, PAYLOAD, WORK_MS } from '../load.mjs';
import { bytesBelow } from '../processes.mjs';

const QUEUE = 'steady';
const CONNECTIONS = 20;
const WORK = {
  batchSize: IN_HAND,
  pollingIntervalSeconds: 0.5,
  notifyPollingIntervalSeconds: 0.5,
  burstWhenBatchFull: true,
};

export async function open({ packages }) {
  const found = findPostgres();
  if (found === undefined) return { skipped: NO_POSTGRES };
  const { PgBoss } = await import(pathToFileURL(createRequire(`${packages}/`).resolve('pg-boss')).href);
  const postgres = await startPostgres(found);
  const { connectionString } = postgres;
  const boss = new PgBoss({ connectionString, max: CONNECTIONS, schedule: false, useListenNotify: true });
  boss.on('error', () => undefined);
  await boss.start();
  await boss.createQueue(QUEUE, { notify: true });
  const waiting = `SELECT count(*)::int AS n FROM pgboss.job WHERE name = $1 AND state = 'created'`;
  return {
    notes: [`pg-boss ${versionOf(packages, 'pg-boss')} on PostgreSQL ${found.version}, by \`work\` with \`notify\`.`],
    enqueue: (stamps) =>
      boss.insert(
        QUEUE,
        stamps.map((at) => ({ data: { at, ...PAYLOAD } })),
      ),
    work: async (onStart) => {
      await boss.work(QUEUE, WORK, async (jobs) => {
        for (const { data } of jobs) onStart(data.at);
        await new Promise((done) => setTimeout(done, WORK_MS));
      });
      return () => boss.offWork(QUEUE, { wait: true });
    },
    pids: () => [postgres.pid],
    depth: async () => (await boss.getDb().executeSql(waiting, [QUEUE])).rows[0].n,
    bytes: () => bytesBelow(postgres.directory),
    close: async () => {
      await boss.stop({ graceful: false });
      await postgres.close();
    },
  };
}
