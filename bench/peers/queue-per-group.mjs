/**
 * BullMQ has no groups in its open edition. Its users give each group a queue of its own, whose worker runs one job at a
 * time. What `npm run bench -- --only groups` measures here, on Redis, which flushes each write to disk.
 *
 *     node bench/peers/queue-per-group.mjs [--quick]
 *
 * Each worker holds two connections to Redis, so ten thousand groups are left out.
 */
import { mkdirSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { rate } from '../stats.mjs';
import { installPeers, versionOf } from './packages.mjs';
import { NO_REDIS, redisVersion, startRedis } from './redis.mjs';

const part = process.argv.includes('--quick') ? 10 : 1;
const version = redisVersion();
const peers = version === undefined ? { problem: NO_REDIS } : installPeers();
if (peers.problem) {
  console.error(`Left out: ${peers.problem}`);
  process.exit(0);
}
const require = createRequire(join(peers.directory, 'package.json'));
const { Queue, Worker } = require('bullmq');
const data = join(peers.directory, 'redis');
mkdirSync(data);
const redis = await startRedis(data);
const connection = { host: '127.0.0.1', port: redis.port, maxRetriesPerRequest: null };
const rows = [];
try {
  for (const groups of [1, 100]) {
    const jobs = groups === 1 ? 2_000 / part : 20_000 / part;
    const names = Array.from({ length: groups }, (_, at) => `group-${groups}-${at}`);
    const bulk = Array.from({ length: jobs / groups }, () => ({ name: 'noop', data: {} }));
    for (const name of names) {
      const queue = new Queue(name, { connection });
      await queue.addBulk(bulk);
      await queue.close();
    }
    let left = jobs;
    const { promise: all, resolve: done } = Promise.withResolvers();
    const noop = async () => {
      if (--left === 0) done();
    };
    const started = performance.now();
    const workers = names.map((name) => new Worker(name, noop, { connection, concurrency: 1 }));
    await all;
    rows.push({ groups, jobs, jobs_s: rate(jobs, performance.now() - started) });
    await Promise.all(workers.map((worker) => worker.close(true)));
  }
  console.log(`BullMQ ${versionOf(peers.directory, 'bullmq')}, Redis ${version}`);
  console.table(rows);
} finally {
  await redis.close();
  peers.remove();
}
