/** Attempts that nobody reported in time: their leases ran out, or they exceeded their execution limit. */
import { rowByKey } from './find';
import type { Active } from './leases';
import { fail, type Random } from './settle';
import type { QueueState } from './state';

/** Grace after which the server itself calls a pushed attempt timed out; before, the dispatcher's own timer does. */
export const LEASE_BEYOND_TIMEOUT_MS = 10_000;

/**
 * Ends every attempt whose time is over. An expired lease makes the job available again at once, an exceeded execution
 * limit waits for its backoff; both count as attempts. Costs nothing while none can be over.
 */
export function rescueOverdue(q: QueueState, now: number, random: Random): void {
  for (const active of q.leases.overdue(now)) {
    const row = rowByKey(q, active.key);
    if (!row || row.claims !== active.claim - 1) q.leases.release(active);
    else fail(q, row, active, failureOf(active), now, random);
  }
}

function failureOf(active: Active) {
  if (active.expiresAt < active.timeoutAt) return { visibility_expired: true };
  return {
    code: 'timeout',
    type: 'timeout',
    message: `The attempt exceeded its execution limit of ${active.timeoutAt - active.startedAt} ms.`,
    retryable: true,
  };
}
