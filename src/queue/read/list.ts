/** Pages of jobs, newest first by sequence number, whether they wait, run, or ended; and how many there are. */
import { parseExactly } from '../../job/envelope/exact';
import { type JobFilter, looksInside } from '../../job/filter';
import { inOrder } from '../../job/order';
import type { JobBody, JobView } from '../../job/record';
import { bytesOfView, MAX_PAGE_BYTES } from '../../job/size';
import { JOB_STATES } from '../../job/states';
import type { CountResult, SortedEntry, SortedPart, SortedRequest, SortKey } from '../../rpc/operations';
import type { ListPage, ListPlaces, ListRequest, StatesCounted, StatesRequest } from '../../rpc/queue';
import { STATE } from '../store/job-row';
import type { Named, Stored, StoredQueue } from '../store/parts';
import { identitiesOf, rowByKey } from '../store/row-lookup';
import { type ArchivedJob, idOf, idOfArchived } from '../store/rows';
import { viewOfArchived, viewOfRow } from './find';
import { type Hit, scan } from './scan';
import { noJobs, stats } from './stats';

/** Jobs looked at for one page, and how many times as many for its total. */
const PAGE_BUDGET = 10_000;
const TOTAL_TIMES = 2;

/** Jobs looked at by one call that counts. */
const COUNT_BUDGET = 50_000;

export function list(q: StoredQueue, request: ListRequest, now: number): ListPage {
  const filter = filterOf(request);
  const budget = Math.min(request.budget ?? PAGE_BUDGET, PAGE_BUDGET);
  const maxBytes = Math.min(request.max_bytes ?? MAX_PAGE_BYTES, MAX_PAGE_BYTES);
  const jobs: ListPage['jobs'] = [];
  let bytes = 0;
  let cut: number | undefined;
  const take = (hit: Hit) => {
    const view = cut === undefined ? viewOfHit(q, hit, now) : undefined;
    if (!view) return;
    bytes += bytesOfView(view);
    if (jobs.length > 0 && bytes > maxBytes) cut = jobs.at(-1)?.position;
    else jobs.push({ ...view, position: hit.sequence });
  };
  const page = { filter, limit: request.limit, budget, from: request.before };
  const { next, looked, spent } = scan(q, page, now, take);
  const goOn = cut ?? next;
  // Exact where that is cheap; else a lower bound.
  const all: CountResult = request.total === false ? { count: 0 } : count(q, { filter }, now, budget * TOTAL_TIMES);
  return {
    jobs,
    looked,
    spent,
    total: all.count,
    ...(all.next !== undefined && { total_is_exact: false as const }),
    has_more: goOn !== undefined,
    ...(goOn !== undefined && { next: goOn }),
  };
}

/** The places of matching jobs, without the jobs: for a reader that passes over them. */
export function listPlaces(q: StoredQueue, request: ListRequest, now: number): ListPlaces {
  const places: ListPlaces['places'] = [];
  const { limit, before: from } = request;
  const page = { filter: filterOf(request), measure: 'created_at', limit, budget: PAGE_BUDGET, from };
  const { next } = scan(q, page, now, ({ sequence, measure, archived }) => {
    const created_at = archived === undefined ? (measure as number) : (JSON.parse(archived) as ArchivedJob).at[0];
    places.push({ position: sequence, created_at: created_at ?? 0 });
  });
  return { places, ...(next !== undefined && { next }) };
}

function filterOf(request: ListRequest): JobFilter {
  const { states, type, createdUntil } = request;
  const filter: JobFilter = { ...request.filter };
  if (states) filter.states = states;
  if (type !== undefined) filter.types = [type];
  if (createdUntil !== undefined) {
    filter.created = { ...filter.created, max: Math.min(createdUntil, filter.created?.max ?? createdUntil) };
  }
  return filter;
}

function viewOfHit(q: StoredQueue, hit: Hit, now: number): JobView | undefined {
  if (hit.archived !== undefined) return viewOfArchived(q, parseExactly(hit.archived) as ArchivedJob);
  const row = rowByKey(q.store, hit.key);
  const seen = row && q.store.locks.seen(row);
  return seen && viewOfRow(q, seen, now);
}

