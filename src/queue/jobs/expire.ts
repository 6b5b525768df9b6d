/** Jobs whose time passed before they ran: discarded without a run, never as dead letters. */

import type { QueueState } from '../state';
import { waitsNoMore } from '../store/limits/admit';
import { historyOf, idOf, isInLine, type JobRow, STATE } from '../store/rows';
import { end } from './end';

/** Discards one waiting row that has expired. */
export function expire(q: QueueState, row: JobRow, now: number): void {
  const wasInLine = isInLine(row);
  waitsNoMore(q, row);
  end(q, row, STATE.discarded, { ...historyOf(row), discarded_at: now, reason: 'expired' }, now);
  if (wasInLine && q.lineLength !== null) q.lineLength--;
  q.events.add('job.expired', idOf(q.route, row), now, { job_type: row.type, attempt: row.attempt, reason: 'expired' });
}
