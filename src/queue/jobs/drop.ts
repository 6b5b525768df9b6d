/** Discards a job for which there is no room, before it ran. */

import { type JobRow, STATE } from '../store/job-row';
import { move } from '../store/jobs';
import type { QueueParts } from '../store/parts';
import { historyOf } from '../store/row-texts';

export function drop(
  q: QueueParts,
  row: JobRow,
  reason: 'queue_full' | 'group_full' | 'rate_limited',
  now: number,
): void {
  move(q, row, 'drop', { state: STATE.discarded, history: { ...historyOf(row), discarded_at: now, reason } }, now);
}
