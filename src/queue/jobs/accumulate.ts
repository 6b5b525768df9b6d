/** Newcomers that become a part of a waiting job. One row written for all of a request, two where its start moves. */
import type { JobView } from '../../job/record';
import { viewOfRow } from '../read/find';
import { STATE } from '../store/job-row';
import { move } from '../store/jobs';
import type { QueueParts } from '../store/parts';
import { rowByKey } from '../store/row-lookup';
import type { Accumulated } from './conflicts';

/** Writes what a stored job becomes. A job that is full and takes nothing is only made due. */
export function accumulate(q: QueueParts, { into, gathered }: Accumulated, now: number): JobView {
  const row = rowByKey(q.store, into.key);
  if (!row) throw new Error(`Queue ${q.name} lost a job within a transaction.`);
  const isMoved = row.state === STATE.waiting && gathered.dueAt !== into.dueAt;
  const place = isMoved ? { due_at: gathered.dueAt ?? now } : {};
  const { taken, body } = gathered;
  const change = { ...place, body };
  return viewOfRow(q, move(q, row, taken > 0 ? 'accumulate' : 'patch', change, now, { taken }), now);
}
