/** Writing what became of a delivery. Each runs inside a transaction. */
import type { DeliveryOutcome } from '../../../dispatch/answer';
import type { Claimed } from '../../jobs/claim';
import { fail, lateAttempt, type Random, undoClaim } from '../../jobs/settle';
import { type Completion, complete, runningAttempt } from '../../store/attempts';
import type { JobRow } from '../../store/columns';
import { rowByKey } from '../../store/columns';
import type { QueueState } from '../../store/state';

/** A claimed job, the delivery it went out with, and what became of it. */
export interface Delivered {
  /** While this claim runs nothing changes the job's row. */
  claimed: Pick<Claimed, 'row' | 'active'>;
  delivery: string;
  outcome: DeliveryOutcome;
}

/** Writes the outcomes of one call, but for attempts that have been ended by someone else. */
export function settleDeliveries(q: QueueState, delivered: readonly Delivered[], now: number, random: Random): void {
  const completed: Completion[] = [];
  for (const { claimed, delivery, outcome } of delivered) {
    const { row } = claimed;
    const active = q.leases.active.get(row.key);
    if (active?.claim !== claimed.active.claim) {
      const current = rowByKey(q.sql, row.key);
      if (current) settleLate(q, current, delivery, outcome, now);
    } else if (outcome.kind === 'completed') {
      completed.push({ row, attempt: runningAttempt(active), result: outcome.result });
    } else if (outcome.kind === 'failed') {
      fail(q, row, active, outcome.failure, now, random);
    } else {
      undoClaim(q, row, now);
    }
  }
  complete(q, completed, now);
}

/** A success that arrives after its attempt was called timed out still counts while the job waits. */
function settleLate(q: QueueState, row: JobRow, delivery: string, outcome: DeliveryOutcome, now: number): void {
  const attempt = outcome.kind === 'completed' ? lateAttempt(q, row, delivery, now) : undefined;
  if (attempt && outcome.kind === 'completed') complete(q, [{ row, attempt, result: outcome.result }], now);
}
