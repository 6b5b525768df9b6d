import type { Spreading } from '../../contract/common';

/** The part of an answer about a change for all queues: how many have not confirmed it yet, if any. */
export function pendingQueues(untold = 0): Spreading {
  return untold > 0 ? { pending_queues: untold } : {};
}
