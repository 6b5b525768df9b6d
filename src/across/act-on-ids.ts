/** Operations on jobs named by their ids: on each that can be, or on all or none, in any number of queues. */
import type { Env } from '../config';
import { unwrap } from '../job/errors';
import { refuseLockedItems } from '../job/undecided';
import type { BulkAction, BulkAnswer, BulkItem } from '../rpc/operations';
import { queueObject } from '../rpc/stubs';
import { actOnGroups } from './act-on-all';
import { earlierIfRefused, type Keyed, onceFor, recall } from './keyed';
import { askByHome } from './locate';
import { untilDecided } from './retry';

/** Ids handled in one transaction, unless they must be all or nothing. */
const STEP = 500;

/** Acts on each job that can be acted on. @returns one item for each id, in order */
export async function actOnEach(
  env: Env,
  action: BulkAction,
  ids: readonly string[],
  keyed?: Keyed,
): Promise<BulkAnswer> {
  const operation = keyed?.operation;
  const items = new Map<string, BulkItem>();
  const ask = async (queue: string, named: readonly string[], isSearch: boolean) => {
    for (let at = 0; at < named.length; at += STEP) {
      const request = {
        action,
        ids: named.slice(at, at + STEP),
        atomic: false,
        // Each step is done once, and remembered by the queue in the transaction that does it.
        ...(operation && { once: onceFor(operation, `${isSearch ? 'search' : 'home'} ${at}`) }),
        ...(operation?.replayed && { createdUntil: operation.started_at }),
      };
      for (const item of unwrap(await queueObject(env, queue).bulk(request)).items) note(items, item);
    }
  };
  const isFound = (id: string) => items.get(id)?.reason !== 'not_found';
  // One queue after the other, so that no two act on jobs with the same id.
  await askByHome(env, ids, undefined, { ask, isFound, width: 1 });
  return { items: inOrder(ids, items), applied: true };
}

/** If queues disagree about a job, the owning queue's answer wins. */
function note(items: Map<string, BulkItem>, item: BulkItem): void {
  if (!items.has(item.job_id) || item.reason !== 'not_found') items.set(item.job_id, item);
}

function inOrder(ids: readonly string[], items: ReadonlyMap<string, BulkItem>): BulkItem[] {
  const firsts = new Set<string>();
  return ids.map((job_id): BulkItem => {
    if (firsts.has(job_id)) return { job_id, status: 'skipped', reason: 'repeated' };
    firsts.add(job_id);
    return items.get(job_id) ?? { job_id, status: 'failed', reason: 'not_found' };
  });
}

/** Acts on all jobs or on none. @returns an item per id, in order; unless `applied`, nothing was changed @throws 503 */
export async function actOnAll(
  env: Env,
  action: BulkAction,
  ids: readonly string[],
  keyed?: Keyed,
): Promise<BulkAnswer> {
  const answer = await untilDecided(() => actOnAllOnce(env, action, ids, keyed));
  return { ...answer, items: inOrder(ids, new Map(answer.items.map((item) => [item.job_id, item]))) };
}

async function actOnAllOnce(
  env: Env,
  action: BulkAction,
  ids: readonly string[],
  keyed: Keyed | undefined,
): Promise<BulkAnswer> {
  const earlier = await recall(env, keyed);
  if (earlier) return earlier;
  const found = await checkAll(env, action, ids);
  const items = inOrder(ids, new Map(found.map(({ item }) => [item.job_id, item])));
  refuseLockedItems(items);
  if (items.some(({ status, reason }) => status !== 'done' && reason !== 'repeated')) {
    return earlierIfRefused(env, { items, applied: false }, keyed);
  }
  const groups = [...Map.groupBy(found, ({ queue }) => queue)].map(
    ([queue, own]) => [queue, own.map(({ item }) => item.job_id)] as const,
  );
  return actOnGroups(env, action, new Map(groups), keyed);
}

/** The place of each job, and the result it would have. Jobs that no queue has are left out. */
async function checkAll(
  env: Env,
  action: BulkAction,
  ids: readonly string[],
): Promise<{ queue: string; item: BulkItem }[]> {
  const found = new Map<string, { queue: string; item: BulkItem }>();
  const ask = async (queue: string, named: string[]) => {
    for (const item of unwrap(await queueObject(env, queue).checkBulk({ action, ids: named }))) {
      if (item.reason !== 'not_found' && !found.has(item.job_id)) found.set(item.job_id, { queue, item });
    }
  };
  await askByHome(env, ids, undefined, { ask, isFound: (id) => found.has(id) });
  return [...new Set(ids)].flatMap((id) => found.get(id) ?? []);
}
