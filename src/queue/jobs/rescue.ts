/** Attempts that nobody reported in time: their leases ran out, or they exceeded their execution limit. */
import { ApiError } from '../../job/errors';
import type { Active } from '../store/active';
import type { QueueState } from '../store/state';
import { rowByKey } from '../store/where';
import { ENDED_PER_TURN } from './expire';
import { fail, quarantine, type Random } from './settle';

/** While the deployment's settings contradict each other nothing can be decided; this long until the next look, ms. */
const LOOK_AGAIN_MS = 10_000;

/**
 * Ends attempts whose time is over, a bounded number. An expired lease makes the job available again at once, an exceeded
 * execution limit waits for its backoff; both count as attempts. Costs nothing while none can be over.
 */
export function rescueOverdue(q: QueueState, now: number, random: Random): void {
  for (const active of q.leases.overdue(now, ENDED_PER_TURN)) rescue(q, active, now, random);
}

/** Ends the attempt of the job with this key if its time is over. */
export function rescueIfDue(q: QueueState, key: number, now: number, random: Random): void {
  const active = q.leases.active.get(key);
  if (active && q.leases.isOverdue(key, now)) rescue(q, active, now, random);
}

/** Never throws because of a single job: this runs before everything else, so that one job would stop its whole queue. */
function rescue(q: QueueState, active: Active, now: number, random: Random): void {
  const row = rowByKey(q, active.key);
  if (!row || row.claims !== active.claim - 1) {
    q.leases.release(active);
    return;
  }
  try {
    fail(q, row, active, failureOf(active), now, random);
  } catch (error) {
    if (error instanceof ApiError) {
      // The mistake is the deployment's, not the job's: the job stays as it is until the settings are mended.
      q.leases.putOff(active, now + LOOK_AGAIN_MS);
      return;
    }
    console.error('tocsin: a job could not be taken back and becomes a dead letter', error);
    quarantine(q, row, now);
    // Nobody knows how far the attempt to end it came.
    q.lineLength = null;
  }
}

function failureOf(active: Active) {
  if (active.expiresAt < active.timeoutAt) return { visibility_expired: true, by_queue: true as const };
  return {
    code: 'timeout',
    type: 'timeout',
    message: `The attempt exceeded its execution limit of ${active.timeoutAt - active.startedAt} ms.`,
    retryable: true,
    by_queue: true as const,
  };
}
