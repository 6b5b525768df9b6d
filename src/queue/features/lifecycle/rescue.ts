/** Attempts that nobody reported in time: their leases ran out, or they exceeded their execution limit. */
import { ApiError } from '../../../job/errors';
import type { Feature, Host } from '../../feature';
import { fail, quarantine, type Random } from '../../jobs/settle';
import type { JobRow } from '../../store/columns';
import { rowByKey } from '../../store/columns';
import type { Active } from '../../store/leases';
import type { QueueState } from '../../store/state';

/** While the deployment's settings contradict each other nothing can be decided; this long until the next look, ms. */
const LOOK_AGAIN_MS = 10_000;

export class LeaseRescue implements Feature {
  constructor(private readonly host: Host) {}

  get overdueAt(): number {
    return this.host.q.leases.earliest;
  }

  due(): number {
    return this.overdueAt;
  }

  before(now: number): void {
    rescueOverdue(this.host.q, now, this.host.random);
  }

  /** Deletes lease rows that only a burst of single claims leaves behind. */
  tidy(): void {
    const { q } = this.host;
    if (q.leases.trim()) q.recordSequence(q.nextSequence);
  }
}

/**
 * Ends every attempt whose time is over. An expired lease makes the job available again at once, an exceeded execution
 * limit waits for its backoff; both count as attempts. Costs nothing while none can be over. Never throws because of a
 * single job: this runs before everything else, so that one job would stop its whole queue.
 */
function rescueOverdue(q: QueueState, now: number, random: Random): void {
  for (const active of q.leases.overdue(now)) {
    const row = rowByKey(q.sql, active.key);
    if (!row || row.claims !== active.claim - 1) q.leases.release(active);
    else rescue(q, row, active, now, random);
  }
}

function rescue(q: QueueState, row: JobRow, active: Active, now: number, random: Random): void {
  try {
    fail(q, row, active, failureOf(active), now, random);
  } catch (error) {
    if (error instanceof ApiError) {
      // The mistake is the deployment's, not the job's: the job stays as it is until the settings are mended.
      q.leases.lookAgain(now + LOOK_AGAIN_MS);
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
