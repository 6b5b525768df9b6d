/** Writing what became of a delivery. Each runs inside a transaction. */
import type { DeliveryOutcome, Said } from '../../../dispatch/answer';
import { ApiError } from '../../../job/errors';
import type { Claimed } from '../../jobs/claim';
import { fail, lateAttempt, type Random, undoClaim } from '../../jobs/end-attempt';
import { noteProgress } from '../../jobs/progress';
import { snooze } from '../../jobs/snooze';
import { recordSteps } from '../../jobs/steps';
import type { Active } from '../../store/active';
import { type Completion, complete, runningAttempt } from '../../store/attempts';
import type { JobRow } from '../../store/columns';
import { historyOf } from '../../store/rows';
import type { QueueState } from '../../store/state';
import { rowByKey } from '../../store/where';
import { CHILDREN } from './children';

/** A claimed job, the delivery it went out with, and what became of it. */
export interface Delivered {
  /** While this claim runs nothing changes the job's row. */
  claimed: Pick<Claimed, 'row' | 'active'>;
  delivery: string;
  outcome: DeliveryOutcome;
  /** JSON texts of the letters with the jobs that it enqueues. */
  children?: readonly string[];
}

/** Writes the outcomes of one call, but for attempts that have been ended by someone else. */
export function settleDeliveries(q: QueueState, delivered: readonly Delivered[], now: number, random: Random): void {
  const completed: Completion[] = [];
  for (const one of delivered) {
    const { claimed, delivery, outcome } = one;
    const { row } = claimed;
    const active = q.leases.active.get(row.key);
    if (active?.claim !== claimed.active.claim) {
      const current = rowByKey(q, row.key);
      if (current) settleLate(q, current, delivery, outcome, now);
    } else if (outcome.kind === 'completed') {
      takeSaid(q, row, active, one, now);
      completed.push({ row, attempt: runningAttempt(active), result: outcome.result });
    } else {
      goesOnOrFails(q, active, one, now, random);
    }
  }
  complete(q, completed, now);
}

function goesOnOrFails(q: QueueState, active: Active, one: Delivered, now: number, random: Random): void {
  const { outcome, claimed } = one;
  const { row } = claimed;
  if (outcome.kind === 'not_running' || outcome.kind === 'again') {
    const goesOn = outcome.kind === 'again' && { history: { ...historyOf(row), begun: active.attempt } };
    undoClaim(q, row, now, { ...goesOn });
    return;
  }
  takeSaid(q, row, active, one, now);
  try {
    if (outcome.kind === 'snoozed') {
      snooze(q, row, active, outcome.snooze, now);
      return;
    }
    if (outcome.said?.steps) recordSteps(q, row.key, outcome.said.steps, now);
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    // Steps that cannot be kept would run again in every attempt.
    const { code, message } = error.data;
    fail(q, row, active, { code, type: code, message, retryable: false }, now, random);
    return;
  }
  if (outcome.kind === 'failed') fail(q, row, active, outcome.failure, now, random);
}

/** What the handler says beside the outcome. The steps of a job that has completed are of no use to anybody. */
function takeSaid(q: QueueState, row: JobRow, active: Active, { outcome, delivery, children }: Delivered, now: number) {
  const { log, progress, checkpoint }: Said = outcome.said ?? {};
  if (log) q.logs.add(active, log);
  if (progress) noteProgress(q, row, active, progress, now);
  if (checkpoint !== undefined) q.checkpoints.save(row.key, checkpoint, now);
  for (const [at, letter] of (children ?? []).entries()) q.outbox.post(CHILDREN, `${delivery} ${at}`, letter, now);
}

/** A success that arrives after its attempt was called timed out still counts while the job waits. */
function settleLate(q: QueueState, row: JobRow, delivery: string, outcome: DeliveryOutcome, now: number): void {
  const attempt = outcome.kind === 'completed' ? lateAttempt(q, row, delivery, now) : undefined;
  if (attempt && outcome.kind === 'completed') complete(q, [{ row, attempt, result: outcome.result }], now);
}
