/** Takes jobs over from another queue: those of a queue that is deleted, and dead letters that are redriven here. */

import { answerOnce } from '../../../durable/inbox';
import type { MovedJob } from '../../../rpc/operations';
import { refuseNewcomers } from '../../jobs/may-enqueue';
import { refuseGivenUp } from '../../jobs/ticket';
import type { Note } from '../../store/job-events';
import { insert } from '../../store/jobs';
import { policyOf } from '../../store/limits/place';
import type { Named, Observed, QueueParts, Stored, Woken } from '../../store/parts';

/** Retention of a move's answer, ms: the source repeats the move until it has the answer. */
const REMEMBER_MOVE_MS = 90 * 86_400_000;

/**
 * Answers a move, once; a repetition gets the same answer. @param ticket under which fingerprints are reserved
 * @throws {ApiError} 503 when the ticket was given up; what `take` throws. Then nothing is remembered
 */
export function onceForMove<T>(q: Stored, move: string, ticket: string | undefined, now: number, take: () => T): T {
  const answer = () => {
    if (ticket !== undefined) refuseGivenUp(q, ticket, now);
    return take();
  };
  return answerOnce(q.store.inbox, { key: `move ${move}`, hash: '' }, now, answer, REMEMBER_MOVE_MS);
}

/**
 * Takes jobs over from a deleted queue, with ids, attempts and order. @param ticket as in {@link onceForMove}
 * @throws {ApiError} 409 draining, being deleted; 503 the ticket was given up
 */
export function adopt(
  q: QueueParts,
  move: string,
  jobs: readonly MovedJob[],
  ticket: string | undefined,
  now: number,
): void {
  onceForMove(q, move, ticket, now, () => {
    refuseNewcomers(q);
    for (const job of jobs) adoptJob(q, job, now);
    return true;
  });
}

export function adoptJob(q: Named & Stored & Observed & Woken, job: MovedJob, now: number, note?: Note): void {
  const { id, type, priority, attempt, claims, created_at, enqueued_at, expires_at, body, history } = job;
  const row = insert(
    q,
    'adopt',
    { alias: id, type, priority, attempt, claims, created_at, enqueued_at, expires_at, body, history },
    { at: job.due_at, pending: job.pending, limit: policyOf(q, { type, body }), holds: job.holds },
    now,
    note,
  );
  if (job.checkpoint) q.store.checkpoints.put(row.key, job.checkpoint);
}
