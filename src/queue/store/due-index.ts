/** Putting rows into the due index. */

import type { QueueState } from '../state';
import type { JobRow } from './rows';

/** A row was put into the due index: cursors and priorities must know. */
export function entersDueIndex(q: QueueState, row: Pick<JobRow, 'priority' | 'due_at' | 'attempt' | 'key'>): void {
  const position = { at: row.due_at as number, attempt: row.attempt, key: row.key };
  q.priorities.add(row.priority);
  for (const scan of q.scans()) scan.entered(row.priority, position);
}
