/** Acting on all jobs or on none, once it is known which queues have them. */
import { actAcross, type BulkShare } from '../across/bulk';
import type { Env } from '../config';
import { ApiError, unwrap } from '../job/errors';
import { LOCKED } from '../queue/jobs/lock';
import type { BulkAction, BulkAnswer } from '../rpc/operations';
import { queueObject } from '../rpc/stubs';
import { coordinatorOf, type Keyed, onceFor, refusedOrEarlier } from './keyed';

/** How often an operation is tried again while another one has its jobs, and how long it waits at first, ms. */
const TRIES = 6;
const PAUSE_MS = 20;

/** Tries again while another operation has one of the jobs. @throws {ApiError} 503 when it has them time and again */
export async function untilUnlocked(act: () => Promise<BulkAnswer>): Promise<BulkAnswer> {
  for (let tries = 1; ; tries++) {
    try {
      return await act();
    } catch (error) {
      const isLocked = error instanceof ApiError && error.data.details?.reason === LOCKED;
      if (!isLocked || tries === TRIES) throw error;
      // At random, so that two operations that met do not meet again.
      await scheduler.wait(PAUSE_MS * 2 ** tries * Math.random());
    }
  }
}

/**
 * Acts on all jobs of these queues, or on none: one transaction in one queue, by preparing and deciding over several.
 * @param groups ids by queue, each once; at least one queue
 */
export async function actOnGroups(
  env: Env,
  action: BulkAction,
  groups: ReadonlyMap<string, string[]>,
  keyed: Keyed | undefined,
): Promise<BulkAnswer> {
  const first = [...groups.keys()][0] as string;
  const coordinator = keyed ? await coordinatorOf(env, keyed, first) : first;
  const others = [...groups].filter(([queue]) => queue !== coordinator);
  const shares: [BulkShare, ...BulkShare[]] = [
    { queue: coordinator, ids: groups.get(coordinator) ?? [] },
    ...others.map(([queue, named]) => ({ queue, ids: named })),
  ];
  const once = keyed && onceFor(keyed.operation, 'all');
  const answer =
    others.length > 0
      ? await actAcross(env, action, shares, once)
      : unwrap(
          await queueObject(env, coordinator).bulk({
            action,
            ids: shares[0].ids,
            atomic: true,
            ...(once && { once }),
          }),
        );
  return answer.applied ? answer : refusedOrEarlier(env, answer, keyed);
}
