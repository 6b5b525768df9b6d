/**
 * Batches over several queues: all or nothing, whatever fails in between.
 *
 *     prepare in every queue ──▶ decide in one of them (the coordinator) ──▶ commit in the others
 *
 * A queue prepares its share of new jobs (`enqueue.ts`), or of an action on existing jobs (`action.ts`). The decision
 * is one message of the coordinator, written in the transaction that commits its own share: from then on the batch is
 * accepted. The outbox relay carries it to the other queues.
 *
 * The driver (`src/across/all-or-nothing.ts`) may die at any point. A share is a message too: if the batch is not
 * finished in time, it asks the coordinator, which then abandons an undecided batch.
 */
import { recallAnswer, rememberAnswer } from '../../../durable/inbox';
import type { RememberedAnswer } from '../../../rpc/receipts';
import { isBounded, setShedding, shed } from '../../jobs/backpressure';
import { giveUp, refuseGivenUp, tookTooLong } from '../../jobs/ticket';
import { DECISION, readShare, SHARE } from '../../store/batches';
import type { QueueParts } from '../../store/parts';
import { abortAction, commitAction } from './action';
import { abortJobs, commitJobs } from './enqueue';

/**
 * The coordinator's decision for a batch, with its own share committed in the same transaction.
 * @throws {ApiError} 503 when the batch was decided against in the meantime
 */
export function decideBatch<T>(
  q: QueueParts,
  batch: string,
  others: readonly string[],
  now: number,
  answer?: RememberedAnswer<T>,
): T | null {
  if (q.store.outbox.find(DECISION, batch) !== undefined) return null;
  const earlier = answer && recallAnswer<T>(q.store.inbox, answer.idempotency, now);
  if (earlier) return earlier;
  refuseGivenUp(q, batch, now);
  if (!readShare(q, batch)) throw tookTooLong();
  if (others.length > 0) q.store.outbox.post(DECISION, batch, JSON.stringify(others), now);
  commitBatch(q, batch, now);
  if (answer) rememberAnswer(q.store.inbox, answer.idempotency, answer.receipt, now);
  return null;
}

/** Carries this queue's share out. Idempotent. */
export function commitBatch(q: QueueParts, batch: string, now: number): void {
  const share = readShare(q, batch);
  if (!share) return;
  commitJobs(q, share.jobs, now);
  if (share.act) commitAction(q, share.act, now);
  q.store.outbox.withdraw(SHARE, batch);
  if (isBounded(q) && shed(q, now)) setShedding(q, true);
}

/** Drops this queue's share: everything is as it was. Idempotent; without effect once the batch is committed. */
export function abortBatch(q: QueueParts, batch: string, now: number): void {
  const share = readShare(q, batch);
  if (!share) return;
  abortJobs(q, share.jobs, now);
  if (share.act) abortAction(q, share.act, now);
  q.store.outbox.withdraw(SHARE, batch);
}

/** The decision. Asking decides: an open batch is abandoned, so that no queue waits for ever. */
export function decisionOf(q: QueueParts, batch: string, now: number): 'committed' | 'aborted' {
  if (q.store.outbox.find(DECISION, batch) !== undefined) return 'committed';
  giveUp(q, batch, now);
  abortBatch(q, batch, now);
  return 'aborted';
}
