/** Writing what became of a delivery. Each runs inside a transaction. */
import type { DeliveryOutcome } from '../../../dispatch/answer';
import type { Claimed } from '../../jobs/claim';
import {
  archiveCompleted,
  complete,
  fail,
  lateAttempt,
  type Random,
  removeCompleted,
  runningAttempt,
  undoClaim,
} from '../../jobs/settle';
import { rowByKey } from '../../read/find';
import type { QueueState } from '../../state';
import type { JobRow } from '../../store/rows';

/** A claimed job, the delivery it went out with, and what became of it. */
export interface Delivered {
  /** While this claim runs nothing changes the job's row. */
  claimed: Pick<Claimed, 'row' | 'active'>;
  delivery: string;
  outcome: DeliveryOutcome;
}

/** Writes the outcomes of one call, but for attempts that have been ended by someone else. */
export function settleDeliveries(q: QueueState, delivered: readonly Delivered[], now: number, random: Random): void {
  const completed: number[] = [];
  for (const { claimed, delivery, outcome } of delivered) {
    const { row } = claimed;
    const active = q.leases.active.get(row.key);
    if (active?.claim !== claimed.active.claim) {
      const current = rowByKey(q, row.key);
      if (current) settleLate(q, current, delivery, outcome, now);
    } else if (outcome.kind === 'completed') {
      archiveCompleted(q, row, runningAttempt(active), outcome.result, now);
      completed.push(row.key);
    } else if (outcome.kind === 'failed') {
      fail(q, row, active, outcome.failure, now, random);
    } else {
      undoClaim(q, row, active, now);
    }
  }
  removeCompleted(q, completed);
}

/** A success that arrives after its attempt was called timed out still counts while the job waits. */
function settleLate(q: QueueState, row: JobRow, delivery: string, outcome: DeliveryOutcome, now: number): void {
  const attempt = outcome.kind === 'completed' ? lateAttempt(q, row, delivery, now) : undefined;
  if (attempt && outcome.kind === 'completed') complete(q, row, attempt, outcome.result, now);
}
