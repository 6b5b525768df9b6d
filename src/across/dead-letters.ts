/** The dead letters of many queues as one list, newest first, and what can be counted about them. */
import type { Env } from '../config';
import { inParallel } from '../durable/parallel';
import { defined } from '../job/envelope/fields';
import { unwrap } from '../job/errors';
import type { JobView } from '../job/record';
import { DEFAULTS, type QueueConfig } from '../job/settings';
import type { DeadLetterRequest } from '../rpc/queue';
import { directoryObject, queueObject } from '../rpc/stubs';
import { badCursor, decodeCursor, encodeCursor, type PagePlace, type Paging } from './paging';
import { knownQueues, queuesOf } from './queues';

/** Most dead letters a queue keeps, so no offset needs to reach further. */
const MAX_REACH = 10_000;
/** Dead letters read at once while counting. */
const COUNT_CHUNK = 200;

/** Which dead letters. */
export interface DeadLetterFilter extends Omit<DeadLetterRequest, 'limit'> {
  /** Absent: all queues. */
  queues?: readonly string[];
}

export interface DeadLetterPage extends PagePlace {
  jobs: JobView[];
}

/** Where the next page begins: at the newest jobs discarded before `until`, of which the first `seen` were shown. */
interface Position {
  until?: number;
  seen: number;
  total?: number;
}

/** Reads one page. @throws {ApiError} 400 for a cursor of another list */
export async function listDeadLetters(env: Env, filter: DeadLetterFilter, paging: Paging): Promise<DeadLetterPage> {
  const start = readCursor(paging.cursor);
  const skip = Math.min(start.seen + paging.offset, MAX_REACH);
  const until = earlier(filter.until, start.until);
  const found = await newestOf(env, { ...filter, ...defined({ until }) }, skip + paging.limit + 1);
  const jobs = found.jobs.slice(skip, skip + paging.limit);
  const total = start.total ?? found.total;
  const last = jobs.at(-1);
  if (last === undefined) return { jobs, total, hasMore: false, nextCursor: null };
  const lastTime = discardedAt(last);
  const seen = found.jobs.slice(0, skip + jobs.length).filter((job) => discardedAt(job) === lastTime).length;
  return {
    jobs,
    total,
    hasMore: found.jobs.length > skip + jobs.length,
    // Jobs discarded in the same millisecond may lie on both pages, so this one's last millisecond is read again.
    nextCursor: encodeCursor({ until: lastTime + 1, seen, total }),
  };
}

/** How long (ms), and how many, dead letters are kept. */
export interface DeadLetterRetention {
  max_age: number;
  max_count: number;
}

/**
 * Counts by queue, type and error type, when the first and the last were discarded (epoch ms), and how long they are kept: in all
 * queues, and in those that say otherwise. Reads every dead letter, in chunks.
 */
export async function deadLetterStats(env: Env) {
  const queues = await knownQueues(env);
  const byQueue = new Map<string, number>();
  const byType = new Map<string, number>();
  const byErrorType = new Map<string, number>();
  let oldest: number | undefined;
  let newest: number | undefined;
  let total = 0;
  await inParallel(queues, async (queue) => {
    let paging: Paging = { limit: COUNT_CHUNK, offset: 0 };
    for (;;) {
      const page = await listDeadLetters(env, { queues: [queue] }, paging);
      for (const job of page.jobs) {
        const time = discardedAt(job);
        total++;
        count(byQueue, queue);
        count(byType, job.record.type);
        count(byErrorType, job.record.history.error?.type ?? job.record.history.reason ?? 'unknown');
        oldest = Math.min(oldest ?? time, time);
        newest = Math.max(newest ?? time, time);
      }
      if (!page.hasMore || page.nextCursor === null) break;
      paging = { ...paging, cursor: page.nextCursor };
    }
  });
  return { total, byQueue, byType, byErrorType, oldest, newest, ...(await retentions(env, queues)) };
}

async function retentions(env: Env, queues: readonly string[]) {
  const retention = retentionOf((await directoryObject(env).queueDefaults())?.config ?? {});
  const retentionByQueue = new Map<string, DeadLetterRetention>();
  await inParallel(queues, async (queue) => {
    const own = retentionOf(unwrap(await queueObject(env, queue).settings()).effective);
    if (own.max_age !== retention.max_age || own.max_count !== retention.max_count) retentionByQueue.set(queue, own);
  });
  return { retention, retentionByQueue };
}

function retentionOf({ dead_letter = {} }: QueueConfig): DeadLetterRetention {
  const { maxAge, maxCount } = DEFAULTS.deadLetter;
  return { max_age: dead_letter.max_age ?? maxAge, max_count: dead_letter.max_count ?? maxCount };
}

/** The `limit` newest over all queues, and how many match in all. */
async function newestOf(env: Env, filter: DeadLetterFilter, limit: number) {
  const { queues: _, ...conditions } = filter;
  const answers = await inParallel(await queuesOf(env, filter), async (queue) =>
    unwrap(await queueObject(env, queue).deadLetters({ ...conditions, limit })),
  );
  const jobs = answers.flatMap((answer) => answer.jobs);
  // A stable sort: jobs of the same millisecond keep the order their queue gives them, on every page.
  jobs.sort((a, b) => discardedAt(b) - discardedAt(a));
  return { jobs: jobs.slice(0, limit), total: answers.reduce((sum, { total }) => sum + total, 0) };
}

function discardedAt({ record }: JobView): number {
  return record.history.discarded_at ?? record.history.completed_at ?? record.created_at;
}

function earlier(a: number | undefined, b: number | undefined): number | undefined {
  return a === undefined || b === undefined ? (a ?? b) : Math.min(a, b);
}

function count(counts: Map<string, number>, name: string): void {
  counts.set(name, (counts.get(name) ?? 0) + 1);
}

function readCursor(cursor: string | undefined): Position {
  if (cursor === undefined) return { seen: 0 };
  const { until, seen, total } = decodeCursor(cursor);
  if (typeof until !== 'number' || typeof total !== 'number') throw badCursor();
  if (!Number.isInteger(seen) || (seen as number) < 0) throw badCursor();
  return { until, seen: seen as number, total };
}
