/**
 * A queue's dead letters: places of the newest, their jobs, their kinds. Pages read as many index entries as they
 * show; searches look at a bounded number of rows and say where to continue.
 */

import type { Fragment } from '../../durable/sql';
import { defined } from '../../job/envelope/fields';
import type { JobFilter } from '../../job/filter';
import type { JobView } from '../../job/record';
import { bytesOfView, MAX_ANSWER_BYTES } from '../../job/size';
import type { DeadLetterPlace } from '../../rpc/failures';
import type { DeadLetterKinds, DeadLetterPlaces, DeadLetterRequest, DeadLettersAt } from '../../rpc/queue';
import { countEnded, type EndedRange, newestEnded, oldestEndedAt, whichMatch } from '../store/ended-rows';
import { STATE } from '../store/job-row';
import type { Stored, StoredQueue } from '../store/parts';
import { rowByKey } from '../store/row-lookup';
import { conditionOnRow } from './filter';
import { viewOfRow } from './find';

/** Rows looked at for one answer with a filter, and for the total beside it. */
const PAGE_BUDGET = 10_000;
const TOTAL_BUDGET = 20_000;

const STEP = 250;

/** Dead letters looked at for the kinds, the characters of their histories, and the names given of each kind. */
const KINDS_BUDGET = 10_000;
const KINDS_CHARS = 32 * 1024 * 1024;
const KINDS_STEP = 100;
const MAX_KINDS = 1000;
const MAX_NAME = 255;

export function deadLetterPlaces(q: Stored, request: DeadLetterRequest, now: number): DeadLetterPlaces {
  const { limit, since = 0, until = Number.MAX_SAFE_INTEGER } = request;
  const condition = conditionOf(request, now);
  const range: EndedRange = { since, until, ...defined({ before: request.before }) };
  const total = request.total === false ? { total: 0 } : totalOf(q, request, { since, until }, condition);
  if (!condition) return { places: newestEnded(q.store.sql, STATE.dead, range, limit), ...total };
  const places: DeadLetterPlace[] = [];
  for (let looked = 0; ; ) {
    const found = newestEnded(q.store.sql, STATE.dead, range, STEP);
    const matching = whichMatch(q.store.sql, found, condition);
    places.push(...found.filter(({ key }) => matching.has(key)).slice(0, limit - places.length));
    looked += found.length;
    const last = found.at(-1);
    if (found.length < STEP || !last || places.length === limit) return { places, ...total };
    if (looked >= PAGE_BUDGET) return { places, ...total, next: last };
    range.before = last;
  }
}

function conditionOf({ types, error_type, group, groups }: DeadLetterRequest, now: number): Fragment | undefined {
  const filter: JobFilter = defined({ types, error_type, group, groups });
  return Object.keys(filter).length === 0 ? undefined : conditionOnRow(filter, now, []);
}

function totalOf(
  q: Stored,
  request: DeadLetterRequest,
  range: EndedRange,
  condition: Fragment | undefined,
): Pick<DeadLetterPlaces, 'total' | 'total_is_exact'> {
  if (!condition && request.since === undefined && request.until === undefined)
    return { total: q.store.counts.countDead() };
  const { looked, matched } = countEnded(q.store.sql, STATE.dead, range, TOTAL_BUDGET, condition);
  return { total: matched, ...(looked === TOTAL_BUDGET && { total_is_exact: false as const }) };
}

/** The dead letters with these keys, as many as fit into a message; those no longer dead are left out. */
export function deadLettersAt(q: StoredQueue, keys: readonly number[], now: number): DeadLettersAt {
  const jobs: (JobView & { key: number })[] = [];
  let bytes = 0;
  for (const [index, key] of keys.entries()) {
    if (bytes > MAX_ANSWER_BYTES) return { jobs, rest: keys.slice(index) };
    const row = rowByKey(q.store, key);
    if (row?.state !== STATE.dead) continue;
    const view = viewOfRow(q, row, now);
    jobs.push({ ...view, key });
    bytes += bytesOfView(view);
  }
  return { jobs, rest: [] };
}

/** The kinds of dead letters. Counted again only when one has come or gone. */
export function deadLetterKinds(q: Stored): DeadLetterKinds {
  q.store.counts.deadKinds ??= countKinds(q);
  return q.store.counts.deadKinds;
}

function countKinds(q: Stored): DeadLetterKinds {
  const types = new Map<string, number>();
  const errors = new Map<string, number>();
  const total = q.store.counts.countDead();
  const range: EndedRange = { since: 0, until: Number.MAX_SAFE_INTEGER };
  const [newest] = newestEnded(q.store.sql, STATE.dead, range, 1);
  let looked = 0;
  for (let chars = 0; looked < KINDS_BUDGET && chars < KINDS_CHARS; ) {
    const found = newestEnded(q.store.sql, STATE.dead, range, KINDS_STEP);
    for (const { type, error, n, size } of kindsOf(q.store.sql, found)) {
      add(types, type, n);
      add(errors, String(error), n);
      chars += size;
    }
    looked += found.length;
    if (found.length < KINDS_STEP) break;
    range.before = found.at(-1) as DeadLetterPlace;
  }
  const complete = looked >= total && types.size <= MAX_KINDS && errors.size <= MAX_KINDS;
  const times = defined({ oldest: oldestEndedAt(q.store.sql, STATE.dead), newest: newest?.at });
  return { total, types: mostFrequent(types), errors: mostFrequent(errors), complete, ...times };
}

const kindsOf = (sql: SqlStorage, places: readonly DeadLetterPlace[]) =>
  sql.exec<{ type: string; error: string | number; n: number; size: number }>(
    `SELECT substr(type, 1, ${MAX_NAME}) AS type, substr(coalesce(
       CASE WHEN json_valid(history) THEN coalesce(history ->> '$.error.type', history ->> '$.reason') END,
       'unknown'), 1, ${MAX_NAME}) AS error, count(*) AS n, coalesce(sum(length(history)), 0) AS size
     FROM jobs WHERE key IN (SELECT value FROM json_each(?)) GROUP BY 1, 2`,
    JSON.stringify(places.map(({ key }) => key)),
  );

function add(counts: Map<string, number>, name: string, n: number): void {
  counts.set(name, (counts.get(name) ?? 0) + n);
}

const mostFrequent = (counts: ReadonlyMap<string, number>): [string, number][] =>
  [...counts].sort(([, a], [, b]) => b - a).slice(0, MAX_KINDS);
