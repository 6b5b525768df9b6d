/** The dead letters of many queues as one list, newest first, and their statistics. */
import type { Env } from '../config';
import { inParallel } from '../durable/parallel';
import { defined } from '../job/envelope/fields';
import { unwrap } from '../job/errors';
import type { JobView } from '../job/record';
import { bytesOfView, MAX_PAGE_BYTES } from '../job/size';
import type { DeadLetterPlace } from '../rpc/failures';
import type { DeadLetterRequest } from '../rpc/queue';
import { directoryObject, queueObject } from '../rpc/stubs';
import { keptIn, type QueueConfig } from '../settings';
import { badCursor, decodeCursor, encodeCursor, type PagePlace, type Paging } from './paging';
import { queuesOf } from './queues';

/** Queues asked at a time: each may answer with as many places as the depth of the page. */
const WIDTH = 5;
/** Jobs fetched at a time, so that large ones are never all in memory. */
const FETCHED = 25;
/** Names of types, and of error types, that are counted over all queues, and those that are given. */
const MAX_COUNTED = 10_000;
const MAX_NAMES = 1000;

export interface DeadLetterFilter extends Omit<DeadLetterRequest, 'before' | 'limit' | 'total'> {
  /** Absent: all queues. */
  queues?: readonly string[];
}

export interface DeadLetterPage extends PagePlace {
  jobs: JobView[];
  /** The total is a lower bound. */
  atLeast: boolean;
}

interface Placed extends DeadLetterPlace {
  queue: string;
}

interface Start {
  after?: Placed;
  /** Matches after this place that the page still passes over. */
  skip: number;
  total?: number;
  atLeast: boolean;
}

/** The list's order: newest first; equal moments by the name of the queue, and there by key, highest first. */
function compare(a: Placed, b: Placed): number {
  if (a.at !== b.at) return b.at - a.at;
  if (a.queue !== b.queue) return a.queue < b.queue ? -1 : 1;
  return b.key - a.key;
}

/** Reads one page. @throws {ApiError} 400 for a cursor of another list */
export async function listDeadLetters(env: Env, filter: DeadLetterFilter, paging: Paging): Promise<DeadLetterPage> {
  const start = readCursor(paging.cursor);
  const skip = start.skip + paging.offset;
  const found = await newestOf(env, filter, start, skip + paging.limit + 1);
  const { total, atLeast } = found;
  const wanted = found.places.slice(skip, skip + paging.limit);
  const { jobs, last } = await fetchJobs(env, wanted);
  const page = { jobs, total, atLeast };
  const more = (after: Placed, skipped = 0): DeadLetterPage => {
    const nextCursor = encodeCursor({ ...after, skip: skipped, total, atLeast });
    return { ...page, hasMore: true, nextCursor };
  };
  if (last !== undefined && last !== wanted.at(-1)) return more(last);
  if (last !== undefined && found.places.length > skip + wanted.length) return more(last);
  if (found.horizon) return more(found.horizon, Math.max(0, skip - found.places.length));
  return { ...page, hasMore: false, nextCursor: null };
}

/** The newest places of all queues, at most `limit`, and the total. @returns `horizon`: nothing beyond it is known */
async function newestOf(env: Env, filter: DeadLetterFilter, start: Start, limit: number) {
  const { queues: _, ...conditions } = filter;
  let { total = 0, atLeast } = start;
  let places: Placed[] = [];
  let horizon: Placed | undefined;
  const counted = start.total === undefined ? undefined : false;
  await inParallel(
    await queuesOf(env, filter),
    async (queue) => {
      const request = defined({ ...conditions, limit, total: counted, before: placeIn(queue, start.after) });
      const object = queueObject(env, queue);
      // An object of the version before knows neither types nor groups, and must not leave them out.
      const isNarrow = request.types !== undefined || request.groups !== undefined;
      const part = unwrap(await (isNarrow ? object.deadLetterList(request) : object.deadLetterPlaces(request)));
      total += part.total;
      atLeast ||= part.total_is_exact === false;
      if (part.next) horizon = [...(horizon ? [horizon] : []), { ...part.next, queue }].sort(compare)[0];
      const more = part.places.map((place) => ({ ...place, queue }));
      places = [...places, ...more].sort(compare).slice(0, limit);
    },
    WIDTH,
  );
  const end = horizon;
  if (end) places = places.filter((place) => compare(place, end) <= 0);
  return { places, total, atLeast, horizon };
}

