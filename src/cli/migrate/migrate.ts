import { setTimeout as pause } from 'node:timers/promises';
import { usageError } from '../failure';
import { openBullMQ } from './bullmq';
import type { ForeignQueues, FoundSchedule, Opening } from './found';
import { openGraphileWorker } from './graphile-worker';
import { openPgBoss } from './pg-boss';
import { Sender, type Sending } from './send';
import { openSidekiq } from './sidekiq';
import { Tally } from './tally';

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
