/** Acts on all jobs that match a filter, or on none, in one transaction; this bounds matches and rows looked at. */
import { recallAnswer, rememberAnswer } from '../../../durable/inbox';
import { tooManyLookedAt, tooManyMatches } from '../../../job/filter';
import { refuseLockedItems } from '../../../job/undecided';
import { ACTS_ON, type BulkAnswer, type BulkItem, MAX_ITEMS, type MatchingRequest } from '../../../rpc/operations';
import { act, checkItem } from '../../jobs/bulk-act';
import { type Hit, scan } from '../../read/scan';
import type { Named, QueueParts, Stored, StoredQueue } from '../../store/parts';
import { rowByKey } from '../../store/row-lookup';
import { type ArchivedJob, idOf, idOfArchived } from '../../store/rows';

const MAX_LOOKED = 50_000;

/**
 * The result for each match, oldest first. Without states in the filter, only jobs in suitable states match; a job in
 * a named but unsuitable state blocks the action.
 * @throws {ApiError} 422 when too many match, or too many have to be looked at
 */
export function checkMatching(q: StoredQueue, { action, filter }: MatchingRequest, now: number): BulkItem[] {
  const hits: Hit[] = [];
  const states = filter.states ?? [...ACTS_ON[action]];
  // Backwards, because completed jobs are found only that way.
  const { next } = scan(q, { filter: { ...filter, states }, limit: MAX_ITEMS, budget: MAX_LOOKED }, now, (hit) =>
    hits.push(hit),
  );
  if (next !== undefined)
    throw hits.length === MAX_ITEMS ? tooManyMatches(MAX_ITEMS) : tooManyLookedAt(MAX_LOOKED, q.name);
  return hits.reverse().flatMap((hit): BulkItem[] => {
    const job_id = idOfHit(q, hit);
    if (job_id === undefined) return [];
    if (ACTS_ON[action].includes(hit.state)) return [checkItem(q, action, job_id, now)];
    return [{ job_id, status: 'skipped', reason: hit.state }];
  });
}

/**
 * Acts on all jobs that match, or on none.
 * @throws {ApiError} as {@link checkMatching}; 503 when one of them is locked; 409 for a key of another request
 */
export function bulkMatching(q: QueueParts, request: MatchingRequest, now: number): BulkAnswer {
  const { action, once } = request;
  const earlier = once && recallAnswer<BulkAnswer>(q.store.inbox, once, now);
  if (earlier) return earlier;
  const items = checkMatching(q, request, now);
  refuseLockedItems(items);
  if (items.some(({ status }) => status !== 'done')) return { items, applied: false };
  for (const { job_id } of items) act(q, action, job_id, now);
  const answer: BulkAnswer = { items, applied: true };
  if (once) rememberAnswer(q.store.inbox, once, answer, now);
  return answer;
}

function idOfHit(q: Named & Stored, { key, archived }: Hit): string | undefined {
  if (archived === undefined) {
    const row = rowByKey(q.store, key);
    return row && idOf(q.route, row);
  }
  return idOfArchived(q.route, JSON.parse(archived) as ArchivedJob);
}
