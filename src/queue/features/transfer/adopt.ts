/** Taking jobs over from another queue: those of a queue that is deleted, and dead letters that live again here. */
import { LANE_BIT } from '../../../job/ids';
import type { MovedJob } from '../../../rpc/operations';
import { once } from '../../jobs/idempotency';
import { refuseNewcomers } from '../../jobs/intake';
import type { QueueState } from '../../state';
import { learn, nowWaits, place, policyOf } from '../../store/limits/admit';
import { type JobRow, STATE } from '../../store/rows';
import { fingerprintIn, remember } from '../../store/unique-keys';
import { refuseGivenUp } from '../shares/batch';

/**
 * A move is remembered so long, ms: it may be sent again as long as the answer has not reached the source, whose alarm would
 * have to fail all the while.
 */
const REMEMBER_MOVE_MS = 90 * 86_400_000;

/**
 * Answers a move, once: sent again it gets the answer it had, whatever holds here by then.
 * @param ticket under which unique fingerprints are reserved for it
 * @throws {ApiError} 503 when the ticket was given up; what `take` throws. Then nothing is remembered
 */
export function onceForMove<T>(q: QueueState, move: string, ticket: string | undefined, now: number, take: () => T): T {
  const answer = () => {
    if (ticket !== undefined) refuseGivenUp(q, ticket, now);
    return take();
  };
  return once(q, { key: `move ${move}`, hash: '' }, now, answer, REMEMBER_MOVE_MS);
}

/**
 * Takes jobs over from a queue that is being deleted. They keep their ids, their attempts and their order.
 * @param ticket as in {@link onceForMove}
 * @throws {ApiError} 409 draining, being deleted; 503 the ticket was given up
 */
export function adopt(
  q: QueueState,
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

const INSERT = `INSERT INTO jobs
  (key, alias, state, type, priority, due_at, attempt, claims, created_at, enqueued_at, expires_at, body, history,
   limit_key, waits_since)
  VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`;

/** Writes a job that comes from another queue. */
export function adoptJob(q: QueueState, job: MovedJob, now: number): void {
  const key = LANE_BIT + q.nextSequence++;
  const state = job.pending ? STATE.pending : STATE.waiting;
  const { id, type, priority, attempt, claims, created_at, enqueued_at, expires_at, body, history } = job;
  const policy = policyOf(q, { type, body });
  if (policy) learn(q, policy, now);
  const row: JobRow = {
    ...{ key, alias: id, state, type, priority, attempt, claims, created_at, enqueued_at, expires_at, body, history },
    ended_at: null,
    limit_key: policy?.key ?? null,
    ...{ due_at: null, waits_since: null },
  };
  if (!job.pending) Object.assign(row, place(q, row, job.due_at, now, policy));
  q.sql
    .exec(
      INSERT,
      ...[key, id, state, type, priority, row.due_at, attempt, claims, created_at, enqueued_at, expires_at, body],
      ...[history, row.limit_key, row.waits_since],
    )
    .toArray();
  q.depth.added(row);
  q.sql.exec('INSERT OR REPLACE INTO aliases (id, key) VALUES (?, ?)', id, key).toArray();
  const fingerprint = fingerprintIn({ body });
  if (fingerprint !== undefined) remember(q.sql, fingerprint, key);
  if (job.checkpoint) q.checkpoints.put(key, job.checkpoint);
  if (!job.pending) nowWaits(q, row, now);
  if (expires_at !== null) {
    q.nextExpiry = Math.min(q.nextExpiry, expires_at);
    q.wake(expires_at);
  }
}
