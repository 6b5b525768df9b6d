/**
 * One list of jobs from many queues, newest first: their pages merged by creation time. The cursor holds how far each
 * queue was read, and the newest job's time on the first page, so neither later jobs nor state changes shift it.
 *
 * Beyond a number of queues, the list takes them in groups by name, so neither cursor nor cost grows with the queues.
 */
import type { Env } from '../config';
import { inParallel } from '../durable/parallel';
import { defined } from '../job/envelope/fields';
import { unwrap } from '../job/errors';
import { looksInside, type Selection } from '../job/filter';
import { routeCandidate } from '../job/ids';
import type { JobView } from '../job/record';
import { bytesOfView, MAX_PAGE_BYTES } from '../job/size';
import { queueObject } from '../rpc/stubs';
import {
  badCursor,
  decodeCursor,
  encodeCursor,
  isNumbered,
  MAX_WHOLE_PAGE,
  type PagePlace,
  type Paging,
  pageTooLarge,
} from './paging';
import { nextQueues, queuesOf } from './queues';

/** Most jobs asked from a queue at once, and most places while the reader passes over jobs. */
const CHUNK = 50;
const PLACES = 2_000;
/** Bytes that all queues give at once: they are in memory together. Each gives one job at least. */
const GIVEN_AT_ONCE = 4 * MAX_PAGE_BYTES;
/** Bounds of one page: calls to queues, jobs looked at in vain in all queues, and the minimum of these per queue. */
const MAX_CALLS = 100;
const MAX_VAIN = 20_000;
const LEAST_OF_QUEUE = 500;
/** Queues asked by one page that finds no job, before it ends. */
const QUEUES_OF_PAGE = 400;

export interface JobPage extends PagePlace {
  jobs: JobView[];
  /** The total is a lower bound. */
  atLeast: boolean;
  /** Jobs looked at so far, including the pages before, if the filter looks inside them. */
  searched?: number;
}

/** A job of a list, or only its place if it is passed over. */
interface ListedJob {
  position: number;
  created_at: number;
  view?: JobView;
}

interface Source {
  queue: string;
  /** Stands for the queue in a cursor. */
  key: string;
  buffer: ListedJob[];
  hasMore: boolean;
  /** Everything from here on was shown or does not match. */
  taken?: number;
  /** Everything from here on was looked at: shown, in the buffer, or no match. */
  read?: number;
}

interface Start {
  /** The group has queues after this name, and up to that one. Absent: from the first, to the last queue. */
  from?: string | undefined;
  to?: string | undefined;
  until?: number | undefined;
  total?: number;
  atLeast?: boolean;
  /** Jobs looked at so far. */
  searched?: number;
  skip: number;
  after: Map<string, number>;
}

/** Reads one page. @throws {ApiError} 400 for a cursor of another list; 422 for a numbered page that is too large */
export async function listJobs(env: Env, selection: Selection, paging: Paging): Promise<JobPage> {
  let start = readCursor(paging.cursor);
  start.skip += paging.offset;
  for (let asked = 0; ; ) {
    const { names, last } = await groupAt(env, selection.queues, start);
    start = { ...start, to: last, atLeast: start.atLeast || last !== undefined };
    const reader = new Reader(env, selection, paging, start, names);
    await reader.begin();
    const page = await reader.page();
    asked += names.length;
    if (page.hasMore || last === undefined) return page;
    const { total, searched = 0 } = page;
    start = { from: last, total, atLeast: true, searched, skip: reader.skip, after: new Map() };
    if (page.jobs.length > 0 || asked >= QUEUES_OF_PAGE) {
      return { ...page, hasMore: true, nextCursor: writeCursor(start, []) };
    }
  }
}

/** The queues that are merged. @returns `last`: the name of the last of them, when others come after it */
async function groupAt(env: Env, named: readonly string[] | undefined, { from, to }: Start) {
  const { names, more } = await nextQueues(env, from, named);
  const group = to === undefined ? names : names.filter((name) => name <= to);
  return { names: group, last: more || group.length < names.length ? (group.at(-1) ?? to) : undefined };
}

/** The name of each queue in a cursor: short, and for most the hash of its name. */
function keysOf(queues: readonly string[]): string[] {
  const hashes = queues.map((queue) => routeCandidate(queue, 0).toString(36));
  const times = Map.groupBy(hashes, (hash) => hash);
  return hashes.map((hash, index) => (times.get(hash)?.length === 1 ? hash : `=${queues[index]}`));
}

class Reader {
  private readonly sources: Source[];
  private calls = 0;
  private searched: number;
  /** Spent on jobs that do not match. */
  private vain = 0;
  private readonly most: number;
  private total: number;
  private atLeast: boolean;
  private until: number | undefined;
  /** Matches that are still passed over. */
  skip: number;

  constructor(
    private readonly env: Env,
    private readonly selection: Selection,
    private readonly paging: Paging,
    private readonly start: Start,
    queues: readonly string[],
  ) {
    const keys = keysOf(queues);
    this.sources = queues.map((queue, index) => {
      const key = keys[index] as string;
      const taken = start.after.get(key);
      return { queue, key, buffer: [], hasMore: true, ...defined({ taken, read: taken }) };
    });
    this.total = start.total ?? 0;
    this.atLeast = start.atLeast ?? false;
    this.until = start.until;
    this.most = Math.min(paging.most ?? MAX_VAIN, MAX_VAIN);
    this.searched = start.searched ?? 0;
    this.skip = start.skip;
  }

  /** Each queue names its first jobs, and how many match. */
  async begin(): Promise<void> {
    const counted = this.start.total === undefined;
    await inParallel(this.sources, (source) => this.fill(source, counted));
    // They were asked for their counts; places suffice for passing over jobs.
    if (this.skip > 0 && counted) for (const source of this.sources) forget(source, this.start.after.get(source.key));
  }

