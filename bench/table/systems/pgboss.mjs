/** pg-boss, in a PostgreSQL cluster of its own. */
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';
import { versionOf } from '../../peers/packages.mjs';
import { findPostgres, NO_POSTGRES, startPostgres } from '../../peers/postgres.mjs';
import { check, DATA, dueTogether, enqueues, IN_HAND, runs, starts } from '../steps.mjs';

const CONNECTIONS = 20;

export async function open({ sizes, packages }) {
  const found = findPostgres();
  if (found === undefined) return { skipped: NO_POSTGRES };
  const { PgBoss } = await import(pathToFileURL(createRequire(`${packages}/`).resolve('pg-boss')).href);
  const postgres = await startPostgres(found);
  const { connectionString } = postgres;
  let schemas = 0;
  let schema;
  let boss;
  /** Begins again with tables of its own: how fast it retries depends on what its tables have been through. */
  const renew = async () => {
    await boss?.stop({ graceful: false });
    schema = `bench_${++schemas}`;
    boss = new PgBoss({ connectionString, schema, max: CONNECTIONS, schedule: false, useListenNotify: true });
    boss.on('error', () => undefined);
    await boss.start();
  };
  await renew();

  let queues = 0;
  const withQueue = async (use) => {
    const queue = `bench-${++queues}`;
    await boss.createQueue(queue, { notify: true, retryLimit: 2, retryDelay: 0 });
    const value = await use(queue);
    await boss.deleteQueue(queue);
    return value;
  };
  const countOf = (queue, state) => async () => {
    const query = `SELECT count(*)::int AS n FROM ${schema}.job WHERE name = $1 AND state = $2`;
    return (await boss.getDb().executeSql(query, [queue, state])).rows[0].n;
  };
  const completed = async (queue, count) => check('jobs completed', count, await countOf(queue, 'completed')());
  const many = (count, spec) => Array.from({ length: count }, () => ({ data: DATA, ...spec }));
  const fill = async (queue, count) => {
    for (let done = 0; done < count; done += 1000) await boss.insert(queue, many(Math.min(1000, count - done)));
  };

  /** Its own worker, which is notified of new jobs and fetches again at once while there are more. */
  const worker = (queue) => async (onStart) => {
    const options = {
      batchSize: IN_HAND,
      pollingIntervalSeconds: 0.5,
      notifyPollingIntervalSeconds: 0.5,
      burstWhenBatchFull: true,
    };
    await boss.work(queue, options, async (jobs) => {
      for (const _ of jobs) onStart();
    });
    return () => boss.offWork(queue, { wait: true });
  };
  /** Fetches and completes as many as it has in hand, again and again: faster than its own worker. */
  const loop = (queue, inHand, failing = () => false) => {
    return async (onStart) => {
      let isOver = false;
      const work = async () => {
        while (!isOver) {
          const jobs = await boss.fetch(queue, { batchSize: inHand, includeMetadata: true });
          const ids = (which) => jobs.filter(which).map(({ id }) => id);
          const good = ids((job) => !failing(job));
          const bad = ids(failing);
          for (const _ of good) onStart();
          if (good.length > 0) await boss.complete(queue, good);
          if (bad.length > 0) await boss.fail(queue, bad, { message: 'fails once' });
        }
      };
      const done = work();
      return async () => {
        isOver = true;
        await done;
      };
    };
  };

  const measures = {
    retry: async () => {
      await renew();
      return withQueue(async (queue) => {
        await fill(queue, sizes.retried);
        const perSecond = await runs(
          sizes.retried,
          loop(queue, IN_HAND, ({ retryCount }) => retryCount === 0),
        );
        await completed(queue, sizes.retried);
        return perSecond;
      });
    },
    start: () => withQueue((queue) => starts(sizes, () => boss.send(queue, DATA), worker(queue))),
    due: () =>
      withQueue((queue) => {
        const enqueue = (count, at) => boss.insert(queue, many(count, { startAfter: new Date(at) }));
        return dueTogether(sizes, enqueue, worker(queue));
      }),
  };
  for (const callers of [1, 16, 64]) {
    measures[`single-${callers}`] = () =>
      withQueue((queue) => enqueues(sizes, { callers }, () => boss.send(queue, DATA), countOf(queue, 'created')));
  }
  for (const perCall of [100, 1000]) {
    const jobs = many(perCall);
    for (const callers of [1, 16]) {
      measures[`batch-${perCall}-${callers}`] = () =>
        withQueue((queue) =>
          enqueues(sizes, { callers, perCall }, () => boss.insert(queue, jobs), countOf(queue, 'created')),
        );
    }
  }
  for (const inHand of [1, 10, 100]) {
    measures[`pulled-${inHand}`] = () =>
      withQueue(async (queue) => {
        await fill(queue, sizes.pulled[inHand]);
        const perSecond = await runs(sizes.pulled[inHand], loop(queue, inHand));
        await completed(queue, sizes.pulled[inHand]);
        return perSecond;
      });
  }
  const close = async () => {
    await boss.stop({ graceful: false });
    await postgres.close();
  };
  const notes = [
    `pg-boss ${versionOf(packages, 'pg-boss')} on PostgreSQL ${found.version}, set as above. It retries immediately, because its delays are whole seconds, and on fresh tables. Pulled by \`fetch\` and \`complete\`; starts by \`work\` with \`notify\`.`,
  ];
  return { measures, close, notes };
}
