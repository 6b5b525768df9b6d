/** Acts on jobs of several queues, on all of them or on none, once their queues are known. */
import { v7 as uuidv7 } from 'uuid';
import type { Env } from '../config';
import { inParallel } from '../durable/parallel';
import { unwrap } from '../job/errors';
import type { BulkAction, BulkAnswer } from '../rpc/operations';
import { queueObject } from '../rpc/stubs';
import { allOrNothing } from './all-or-nothing';
import { coordinatorOf, earlierIfRefused, type Keyed, onceFor } from './keyed';

/**
 * Acts on all jobs or on none: one transaction in one queue, {@link allOrNothing} over several.
 * @param groups ids by queue, each once; at least one queue @returns not applied: the items name the obstacles
 * @throws {ApiError} 503 while another operation has one of the jobs, or when it took too long
 */
export async function actOnGroups(
  env: Env,
  action: BulkAction,
  groups: ReadonlyMap<string, string[]>,
  keyed: Keyed | undefined,
): Promise<BulkAnswer> {
  const first = [...groups.keys()][0] as string;
  const coordinator = keyed ? await coordinatorOf(env, keyed, first) : first;
  const others = [...groups.keys()].filter((queue) => queue !== coordinator);
  const idsOf = (queue: string) => groups.get(queue) ?? [];
  const once = keyed && onceFor(keyed.operation, 'all');
  if (others.length === 0) {
    const request = { action, ids: idsOf(coordinator), atomic: true, ...(once && { once }) };
    return earlierIfRefused(env, unwrap(await queueObject(env, coordinator).bulk(request)), keyed);
  }
  const batch = uuidv7();
  const prepare = async () => {
    const outcomes = await inParallel([coordinator, ...others], (queue) =>
      queueObject(env, queue).prepareBulk(batch, coordinator, { action, ids: idsOf(queue) }),
    );
    const answers = outcomes.map(unwrap);
    const agreed = answers.every(({ applied }) => applied);
    return { agreed, answer: { items: answers.flatMap(({ items }) => items), applied: agreed } };
  };
  const answer = await allOrNothing(env, { batch, coordinator, others }, { prepare, once });
  return earlierIfRefused(env, answer, keyed);
}