/** Counts matching jobs in steps: `next` says where the count continues. @param budget jobs looked at, at most */
export function count(
  q: StoredQueue,
  { filter, before }: { filter: JobFilter; before?: number },
  now: number,
  budget = COUNT_BUDGET,
): CountResult {
  if (before === undefined && !looksInside(filter)) {
    const { counts } = stats(q, now);
    return { count: [...new Set(filter.states ?? JOB_STATES)].reduce((sum, state) => sum + counts[state], 0) };
  }
  let total = 0;
  const { next } = scan(q, { filter, budget, from: before }, now, () => {
    total++;
  });
  return { count: total, ...(next !== undefined && { next }) };
}

/** How many of the matching jobs are in each state; in steps as {@link count}, of at most `budget` jobs each. */
export function countStates(q: StoredQueue, request: StatesRequest, now: number): StatesCounted {
  const { filter, before } = request;
  const counts = noJobs();
  if (before === undefined && !looksInside(filter)) {
    const all = stats(q, now).counts;
    for (const state of filter.states ?? JOB_STATES) counts[state] = all[state];
    return { counts, looked: 0 };
  }
  const budget = Math.min(request.budget ?? COUNT_BUDGET, COUNT_BUDGET);
  const { next, looked } = scan(q, { filter, budget, from: before }, now, ({ state }) => {
    counts[state]++;
  });
  return { counts, looked, ...(next !== undefined && { next }) };
}

const STEP_BUDGET = 20_000;

/** What rows are sorted by, as SQL: as clients see the value. */
const MEASURES: Record<SortKey, (now: number) => string> = {
  created_at: () => 'created_at',
  priority: () => 'priority',
  scheduled_at: (now) => {
    const waitsForIt = `state = ${STATE.waiting} AND attempt = 0 AND due_at > ${Math.floor(now)}`;
    return `CASE WHEN ${waitsForIt} THEN due_at WHEN json_valid(body) THEN body ->> '$.scheduled_at' END`;
  },
};

const ARCHIVED: Record<SortKey, (job: ArchivedJob) => number | null> = {
  created_at: (job) => job.at[0],
  priority: (job) => job.p,
  scheduled_at: ({ b }: { b: JobBody }) => b.scheduled_at ?? null,
};

interface Ranked {
  value: number | null;
  position: number;
  key: number;
  /** Of a completed job. */
  identity?: Identity;
}

type Identity = Pick<SortedEntry, 'id' | 'created_at'>;

/** Jobs in another order than creation; no index has it, so every match is read in steps, keeping the first ones. */
export function sorted(q: StoredQueue, request: SortedRequest, now: number): SortedPart {
  const { filter, sort, descending, limit, before } = request;
  const compare = inOrder(descending);
  let entries: Ranked[] = [];
  let matched = 0;
  const keepFirst = () => {
    entries = entries.sort(compare).slice(0, limit);
  };
  const all = { filter, measure: MEASURES[sort](now), budget: STEP_BUDGET, from: before };
  const { next, looked } = scan(q, all, now, (hit) => {
    matched++;
    entries.push(rank(q, hit, sort));
    if (entries.length >= 2 * limit + 1000) keepFirst();
  });
  keepFirst();
  return { entries: identified(q, entries), matched, looked, ...(next !== undefined && { next }) };
}

function rank(q: Named, hit: Hit, sort: SortKey): Ranked {
  const { key, sequence: position } = hit;
  if (hit.archived === undefined) return { value: (hit.measure ?? null) as number | null, position, key };
  const job = JSON.parse(hit.archived) as ArchivedJob;
  const identity = { id: idOfArchived(q.route, job), created_at: job.at[0] };
  return { value: ARCHIVED[sort](job), position, key, identity };
}

function identified(q: Named & Stored, ranked: readonly Ranked[]): SortedEntry[] {
  const unknown = ranked.flatMap(({ key, identity }) => (identity ? [] : [key]));
  const rows = identitiesOf(q.store, unknown);
  const identities = new Map<number, Identity>();
  for (const row of rows.values()) identities.set(row.key, { id: idOf(q.route, row), created_at: row.created_at });
  return ranked.flatMap(({ value, position, key, identity }) => {
    const who = identity ?? identities.get(key);
    return who ? [{ ...who, value, position }] : [];
  });
}
