import { setTimeout as pause } from 'node:timers/promises';
import { usageError } from '../failure';
import { openBullMQ } from './bullmq';
import { type Finding, type ForeignQueues, type FoundSchedule, left, type Opening } from './found';
import { openGraphileWorker } from './graphile-worker';
import { openPgBoss } from './pg-boss';
import { literally, Redis } from './redis';
import { Sender, type Sending } from './send';
import { jobOf, REMARKS, scheduleOf } from './sidekiq-job';
import { Tally } from './tally';

const PAGE = 200;

async function openSidekiq({ url, within }: Opening): Promise<ForeignQueues> {
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

interface System {
  open(opening: Opening): Promise<ForeignQueues>;
  /** The usual one. */
  within: string;
  option: 'prefix' | 'schema';
  /** Its schedules are in a file. */
  hasCrontab?: true;
}

export const SYSTEMS = {
  bullmq: { open: openBullMQ, within: 'bull', option: 'prefix' },
  'graphile-worker': { open: openGraphileWorker, within: 'graphile_worker', option: 'schema', hasCrontab: true },
  'pg-boss': { open: openPgBoss, within: 'pgboss', option: 'schema' },
  sidekiq: { open: openSidekiq, within: '', option: 'prefix' },
} as const satisfies Record<string, System>;

export type SystemName = keyof typeof SYSTEMS;

export const SYSTEM_NAMES = Object.keys(SYSTEMS) as SystemName[];

export interface Migration extends Pick<Sending, 'tocsin' | 'renamed' | 'now'> {
  system: SystemName;
  url: string;
  within: string | undefined;
  crontab: string | undefined;
  /** Queues there; undefined: all. */
  queues: readonly string[] | undefined;
  /** Called after each thing that was read. */
  progress: (tally: Tally) => void;
}

/** Moves it. @throws {CliError} where the source cannot be read @throws {TocsinError} where nothing can be sent */
export async function migrate(migration: Migration): Promise<Tally> {
  const { system, url, crontab, queues, renamed, tocsin, now, progress } = migration;
  const { open, within: usual } = SYSTEMS[system];
  const within = migration.within ?? usual;
  const source = await open({ url, within, crontab, now: now() });
  const tally = new Tally(source.remarks);
  try {
    if (queues) await checkNames(source, queues);
    const sender = new Sender({ tocsin, system, within, renamed, tally, now, pause });
    const schedules: FoundSchedule[] = [];
    for await (const found of source.read(queues)) {
      if (found.kind === 'job') await sender.job(found);
      else if (found.kind === 'schedule') schedules.push(found);
      else if (found.kind === 'left') tally.left(found);
      else tally.refuse(found, 'unreadable', found.message);
      progress(tally);
    }
    await sender.flush();
    // The last ones: none fires before the jobs are there, or after a run that broke off.
    for (const found of schedules) await sender.schedule(found);
    return tally;
  } finally {
    await source.close();
  }
}

/** A name that was mistyped must not look like an empty queue. */
async function checkNames(source: ForeignQueues, queues: readonly string[]): Promise<void> {
  const known = await source.queues();
  const unknown = queues.find((queue) => !known.includes(queue));
  if (unknown === undefined) return;
  const names = known.length > 0 ? `There are: ${known.slice(0, 20).join(', ')}.` : 'There are no queues at all.';
  throw usageError(`There is no queue ${unknown} to migrate.`, names);
}
