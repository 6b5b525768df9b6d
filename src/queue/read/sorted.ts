/** Jobs in another order than creation; no index has it, so every match is read in steps, keeping the first ones. */
import { inOrder } from '../../job/order';
import type { JobBody } from '../../job/record';
import type { SortedEntry, SortedPart, SortedRequest, SortKey } from '../../rpc/operations';
import { STATE } from '../store/job-row';
import type { Named, Stored, StoredQueue } from '../store/parts';
import { identitiesOf } from '../store/row-lookup';
import { type ArchivedJob, idOf, idOfArchived } from '../store/rows';
import { type Hit, scan } from './scan';

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
