/** BullMQ on a Redis that flushes every write to disk. Completed jobs are removed, as its documentation advises for production. */
import { createRequire } from 'node:module';
import { discard, scratch } from '../../load/scratch.mjs';
import { versionOf } from '../../peers/packages.mjs';
import { NO_REDIS, redisVersion, startRedis } from '../../peers/redis.mjs';
import { IN_HAND, PAYLOAD, WORK_MS } from '../load.mjs';
import { bytesBelow } from '../processes.mjs';

const KEPT = { removeOnComplete: { count: 1_000 } };

export async function open({ packages }) {
  const version = redisVersion();
  if (version === undefined) return { skipped: NO_REDIS };
  const require = createRequire(`${packages}/`);
  const { Queue, Worker } = require('bullmq');
  const { Redis } = require('ioredis');
  const directory = scratch('tocsin-redis-');
  const redis = await startRedis(directory);
  const connect = () => new Redis({ host: '127.0.0.1', port: redis.port, maxRetriesPerRequest: null });
  const connection = connect();
  const queue = new Queue('steady', { connection });
  await queue.waitUntilReady();
  return {
    notes: [`BullMQ ${versionOf(packages, 'bullmq')} on Redis ${version}, \`appendonly yes\`, \`appendfsync always\`.`],
    enqueue: (stamps) => queue.addBulk(stamps.map((at) => ({ name: 'work', data: { at, ...PAYLOAD }, opts: KEPT }))),
    work: async (onStart) => {
      const own = connect();
      const run = async ({ data }) => {
        onStart(data.at);
        await new Promise((done) => setTimeout(done, WORK_MS));
      };
      const worker = new Worker('steady', run, { connection: own, concurrency: IN_HAND });
      await worker.waitUntilReady();
      return async () => {
        await worker.close();
        own.disconnect();
      };
    },
    pids: () => [redis.pid],
    depth: () => queue.getWaitingCount(),
    bytes: () => bytesBelow(directory),
    close: async () => {
      await queue.close();
      connection.disconnect();
      await redis.close();
      discard(directory);
    },
  };
}
