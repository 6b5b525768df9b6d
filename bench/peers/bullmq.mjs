/**
 * BullMQ on a Redis of its own. Neither belongs to this project: the packages are installed into a temporary folder for
 * the run, and Redis is taken from PATH.
 */
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { drive } from './child.mjs';
import { installPeers, versionOf } from './packages.mjs';
import { NO_REDIS, redisVersion, startRedis } from './redis.mjs';

const driver = fileURLToPath(new URL('bullmq-driver.mjs', import.meta.url));

/** Takes all measures; answers `{ skipped }` where there is no Redis or no registry. */
export async function measure({ quick }) {
  const redisIs = redisVersion();
  if (redisIs === undefined) return { skipped: NO_REDIS };
  const { directory, remove, problem } = installPeers();
  if (problem !== undefined) return { skipped: problem };
  let redis;
  try {
    const data = join(directory, 'redis');
    mkdirSync(data);
    redis = await startRedis(data);
    const result = await drive(driver, [directory, String(redis.port), String(quick)], 120_000);
    const versions = `BullMQ ${versionOf(directory, 'bullmq')}, ioredis ${versionOf(directory, 'ioredis')}, Redis ${redisIs}`;
    return {
      ...result,
      notes: [
        `${versions}, appendonly yes, appendfsync always; producer and worker (concurrency 100) in one Node process.`,
      ],
    };
  } finally {
    await redis?.close();
    remove();
  }
}
