/** Activating a pending job: it was accepted, and now may run. */

import type { JobView } from '../../job/record';
import { mustFind, viewOfRow } from '../read/find';
import { STATE } from '../store/job-row';
import { move } from '../store/jobs';
import type { QueueParts } from '../store/parts';
import { bodyOf } from '../store/row-texts';
import { movable } from './legal-move';
import { patch } from './patch';

/** `pending` → `available`, or `scheduled` when its time has not come. @throws {ApiError} 404, 409 */
export function activate(q: QueueParts, id: string, now: number): JobView {
  const { row } = movable(q, id, mustFind(q, id), 'activate', ', not pending.', now);
  const availableAt = Math.max(now, bodyOf(row).scheduled_at ?? now);
  const after = move(q, row, 'activate', { state: STATE.waiting, enqueued_at: now, availableAt }, now);
  return viewOfRow(q, after, now);
}

/** A job that waits, for its time, its retry or to be activated, becomes available now. @throws {ApiError} 404, 409 */
export function runNow(q: QueueParts, id: string, now: number): JobView {
  if (mustFind(q, id).row?.state === STATE.pending) activate(q, id, now);
  return patch(q, { id, scheduled_at: null }, now);
}
