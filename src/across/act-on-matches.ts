/** Operations on all jobs that match a filter, done to all of them or to none, in any number of queues. */
import type { Env } from '../config';
import { inParallel } from '../durable/parallel';
import { ApiError, unwrap } from '../job/errors';
import { madeUntil, type Selection, tooManyMatches } from '../job/filter';
import { refuseLockedItems } from '../job/undecided';
import { type BulkAction, type BulkAnswer, MAX_ITEMS } from '../rpc/operations';
import { queueObject } from '../rpc/stubs';
import { actOnGroups } from './act-on-all';
import { coordinatorOf, earlierIfRefused, type Keyed, onceFor, recall } from './keyed';
import { queuesOf } from './queues';
import { untilDecided } from './retry';

/**
 * Acts on all jobs that match or on none. @returns one item for each match; not applied: nothing was changed
 * @throws {ApiError} 422 `unsupported` when more than {@link MAX_ITEMS} match; 503 when others keep having them
 */
export async function actOnMatches(
  env: Env,
  action: BulkAction,
  selection: Selection,
  keyed?: Keyed,
): Promise<BulkAnswer> {
  const { filter } = selection;
  // A repeated request is about the jobs of its first time.
  const until = keyed?.operation.replayed ? keyed.operation.started_at : undefined;
  const within = { ...selection, filter: until === undefined ? filter : madeUntil(filter, until) };
  try {
    return await untilDecided(() => actOnce(env, action, within, keyed));
  } catch (error) {
    if (!keyed || !(error instanceof ApiError) || error.data.status !== 422) throw error;
    const earlier = await earlierIfRefused(env, { items: [], applied: false }, keyed);
    if (earlier.applied) return earlier;
    throw error;
  }
}

async function actOnce(
  env: Env,
  action: BulkAction,
  { filter, queues }: Selection,
  keyed: Keyed | undefined,
): Promise<BulkAnswer> {
  const earlier = await recall(env, keyed);
  if (earlier) return earlier;
  const names = await queuesOf(env, { queues: queues ?? keyed?.operation.queues });
  const groups = names.length > 1 ? await matchesByQueue(env, action, { filter, queues: names }) : undefined;
  const items = [...(groups?.values() ?? [])].flat();
  if (items.length > MAX_ITEMS) throw tooManyMatches(MAX_ITEMS);
  refuseLockedItems(items);
  if (items.some(({ status }) => status !== 'done')) {
    return earlierIfRefused(env, { items, applied: false }, keyed);
  }
  if (groups && groups.size > 1) {
    const ids = [...groups].map(([queue, own]): [string, string[]] => [queue, own.map(({ job_id }) => job_id)]);
    return actOnGroups(env, action, new Map(ids), keyed);
  }
  // One queue finds them and acts on them in the same transaction.
  const only = [...(groups?.keys() ?? [])][0] ?? names[0];
  if (only === undefined) return { items: [], applied: true };
  const queue = keyed ? await coordinatorOf(env, keyed, only) : only;
  if (queue !== only && groups?.size === 1) {
    return actOnGroups(env, action, new Map([[only, items.map(({ job_id }) => job_id)]]), keyed);
  }
  const once = keyed && onceFor(keyed.operation, 'all');
  const request = { action, filter, ...(once && { once }) };
  return earlierIfRefused(env, unwrap(await queueObject(env, queue).bulkMatching(request)), keyed);
}

/** The result that the matching jobs would have, by queue; queues without any are left out. */
async function matchesByQueue(env: Env, action: BulkAction, { filter, queues = [] }: Selection) {
  const found = await inParallel(queues, async (queue) => {
    const items = unwrap(await queueObject(env, queue).checkMatching({ action, filter }));
    return [queue, items] as const;
  });
  return new Map(found.filter(([, items]) => items.length > 0));
}
