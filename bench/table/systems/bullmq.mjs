/** BullMQ on a Redis that flushes every write to disk. */
import { createRequire } from 'node:module';
import { discard, scratch } from '../../load/scratch.mjs';
import { versionOf } from '../../peers/packages.mjs';
import { NO_REDIS, redisVersion, startRedis } from '../../peers/redis.mjs';
import { check, DATA, dueTogether, enqueues, IN_HAND, runs, starts } from '../steps.mjs';

export async function open({ sizes, packages }) {
  const redisIs = redisVersion();
  if (redisIs === undefined) return { skipped: NO_REDIS };
  const require = createRequire(`${packages}/`);
  const { Queue, Worker } = require('bullmq');
  const { Redis } = require('ioredis');
  const directory = scratch('tocsin-redis-');
  const redis = await startRedis(directory);
  const connect = () => new Redis({ host: '127.0.0.1', port: redis.port, maxRetriesPerRequest: null });
  const producer = connect();

  /** Uses a queue, then forgets everything. */
  const withQueue = async (use) => {
    const queue = new Queue('bench', { connection: producer });
    await queue.waitUntilReady();
    const value = await use(queue);
    await queue.close();
    await producer.flushall();
    return value;
  };
  const worker =
    (concurrency = IN_HAND, handler = () => undefined) =>
    async (onStart) => {
      const connection = connect();
      const run = async (job) => {
        handler(job);
        onStart();
      };
      const working = new Worker('bench', run, { connection, concurrency });
      await working.waitUntilReady();
      return async () => {
        await working.close();
        connection.disconnect();
      };
    };
  const many = (count, opts) => Array.from({ length: count }, () => ({ name: 'noop', data: DATA, opts }));
  const fill = async (queue, count, opts) => {
    for (let done = 0; done < count; done += 1000) await queue.addBulk(many(Math.min(1000, count - done), opts));
  };
  const completed = async (queue, count) => check('jobs completed', count, await queue.getCompletedCount());

  const measures = {
    retry: () =>
      withQueue(async (queue) => {
        await fill(queue, sizes.retried, { attempts: 3, backoff: { type: 'fixed', delay: 1 } });
        const handler = ({ attemptsMade }) => {
          if (attemptsMade === 0) throw new Error('fails once');
        };
        const perSecond = await runs(sizes.retried, worker(IN_HAND, handler));
        await completed(queue, sizes.retried);
        return perSecond;
      }),
    start: () => withQueue((queue) => starts(sizes, () => queue.add('noop', DATA), worker())),
    due: () =>
      withQueue((queue) =>
        dueTogether(sizes, (count, at) => queue.addBulk(many(count, { delay: at - Date.now() })), worker()),
      ),
  };
  for (const callers of [1, 16, 64]) {
    measures[`single-${callers}`] = () =>
      withQueue((queue) =>
        enqueues(
          sizes,
          { callers },
          () => queue.add('noop', DATA),
          () => queue.getWaitingCount(),
        ),
      );
  }
  for (const perCall of [100, 1000]) {
    const jobs = many(perCall);
    for (const callers of [1, 16]) {
      measures[`batch-${perCall}-${callers}`] = () =>
        withQueue((queue) =>
          enqueues(
            sizes,
            { callers, perCall },
            () => queue.addBulk(jobs),
            () => queue.getWaitingCount(),
          ),
        );
    }
  }
  for (const inHand of [1, 10, 100]) {
    measures[`pulled-${inHand}`] = () =>
      withQueue(async (queue) => {
        await fill(queue, sizes.pulled[inHand]);
        const perSecond = await runs(sizes.pulled[inHand], worker(inHand));
        await completed(queue, sizes.pulled[inHand]);
        return perSecond;
      });
  }
  const versions = `BullMQ ${versionOf(packages, 'bullmq')} on Redis ${redisIs}`;
  const close = async () => {
    producer.disconnect();
    await redis.close();
    discard(directory);
  };
  return { measures, close, notes: [`${versions}, \`appendonly yes\`, \`appendfsync always\`.`] };
}
