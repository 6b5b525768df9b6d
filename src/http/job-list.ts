/**
 * One list of jobs, newest first, out of many queues. Each queue gives its own pages, already in order; they are merged
 * by creation time. The cursor holds how far each queue was read and the time of the first page's newest job, so that
 * jobs enqueued meanwhile do not shift the pages.
 */
import type { Env } from '../config';
import { isObject } from '../job/envelope/fields';
import { unwrap } from '../job/errors';
import type { JobState, JobView } from '../job/record';
import { inParallel, queueObject } from './objects';
import { badCursor, decodeCursor, encodeCursor, type Paging } from './pagination';

/** Most jobs asked from a queue at once. */
const CHUNK = 50;
/** A page ends early when its jobs' bodies pass this many characters, to stay well inside an isolate's memory. */
const PAGE_CHARACTERS = 8_388_608;

export interface JobFilter {
  queues: readonly string[];
  states?: JobState[];
  /** Exact type, or a prefix ending in `*`. */
  type?: string;
}

export interface JobPage {
  jobs: JobView[];
  total: number;
  hasMore: boolean;
  nextCursor: string;
}

/** One queue being read. */
interface Source {
  queue: string;
  buffer: (JobView & { position: number })[];
  hasMore: boolean;
  total: number;
  /** Position of the last job taken; jobs after it in the list come next. */
  taken?: number;
}

/** Reads one page. @throws {ApiError} 400 for a cursor of another list */
export async function listJobs(env: Env, filter: JobFilter, paging: Paging): Promise<JobPage> {
  const start = readCursor(paging.cursor);
  const sources: Source[] = filter.queues.map((queue) => {
    const taken = start.after.get(queue);
    return { queue, buffer: [], hasMore: true, total: 0, ...(taken !== undefined && { taken }) };
  });
  const fill = async (source: Source): Promise<void> => {
    const page = unwrap(
      await queueObject(env, source.queue).list(source.queue, {
        limit: paging.offset > 0 ? 200 : Math.min(paging.limit, CHUNK),
        ...(filter.states && { states: filter.states }),
        ...(filter.type !== undefined && { type: filter.type }),
        ...(source.taken !== undefined && { before: source.taken }),
        ...(start.until !== undefined && { createdUntil: start.until }),
      }),
    );
    source.buffer = page.jobs;
    source.hasMore = page.has_more;
    source.total = Math.max(source.total, page.total);
  };
  await inParallel(sources, fill);

  const jobs: JobView[] = [];
  let until = start.until;
  let characters = 0;
  let skip = paging.offset;
  while (jobs.length < paging.limit && characters < PAGE_CHARACTERS) {
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
    if (source.buffer.length === 0 && source.hasMore) await fill(source);
  }
  return {
    jobs,
    total: sources.reduce((sum, { total }) => sum + total, 0),
    hasMore: sources.some(({ buffer }) => buffer.length > 0),
    nextCursor: writeCursor(until, sources),
  };
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

function writeCursor(until: number | undefined, sources: readonly Source[]): string {
  const after = sources.flatMap(({ queue, taken }) => (taken === undefined ? [] : [[queue, taken] as const]));
  return encodeCursor({ until, after: Object.fromEntries(after) });
}

function readCursor(cursor: string | undefined): { until?: number; after: Map<string, number> } {
  if (cursor === undefined) return { after: new Map() };
  const { until, after } = decodeCursor(cursor);
  if (typeof until !== 'number' || !isObject(after)) throw badCursor();
  const positions = new Map<string, number>();
  for (const [queue, position] of Object.entries(after)) {
    if (typeof position !== 'number') throw badCursor();
    positions.set(queue, position);
  }
  return { until, after: positions };
}
