/** Pages of jobs, newest first by sequence number, whether they wait, run, or ended. */
import { MAX_SEQUENCE, sequenceOf } from '../job/ids';
import { JOB_STATES, type JobState, type JobView } from '../job/record';
import type { DeadLetterRequest, ListPage, ListRequest } from './api';
import { archivedBackwards } from './archive';
import { viewOfArchived, viewOfRow } from './find';
import { type ArchivedJob, historyOf, type JobRow, STATE, stateOf } from './rows';
import type { QueueState } from './state';
import { stats } from './stats';

type Item =
  | { sequence: number; row: JobRow; archived?: never }
  | { sequence: number; row?: never; archived: ArchivedJob };

/** A page ends early beyond this many characters of bodies and results: a message holds 32 MiB. */
const MAX_PAGE_CHARS = 8 * 1024 * 1024;

/** A page of the jobs that match, and how many match in all. */
export function list(q: QueueState, request: ListRequest, now: number): ListPage {
  const states = new Set<JobState>(request.states ?? JOB_STATES);
  const matchesType = typeFilter(request.type);
  const jobs: ListPage['jobs'] = [];
  let chars = 0;
  let more = false;
  for (const item of newestFirst(q, request.before ?? MAX_SEQUENCE, states)) {
    const { row, archived } = item;
    const createdAt = row ? row.created_at : archived.at[0];
    if (request.createdUntil !== undefined && createdAt > request.createdUntil) continue;
    if (!matchesType(row ? row.type : archived.t)) continue;
    if (row && !states.has(stateOf(row, q.leases.active.has(row.key), now))) continue;
    if (jobs.length === request.limit || chars > MAX_PAGE_CHARS) {
      more = true;
      break;
    }
    const view = row ? viewOfRow(q, row, now) : viewOfArchived(q, archived);
    jobs.push({ ...view, position: item.sequence });
    chars += view.record.body.length + (view.record.result?.length ?? 0);
  }
  return { jobs, total: countMatching(q, states, request.type, now), has_more: more };
}

function typeFilter(type: string | undefined): (candidate: string) => boolean {
  if (type === undefined) return () => true;
  if (type.endsWith('*')) {
    const prefix = type.slice(0, -1);
    return (candidate) => candidate.startsWith(prefix);
  }
  return (candidate) => candidate === type;
}

/** Live and archived jobs merged, newest first. */
function* newestFirst(q: QueueState, before: number, states: Set<JobState>): Generator<Item> {
  const sources: Iterator<Item>[] = [];
  if ([...states].some((state) => state !== 'completed')) {
    sources.push(liveBackwards(q, 0, before), liveBackwards(q, MAX_SEQUENCE, before));
  }
  if (states.has('completed')) sources.push(archived(q, before));
  const heads = sources.map((source) => source.next());
  for (;;) {
    let best = -1;
    for (const [index, head] of heads.entries()) {
      if (head.done) continue;
      const current = best < 0 ? undefined : heads[best];
      if (!current || current.done || head.value.sequence > current.value.sequence) best = index;
    }
    const head = heads[best];
    if (!head || head.done) return;
    yield head.value;
    heads[best] = (sources[best] as Iterator<Item>).next();
  }
}

function* archived(q: QueueState, before: number): Generator<Item> {
  for (const job of archivedBackwards(q.sql, before)) yield { sequence: sequenceOf(job.k), archived: job };
}

const PAGE = 100;

function* liveBackwards(q: QueueState, lane: number, before: number): Generator<Item> {
  let bound = lane + before;
  for (;;) {
    const rows = q.sql
      .exec<JobRow>(
        `SELECT * FROM jobs WHERE key >= ? AND key < ? AND state <> ${STATE.held} ORDER BY key DESC LIMIT ?`,
        lane,
        bound,
        PAGE,
      )
      .toArray();
    for (const row of rows) yield { sequence: sequenceOf(row.key), row };
    const last = rows.at(-1);
    if (rows.length < PAGE || !last) return;
    bound = last.key;
  }
}

function countMatching(q: QueueState, states: Set<JobState>, type: string | undefined, now: number): number {
  if (type === undefined) {
    const { counts } = stats(q, now);
    return [...states].reduce((sum, state) => sum + counts[state], 0);
  }
  const pattern = type.endsWith('*') ? `${type.slice(0, -1).replace(/[[*?]/g, '[$&]')}*` : type;
  let total = 0;
  const rows = q.sql.exec<Pick<JobRow, 'key' | 'state' | 'due_at' | 'attempt'>>(
    `SELECT key, state, due_at, attempt FROM jobs WHERE type GLOB ? AND state <> ${STATE.held}`,
    pattern,
  );
  for (const row of rows) if (states.has(stateOf(row, q.leases.active.has(row.key), now))) total++;
  if (states.has('completed')) {
    total += q.sql
      .exec<{ n: number }>(
        "SELECT count(*) AS n FROM archive, json_each(archive.data) AS job WHERE job.value ->> '$.t' GLOB ?",
        pattern,
      )
      .one().n;
  }
  return total;
}

/** Dead letters, newest first, and how many match in all. */
export function deadLetters(
  q: QueueState,
  request: DeadLetterRequest,
  now: number,
): { jobs: JobView[]; total: number } {
  const jobs: JobView[] = [];
  let chars = 0;
  let total = 0;
  const matchesType = typeFilter(request.type);
  const rows = q.sql.exec<JobRow>(
    `SELECT * FROM jobs WHERE state = ${STATE.dead} AND ended_at >= ? AND ended_at < ? ORDER BY ended_at DESC, key DESC`,
    request.since ?? 0,
    request.until ?? Number.MAX_SAFE_INTEGER,
  );
  for (const row of rows) {
    if (!matchesType(row.type)) continue;
    if (request.error_type !== undefined && historyOf(row).error?.type !== request.error_type) continue;
    total++;
    if (jobs.length < request.limit && chars <= MAX_PAGE_CHARS) {
      jobs.push(viewOfRow(q, row, now));
      chars += row.body.length;
    }
  }
  return { jobs, total };
}
