/**
 * One list of jobs, newest first, out of many queues. Each queue gives its own pages, already in order; they are merged
 * by creation time. The cursor holds how far each queue was read and the time of the first page's newest job, so that
 * jobs enqueued meanwhile do not shift the pages. A job keeps its place for life, so one that runs, fails or ends between
 * two pages is neither shown twice nor passed over.
 */
import type { Env } from '../config';
import { inParallel } from '../durable/parallel';
import { defined, isObject } from '../job/envelope/fields';
import { unwrap } from '../job/errors';
import type { Selection } from '../job/filter';
import type { JobView } from '../job/record';
import { queueObject } from '../rpc/stubs';
import { badCursor, decodeCursor, encodeCursor, type PagePlace, type Paging } from './paging';
import { queuesOf } from './queues';

/** Most jobs asked from a queue at once. */
const CHUNK = 50;
/** A page ends early when its jobs' bodies pass this many characters, to stay well inside an isolate's memory. */
const PAGE_CHARACTERS = 8_388_608;
/** Calls to queues for one page; a filter that fits hardly any job then gives a short page that says there is more. */
const MAX_CALLS = 100;

export interface JobPage extends PagePlace {
  jobs: JobView[];
  /** The total is a lower bound. */
  atLeast: boolean;
}

/** One queue being read. */
interface Source {
  queue: string;
  buffer: (JobView & { position: number })[];
  hasMore: boolean;
  /** Everything from here on was shown or does not match. */
  taken?: number;
  /** Everything from here on was looked at: shown, in the buffer, or no match. */
  read?: number;
}

interface Start {
  until?: number | undefined;
  total?: number;
  atLeast?: boolean;
  after: Map<string, number>;
}

/** Reads one page. @throws {ApiError} 400 for a cursor of another list */
export async function listJobs(env: Env, selection: Selection, paging: Paging): Promise<JobPage> {
  const { filter } = selection;
  const start = readCursor(paging.cursor);
  const sources: Source[] = (await queuesOf(env, selection)).map((queue) => {
    const taken = start.after.get(queue);
    return { queue, buffer: [], hasMore: true, ...defined({ taken, read: taken }) };
  });
  let calls = 0;
  let total = start.total ?? 0;
  let atLeast = start.atLeast ?? false;
  const fill = async (source: Source, counted: boolean): Promise<void> => {
    calls++;
    const limit = paging.offset > 0 ? 200 : Math.min(paging.limit, CHUNK);
    const [before, createdUntil] = [source.read, start.until];
    const request = defined({ limit, filter, before, createdUntil, total: counted ? undefined : false });
    const page = unwrap(await queueObject(env, source.queue).list(request));
    source.buffer = page.jobs;
    source.hasMore = page.has_more;
    if (page.next !== undefined) source.read = page.next;
    if (page.jobs.length === 0 && page.next !== undefined) source.taken = page.next;
    if (!counted) return;
    total += page.total;
    atLeast ||= page.total_is_exact === false;
  };
  await inParallel(sources, (source) => fill(source, start.total === undefined));

  const jobs: JobView[] = [];
  let until = start.until;
  let characters = 0;
  let skip = paging.offset;
  while (jobs.length < paging.limit && characters < PAGE_CHARACTERS) {
    const empty = sources.filter(({ buffer, hasMore }) => buffer.length === 0 && hasMore);
    if (empty.length > 0) {
      // Which job is the next one is known only when every queue has named its own.
      if (calls >= MAX_CALLS) break;
      await inParallel(empty, (source) => fill(source, false));
      continue;
    }
    const source = newest(sources);
    const job = source?.buffer.shift();
    if (source === undefined || job === undefined) break;
    source.taken = job.position;
    until ??= job.record.created_at;
    if (skip > 0) {
      skip--;
    } else {
      jobs.push({ record: job.record, layers: job.layers });
      characters += job.record.body.length;
    }
  }
  return {
    jobs,
    total,
    atLeast,
    hasMore: sources.some(({ buffer, hasMore }) => buffer.length > 0 || hasMore),
    nextCursor: writeCursor({ until, total, atLeast }, sources),
  };
}

/** How many jobs match. Reads every job where the filter looks inside. */
export async function countJobs(env: Env, selection: Selection): Promise<number> {
  const { filter } = selection;
  const counts = await inParallel(await queuesOf(env, selection), async (queue) => {
    let total = 0;
    let before: number | undefined;
    do {
      const counted = unwrap(await queueObject(env, queue).count(defined({ filter, before })));
      total += counted.count;
      before = counted.next;
    } while (before !== undefined);
    return total;
  });
  return counts.reduce((sum, count) => sum + count, 0);
}

/** The source whose next job is the newest of all. */
function newest(sources: readonly Source[]): Source | undefined {
  let best: Source | undefined;
  for (const source of sources) {
    const head = source.buffer[0];
    if (head && (!best?.buffer[0] || head.record.created_at > best.buffer[0].record.created_at)) best = source;
  }
  return best;
}

function writeCursor(rest: Omit<Start, 'after'>, sources: readonly Source[]): string {
  const after = sources.flatMap(({ queue, taken, read, buffer, hasMore }) => {
    // What was read without a match need not be read again.
    const position = buffer.length === 0 && hasMore ? (read ?? taken) : taken;
    if (position !== undefined) return [[queue, position] as const];
    // A queue in which nothing matched is done with.
    return hasMore || buffer.length > 0 ? [] : [[queue, 0] as const];
  });
  return encodeCursor({ ...rest, after: Object.fromEntries(after) });
}

function readCursor(cursor: string | undefined): Start {
  if (cursor === undefined) return { after: new Map() };
  const { until, total, atLeast, after } = decodeCursor(cursor);
  if ((until !== undefined && typeof until !== 'number') || typeof total !== 'number' || !isObject(after)) {
    throw badCursor();
  }
  const positions = new Map<string, number>();
  for (const [queue, position] of Object.entries(after)) {
    if (typeof position !== 'number') throw badCursor();
    positions.set(queue, position);
  }
  return { until, total, atLeast: atLeast === true, after: positions };
}