/** Where a list that continues after `after` continues in one queue. */
function placeIn(queue: string, after: Placed | undefined): DeadLetterPlace | undefined {
  if (!after) return undefined;
  if (queue === after.queue) return { at: after.at, key: after.key };
  // At the same moment, queues with lesser names were shown before and those with greater names come now.
  return { at: after.at, key: queue < after.queue ? 0 : Number.MAX_SAFE_INTEGER };
}

/** The jobs at these places, until the page is large enough. @returns `last`: the last place that was processed */
async function fetchJobs(env: Env, places: readonly Placed[]): Promise<{ jobs: JobView[]; last?: Placed }> {
  const jobs: JobView[] = [];
  let last: Placed | undefined;
  for (let from = 0, bytes = 0; from < places.length && bytes <= MAX_PAGE_BYTES; from += FETCHED) {
    const part = places.slice(from, from + FETCHED);
    const views = await viewsAt(env, part);
    for (const place of part) {
      if (bytes > MAX_PAGE_BYTES) break;
      const view = views.get(place);
      last = place;
      if (!view) continue;
      jobs.push(view);
      bytes += bytesOfView(view);
    }
  }
  return { jobs, ...defined({ last }) };
}

async function viewsAt(env: Env, places: readonly Placed[]): Promise<ReadonlyMap<Placed, JobView>> {
  const views = new Map<Placed, JobView>();
  const groups = [...Map.groupBy(places, ({ queue }) => queue)];
  await inParallel(groups, async ([queue, group]) => {
    const byKey = new Map(group.map((place) => [place.key, place]));
    for (let keys = [...byKey.keys()]; keys.length > 0; ) {
      const { jobs, rest } = unwrap(await queueObject(env, queue).deadLettersAt(keys));
      for (const { key, ...view } of jobs) views.set(byKey.get(key) as Placed, view);
      keys = rest;
    }
  });
  return views;
}

/** How long (ms), and how many, dead letters are kept. */
export interface DeadLetterRetention {
  max_age: number;
  max_count: number;
}

/** Counts by queue, type and error type (of the newest 10,000 per queue), first and last discard, ms, retentions. */
export async function deadLetterStats(env: Env, named?: readonly string[]) {
  const queues = await queuesOf(env, { queues: named });
  const byQueue = new Map<string, number>();
  const byType = new Map<string, number>();
  const byErrorType = new Map<string, number>();
  let [oldest, newest]: (number | undefined)[] = [];
  let total = 0;
  let complete = true;
  await inParallel(queues, async (queue) => {
    const kinds = unwrap(await queueObject(env, queue).deadLetterKinds());
    if (kinds.total === 0) return;
    total += kinds.total;
    byQueue.set(queue, kinds.total);
    const all = [count(byType, kinds.types), count(byErrorType, kinds.errors)].every((counted) => counted);
    complete &&= kinds.complete && all;
    oldest = earlier(oldest, kinds.oldest);
    newest = Math.max(newest ?? 0, kinds.newest ?? 0);
  });
  complete &&= byType.size <= MAX_NAMES && byErrorType.size <= MAX_NAMES;
  const counts = { byQueue, byType: mostFrequent(byType), byErrorType: mostFrequent(byErrorType) };
  return { total, ...counts, complete, oldest, newest, ...(await retentions(env, queues)) };
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

function retentionOf(config: QueueConfig): DeadLetterRetention {
  const { max_age, max_count } = keptIn(config);
  return { max_age, max_count };
}

const earlier = (a: number | undefined, b: number | undefined): number | undefined =>
  a === undefined || b === undefined ? (a ?? b) : Math.min(a, b);

/** @returns false: there are too many names to count them all */
function count(counts: Map<string, number>, more: readonly [name: string, count: number][]): boolean {
  let all = true;
  for (const [name, n] of more) {
    const known = counts.get(name);
    if (known === undefined && counts.size >= MAX_COUNTED) all = false;
    else counts.set(name, (known ?? 0) + n);
  }
  return all;
}

const mostFrequent = (counts: ReadonlyMap<string, number>): ReadonlyMap<string, number> =>
  new Map([...counts].sort(([, a], [, b]) => b - a).slice(0, MAX_NAMES));

function readCursor(cursor: string | undefined): Start {
  if (cursor === undefined) return { skip: 0, atLeast: false };
  const { at, queue, key, skip, total, atLeast } = decodeCursor(cursor);
  const numbers = [at, key, skip, total].every((value) => typeof value === 'number' && value >= 0);
  if (!numbers || typeof queue !== 'string') throw badCursor();
  const after = { at: at as number, key: key as number, queue };
  return { after, skip: skip as number, total: total as number, atLeast: atLeast === true };
}
