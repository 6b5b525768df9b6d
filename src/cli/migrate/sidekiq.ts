/** Reads Sidekiq out of Redis: version 5 and newer, and the schedules of the gem sidekiq-cron. */
import { type Finding, type ForeignQueues, left, type Opening } from './found';
import { literally, Redis } from './redis';
import { jobOf, REMARKS, scheduleOf } from './sidekiq-job';

const PAGE = 200;

export async function openSidekiq({ url, within }: Opening): Promise<ForeignQueues> {
  const redis = await Redis.open(url);
  const key = (name: string) => (within === '' ? name : `${within}:${name}`);

  /** Those with jobs; and any that a delayed job names, which need not be among them yet. */
  async function queues(): Promise<string[]> {
    const found = new Set(await redis.texts('SMEMBERS', key('queues')));
    for await (const { queue } of delayed()) found.add(queue);
    return [...found].sort();
  }

  async function* delayed() {
    for (const set of ['schedule', 'retry']) {
      for await (const entries of redis.sorted(key(set), PAGE)) {
        for (const [json, dueAt] of entries) {
          const found = jobOf(json, undefined, dueAt);
          if (found.kind !== 'left') yield found;
        }
      }
    }
  }

  async function* schedules() {
    const seen = new Set<string>();
    for await (const set of redis.keys(`${literally(key('cron_jobs'))}*`)) {
      for (const name of await redis.texts('SMEMBERS', set)) seen.add(name);
    }
    for (const name of seen) {
      const found = scheduleOf(name, await redis.hash(key(name)));
      if (found.kind !== 'left') yield found;
    }
  }

  async function* read(wanted: readonly string[] | undefined): AsyncGenerator<Finding> {
    const isWanted = (queue: string) => wanted === undefined || wanted.includes(queue);
    for (const queue of (await redis.texts('SMEMBERS', key('queues'))).sort()) {
      if (!isWanted(queue)) continue;
      for await (const some of redis.fromRight(key(`queue:${queue}`), PAGE)) {
        for (const json of some) yield jobOf(json, queue);
      }
    }
    for await (const found of delayed()) if (isWanted(found.queue)) yield found;
    for await (const found of schedules()) if (isWanted(found.queue)) yield found;
    yield* left('jobs that were taken', redis.missed);
    yield* left('paused queues', (await redis.texts('SMEMBERS', key('paused'))).filter(isWanted).length);
    yield* left('jobs that run', await running());
    yield* left('dead jobs', await redis.number('ZCARD', key('dead')));
  }

  /** What runs is noted under the name of its process, whose last word has changed. */
  async function running(): Promise<number> {
    let count = 0;
    for (const process of await redis.texts('SMEMBERS', key('processes'))) {
      for (const word of ['work', 'workers']) count += Object.keys(await redis.hash(key(`${process}:${word}`))).length;
    }
    return count;
  }

  return { remarks: REMARKS, queues, read, close: async () => redis.close() };
}
