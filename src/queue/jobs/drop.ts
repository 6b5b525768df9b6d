/** Discards a job for which there is no room, before it ran. One that undoes another stays, whatever the bounds. */

import { type JobRow, STATE } from '../store/job-row';
import { move } from '../store/jobs';
import type { QueueParts } from '../store/parts';
import { historyOf } from '../store/row-texts';
import { undoneBy } from '../store/undo-job';

export function drop(
  q: QueueParts,
  row: JobRow,
  reason: 'queue_full' | 'group_full' | 'rate_limited',
  now: number,
): void {
  if (undoneBy(row) !== undefined) return;
  move(q, row, 'drop', { state: STATE.discarded, history: { ...historyOf(row), discarded_at: now, reason } }, now);
}
