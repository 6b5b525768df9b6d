/** Unique jobs that conflict with new ones now, by the policies that they were enqueued with. */
import { parseExactly } from '../../job/envelope/exact';
import type { JobBody, UniquePolicy } from '../../job/record';
import { blocks } from '../../job/unique/conflicts';
import { readUnique } from '../../job/unique/policy';
import type { HeldUnique, HeldUniques, UniquePlace } from '../../rpc/uniques';
import type { StoredQueue } from '../store/parts';
import { uniqueKeysAfter } from '../store/unique-keys';
import { StoredJob } from './conflicts';

/** Jobs that one call looks at, even if most of them no longer conflict. */
const MAX_LOOKED = 500;

/** @param limit how many are returned at most; with the place after the last one looked at if there may be more */
export function heldUniques(q: StoredQueue, limit: number, after: UniquePlace | undefined, now: number): HeldUniques {
  const places = uniqueKeysAfter(q.store.sql, after, MAX_LOOKED);
  const items: HeldUnique[] = [];
  let looked = 0;
  for (const place of places) {
    if (items.length === limit) break;
    looked++;
    const held = heldBy(q, place, now);
    if (held) items.push(held);
  }
  const isAll = looked === places.length && looked < MAX_LOOKED;
  return { items, looked, ...(!isAll && { next: places[looked - 1] ?? after }) } as HeldUniques;
}

function heldBy(q: StoredQueue, place: UniquePlace, now: number): HeldUnique | undefined {
  const job = new StoredJob(q, place.key, now);
  const { state, createdAt } = job;
  if (state === 'undecided' || createdAt === undefined) return undefined;
  const body = parseExactly(job.body) as JobBody;
  const policy = policyOf(q.name, body);
  if (!policy || blocks(policy, job, now) !== true) return undefined;
  const until = policy.period_ms === undefined ? {} : { until: createdAt + policy.period_ms };
  return { ...place, job_id: job.id, type: body.type, state, created_at: createdAt, ...until };
}

/** Undefined if the stored policy cannot be read: it may be of another release. */
function policyOf(queue: string, body: JobBody): Pick<UniquePolicy, 'states' | 'period_ms'> | undefined {
  try {
    return readUnique(body.unique, 'unique', { ...body, queue }).policy;
  } catch {
    return undefined;
  }
}
