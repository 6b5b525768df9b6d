/** The undo job of a job that begins again: cancelled if it has done nothing yet, waited for while it runs. */
import { ApiError, conflict } from '../../job/errors';
import type { JobHistory } from '../../job/record';
import { TERMINAL_STATES } from '../../job/states';
import type { JobUndo } from '../../job/wire';
import { find } from '../read/find';
import { historyOf, historyText, type JobRow } from '../store/job-row';
import { writeChange } from '../store/own-rows';
import type { Named, QueueParts, Stored } from '../store/parts';
import { idOf, stateOf } from '../store/rows';
import { undoneBy } from '../store/undo-job';
import { cancel } from './cancel';
import { refuseMoving } from './legal-move';

/** The job that undoes this one's steps, with its state as long as it is kept; undefined: there is none. */
export function undoOf(q: Named & Stored, { undo_job: job_id }: JobHistory, now: number): JobUndo | undefined {
  if (job_id === undefined) return undefined;
  const found = find(q, job_id);
  if (!found) return { job_id };
  const { row } = found;
  return { job_id, state: row ? stateOf(row, q.store.leases.active.has(row.key), now) : 'completed' };
}

/** What becomes of the undo job when its job begins again. */
export interface UndoPlan {
  /** It has run: nothing on record holds any more. */
  isUndone: boolean;
  job_id?: string;
  unbegun?: string;
}

/** Has the undo job begun, or is it gone? Then nothing on record of its job holds any more. */
export function isUndone(q: Named & Stored, { undo_job: job_id }: JobHistory): boolean {
  if (job_id === undefined) return false;
  const row = find(q, job_id)?.row;
  return row === undefined || row.claims > 0 || q.store.leases.active.has(row.key);
}

/** Writes nothing. @throws {ApiError} 409, retryable, while the undo job works; 409 for one whose job began again */
export function planUndo(q: Named & Stored, row: JobRow, now: number): UndoPlan {
  refuseOutlived(q, row);
  const history = historyOf(row);
  const { job_id, state } = undoOf(q, history, now) ?? {};
  const hasBegun = isUndone(q, history);
  if (job_id === undefined || state === undefined) return { isUndone: hasBegun };
  if (TERMINAL_STATES.includes(state)) return { isUndone: hasBegun, job_id };
  if (!hasBegun) return { isUndone: false, job_id, unbegun: job_id };
  const id = idOf(q.route, row);
  const { data } = conflict(
    `Job ${job_id} undoes the steps of job ${id} at the moment.`,
    { job_id: id, undo_job_id: job_id, current_state: state },
    'Try again when it has ended, or cancel it.',
  );
  throw new ApiError({ ...data, retryable: true });
}

/** Its job continues with its records: an undo job that has not begun has nothing to do any more. */
export function endUndo(q: QueueParts, { job_id, unbegun }: UndoPlan, now: number): void {
  if (unbegun !== undefined) cancel(q, unbegun, now);
  outlive(q, job_id);
}

/** An undo job that has ended never runs again. Says so in its own row, since its job may be purged. One row. */
export function outlive(q: Named & Stored, job_id: string | undefined): void {
  const row = job_id === undefined ? undefined : find(q, job_id)?.row;
  if (!row) return;
  const history = historyText({ ...historyOf(row), outlived: true });
  writeChange(q.store.sql, row, { ...row, history }, {}, false);
}

/** @throws {ApiError} 409 when the job that this one undoes has begun again, or moves: it undoes an earlier life */
function refuseOutlived(q: Named & Stored, row: JobRow): void {
  const of = undoneBy(row);
  if (of === undefined) return;
  const original = find(q, of)?.row;
  if (original) refuseMoving(q, original);
  const id = idOf(q.route, row);
  // Jobs of earlier versions say nothing themselves.
  const isOutlived = historyOf(row).outlived || (original && historyOf(original).undo_job !== id);
  if (!isOutlived) return;
  throw conflict(`Job ${id} undoes an earlier life of job ${of}, which was started again.`, {
    job_id: id,
    undo_of: of,
  });
}
