/**
 * Batches over several queues: all or nothing, whatever dies in the middle.
 *
 *     prepare in every queue ──▶ decide in one of them (the coordinator) ──▶ commit in the others
 *
 * A queue prepares its share of new jobs (`enqueue.ts`), or of an action on jobs that exist (`action.ts`). The decision is one
 * row of the coordinator, written in the transaction that commits its own share: from then on the batch is accepted. The driver
 * (`src/across/all-or-nothing.ts`) may die at any point: a queue with a share asks the coordinator after
 * {@link CHECK_AFTER_MS}, and an undecided batch is then given up; the coordinator tells the others of its decision until each
 * has heard.
 */
import type { RememberedAnswer } from '../../../rpc/receipts';
import { isBounded, shedSurplus } from '../../jobs/backpressure';
import { recallAnswer, rememberAnswer } from '../../jobs/idempotency';
import { refuseGivenUp, tookTooLong } from '../../jobs/ticket';
import {
  CHECK_AFTER_MS,
  type Decision,
  forgetBatch,
  type Role,
  readBatch,
  type Share,
  writeBatch,
} from '../../store/batches';
import type { QueueState } from '../../store/state';
import { abortAction, commitAction } from './action';
import { abortJobs, commitJobs } from './enqueue';

/** A decision against a batch is remembered this long, so that a driver that comes late is refused; ms. */
const REMEMBER_ABORT_MS = 24 * 3_600_000;

/**
 * The coordinator's decision for a batch, with its own share committed in the same transaction.
 * @throws {ApiError} 503 when the batch was decided against in the meantime
 */
export function decideBatch<T>(
  q: QueueState,
  batch: string,
  others: readonly string[],
  now: number,
  answer?: RememberedAnswer<T>,
): T | null {
  const decision = readBatch<Decision>(q, batch, 'coordinator');
  if (decision?.committed) return null;
  const earlier = answer && recallAnswer<T>(q, answer.idempotency, now);
  if (earlier) return earlier;
  refuseGivenUp(q, batch, now);
  if (!readBatch<Share>(q, batch, 'participant')) throw tookTooLong();
  writeBatch(q, batch, 'coordinator', { committed: true, untold: [...others] }, now + CHECK_AFTER_MS);
  commitBatch(q, batch, now);
  if (answer) rememberAnswer(q, answer.idempotency, answer.receipt, now);
  return null;
}

/** Carries this queue's share out. Idempotent. */
export function commitBatch(q: QueueState, batch: string, now: number): void {
  const share = readBatch<Share>(q, batch, 'participant');
  if (!share) return;
  commitJobs(q, share.jobs, now);
  if (share.act) commitAction(q, share.act, now);
  forgetBatch(q, batch, 'participant');
  if (isBounded(q)) shedSurplus(q, now);
}

/** Drops this queue's share: everything is as it was. Idempotent; without effect once the batch is committed. */
export function abortBatch(q: QueueState, batch: string, now: number): void {
  const share = readBatch<Share>(q, batch, 'participant');
  if (!share) return;
  abortJobs(q, share.jobs, now);
  if (share.act) abortAction(q, share.act, now);
  forgetBatch(q, batch, 'participant');
}

/** What was decided? Asking decides: a batch that is still open is given up, so that nobody waits for ever. */
export function decisionOf(q: QueueState, batch: string, now: number): 'committed' | 'aborted' {
  const decision = readBatch<Decision>(q, batch, 'coordinator');
  if (decision) return decision.committed ? 'committed' : 'aborted';
  writeBatch(q, batch, 'coordinator', { committed: false, untold: [] }, now + REMEMBER_ABORT_MS);
  abortBatch(q, batch, now);
  return 'aborted';
}

/** A queue has heard of the decision; the coordinator's row goes when all have. */
export function confirmBatch(q: QueueState, batch: string, queues: readonly string[], now: number): void {
  const decision = readBatch<Decision>(q, batch, 'coordinator');
  if (!decision?.committed) return;
  const untold = decision.untold.filter((queue) => !queues.includes(queue));
  if (untold.length === 0) forgetBatch(q, batch, 'coordinator');
  else writeBatch(q, batch, 'coordinator', { committed: true, untold }, now + CHECK_AFTER_MS);
}

/** What must be done about unfinished batches. */
export interface OpenBatches {
  /** Batches with a share here, and the queue that decides. */
  ask: { batch: string; coordinator: string }[];
  /** Decisions of this queue that others have not confirmed. */
  tell: { batch: string; queues: string[] }[];
}

/** Unfinished batches whose check is due. Sets their next check; forgets old decisions. */
export function dueBatches(q: QueueState, now: number): OpenBatches {
  const open: OpenBatches = { ask: [], tell: [] };
  const rows = q.sql
    .exec<{ batch: string; role: Role; data: string }>('SELECT batch, role, data FROM batches WHERE check_at <= ?', now)
    .toArray();
  for (const { batch, role, data } of rows) {
    if (role === 'participant') {
      const share = JSON.parse(data) as Share;
      writeBatch(q, batch, role, share, now + CHECK_AFTER_MS);
      open.ask.push({ batch, coordinator: share.coordinator });
      continue;
    }
    const decision = JSON.parse(data) as Decision;
    if (!decision.committed || decision.untold.length === 0) {
      forgetBatch(q, batch, role);
    } else {
      writeBatch(q, batch, role, decision, now + CHECK_AFTER_MS);
      open.tell.push({ batch, queues: decision.untold });
    }
  }
  return open;
}

/** When the next unfinished batch must be checked, epoch ms. */
export function nextBatchCheck(q: QueueState): number | undefined {
  return q.sql.exec<{ at: number | null }>('SELECT min(check_at) AS at FROM batches').one().at ?? undefined;
}
