/**
 * BullMQ on a Redis of its own. Neither belongs to this project: the packages are installed into a temporary folder for
 * the run, and Redis is taken from PATH.
 */
import { spawnSync } from 'node:child_process';
import { mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { discard, scratch } from '../load/scratch.mjs';
import { drive } from './child.mjs';
import { redisVersion, startRedis } from './redis.mjs';

const driver = fileURLToPath(new URL('bullmq-driver.mjs', import.meta.url));

/** Takes all measures; answers `{ skipped }` where there is no Redis or no registry. */
export async function measure({ quick }) {
  const redisIs = redisVersion();
  if (redisIs === undefined)
    return { skipped: 'there is no redis-server on PATH (Debian: apt-get install redis-server).' };
  const directory = scratch('tocsin-peers-');
  let redis;
  try {
    const problem = install(directory);
    if (problem !== undefined) return { skipped: `npm could not install bullmq and ioredis: ${problem}` };
    const data = join(directory, 'redis');
    mkdirSync(data);
    redis = await startRedis(data);
    const result = await drive(driver, [directory, String(redis.port), String(quick)], 120_000);
    const version = (name) =>
      JSON.parse(readFileSync(join(directory, 'node_modules', name, 'package.json'), 'utf8')).version;
    const versions = `BullMQ ${version('bullmq')}, ioredis ${version('ioredis')}, Redis ${redisIs}`;
    return {
      ...result,
      notes: [
        `${versions}, appendonly yes, appendfsync always; producer and worker (concurrency 100) in one Node process.`,
      ],
    };
  } finally {
    await redis?.close();
    discard(directory);
  }
}

/** Answers what went wrong, if anything. */
function install(directory) {
  const args = ['install', '--no-save', '--no-audit', '--no-fund', '--prefix', directory, 'bullmq', 'ioredis'];
  const { status, stderr, error } = spawnSync('npm', args, { encoding: 'utf8', timeout: 90_000 });
  return status === 0 ? undefined : (error?.message ?? stderr.trim().split('\n').at(-1));
}
