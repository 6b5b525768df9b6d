import type { Spreading } from '../../contract/common';

/** What an answer says of a change that all queues must hear of: how many have not confirmed it yet, if any. */
export function pendingQueues(untold = 0): Spreading {
  return untold > 0 ? { pending_queues: untold } : {};
}