  async page(): Promise<JobPage> {
    const { paging, sources } = this;
    const isWhole = isNumbered(paging);
    const jobs: JobView[] = [];
    let bytes = 0;
    while (jobs.length < paging.limit) {
      const empty = sources.filter(({ buffer, hasMore }) => buffer.length === 0 && hasMore);
      if (empty.length > 0) {
        // Which job is the next one is known only when every queue has named its own.
        if (this.calls >= MAX_CALLS || this.vain >= this.most) break;
        await inParallel(empty, (source) => this.fill(source, false));
        continue;
      }
      const source = newest(sources);
      const head = source?.buffer[0];
      if (source === undefined || head === undefined) break;
      if (head.view) {
        bytes += bytesOfView(head.view);
        if (isWhole && bytes > MAX_WHOLE_PAGE) throw pageTooLarge(paging.limit, ', or continue with cursor');
        if (!isWhole && jobs.length > 0 && bytes > MAX_PAGE_BYTES) break;
        jobs.push(head.view);
      }
      this.until ??= head.created_at;
      source.taken = head.position;
      source.buffer.shift();
      if (!head.view && --this.skip === 0) for (const each of sources) forget(each, each.taken);
    }
    const { until, total, atLeast, skip } = this;
    const searched = looksInside(this.selection.filter) ? { searched: this.searched } : {};
    const { from, to } = this.start;
    return {
      jobs,
      total,
      atLeast,
      ...searched,
      hasMore: sources.some(({ buffer, hasMore }) => buffer.length > 0 || hasMore),
      nextCursor: writeCursor({ from, to, until, total, atLeast, skip, ...searched }, sources),
    };
  }

  private async fill(source: Source, counted: boolean): Promise<void> {
    this.calls++;
    if (this.skip > 0 && !counted) await this.fillPlaces(source);
    else await this.fillJobs(source, counted);
    if (source.buffer.length === 0 && source.read !== undefined) source.taken = source.read;
  }

  private async fillPlaces(source: Source): Promise<void> {
    const { filter } = this.selection;
    const request = defined({
      filter,
      before: source.read,
      createdUntil: this.until,
      limit: Math.min(this.skip, PLACES),
    });
    const { places, next } = unwrap(await queueObject(this.env, source.queue).listPlaces(request));
    source.buffer = places;
    source.hasMore = next !== undefined;
    if (next !== undefined) source.read = next;
  }

  private async fillJobs(source: Source, counted: boolean): Promise<void> {
    const { filter } = this.selection;
    const request = defined({
      filter,
      before: source.read,
      createdUntil: this.until,
      // A count alone needs no job, but one is the least that can be asked for.
      limit: this.skip > 0 ? 1 : Math.min(this.paging.limit, CHUNK),
      max_bytes: Math.floor(GIVEN_AT_ONCE / this.sources.length),
      budget: Math.max(LEAST_OF_QUEUE, Math.floor(this.most / this.sources.length)),
      total: counted ? undefined : false,
    });
    const page = unwrap(await queueObject(this.env, source.queue).list(request));
    source.buffer = page.jobs.map(({ position, ...view }) => ({ position, created_at: view.record.created_at, view }));
    this.searched += page.looked;
    this.vain += page.spent - page.jobs.length;
    source.hasMore = page.has_more;
    if (page.next !== undefined) source.read = page.next;
    if (!counted) return;
    this.total += page.total;
    this.atLeast ||= page.total_is_exact === false;
  }
}

/** The queue is read from `taken` on. */
function forget(source: Source, taken: number | undefined): void {
  if (source.buffer.length === 0) return;
  source.buffer = [];
  source.hasMore = true;
  if (taken === undefined) delete source.read;
  else source.read = taken;
}

/** How many jobs match. Reads every job if the filter looks inside. */
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
    if (head && (!best?.buffer[0] || head.created_at > best.buffer[0].created_at)) best = source;
  }
  return best;
}

function writeCursor(rest: Omit<Start, 'after'>, sources: readonly Source[]): string {
  const after = sources.flatMap(({ key, taken, read, buffer, hasMore }) => {
    // What was read without a match need not be read again.
    const position = buffer.length === 0 && hasMore ? (read ?? taken) : taken;
    if (position !== undefined) return [`${key} ${position.toString(36)}`];
    // A queue without further matches is finished.
    return hasMore || buffer.length > 0 ? [] : [`${key} 0`];
  });
  return encodeCursor({ ...defined(rest), after: after.join(',') });
}

function readCursor(cursor: string | undefined): Start {
  if (cursor === undefined) return { skip: 0, after: new Map() };
  const { from, to, until, total, atLeast, skip = 0, searched = 0, after } = decodeCursor(cursor);
  if ((until !== undefined && typeof until !== 'number') || typeof total !== 'number' || typeof after !== 'string') {
    throw badCursor();
  }
  if ((from !== undefined && typeof from !== 'string') || (to !== undefined && typeof to !== 'string'))
    throw badCursor();
  for (const number of [skip, searched]) if (!Number.isSafeInteger(number) || (number as number) < 0) throw badCursor();
  const positions = new Map<string, number>();
  for (const entry of after === '' ? [] : after.split(',')) {
    const [key = '', digits = ''] = entry.split(' ');
    if (!/^[0-9a-z]{1,9}$/.test(digits)) throw badCursor();
    positions.set(key, Number.parseInt(digits, 36));
  }
  return {
    ...{ from, to, until, total, after: positions },
    ...{ atLeast: atLeast === true, skip: skip as number, searched: searched as number },
  };
}
