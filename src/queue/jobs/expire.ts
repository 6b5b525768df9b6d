/** Jobs whose time passed before they ran: discarded without a run, never as dead letters. */

import { type JobRow, STATE } from '../store/columns';
import { move } from '../store/jobs';
import { historyOf } from '../store/rows';
import type { QueueState } from '../store/state';

/** Discards one waiting row that has expired. */
export function expire(q: QueueState, row: JobRow, now: number): void {
  const history = { ...historyOf(row), discarded_at: now, reason: 'expired' };
  move(q, row, 'expire', { state: STATE.discarded, history }, now);
}
