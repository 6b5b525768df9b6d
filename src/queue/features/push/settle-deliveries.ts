/** Writes how the deliveries of one call ended. */
import type { AttemptOutcome } from '../../../job/attempt/outcome';
import type { Claimed } from '../../jobs/claim';
import { lateAttempt, type Random } from '../../jobs/end-attempt';
import { Settlement } from '../../jobs/settle';
import type { QueueParts } from '../../store/parts';
import { rowByKey } from '../../store/row-lookup';
import { CHILDREN } from './children';

/** A claimed job, the delivery it went out with, and how that ended. */
export interface Delivered {
  /** While this claim runs nothing changes the job's row. */
  claimed: Pick<Claimed, 'row' | 'active'>;
  delivery: string;
  outcome: AttemptOutcome;
  /** JSON texts of the outbox messages with the jobs that it enqueues. */
  children?: readonly string[];
}

/** Settles the attempts of one call, except those that have ended otherwise. Runs inside a transaction. */
export function settleDeliveries(q: QueueParts, delivered: readonly Delivered[], now: number, random: Random): void {
  const settlement = new Settlement(q, now, random);
  for (const one of delivered) {
    const { row, active: claimed } = one.claimed;
    const active = q.store.leases.active.get(row.key);
    if (active?.claim !== claimed.claim) {
      settleLate(settlement, one);
      continue;
    }
    for (const [at, message] of (one.children ?? []).entries()) {
      q.store.outbox.post(CHILDREN, `${one.delivery} ${at}`, message, now);
    }
    settlement.settleSurely(row, active, one.outcome);
  }
  settlement.end();
}

/** A success that arrives after its attempt was called timed out still counts while the job waits. */
function settleLate(settlement: Settlement, { claimed, delivery, outcome }: Delivered): void {
  const { q, now } = settlement;
  if (outcome.kind !== 'completed') return;
  const row = rowByKey(q.store, claimed.row.key);
  const attempt = row && lateAttempt(q, row, delivery, now);
  if (attempt) settlement.completeLate(row, attempt, outcome.result);
}
