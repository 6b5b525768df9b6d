/** A second life for a job that ended without success: attempts start again at 0, the error history stays. */

import { notFound } from '../../job/errors';
import type { JobBody, JobHistory, JobView } from '../../job/record';
import { checkRetry } from '../../job/retry/validate';
import type { Override } from '../../rpc/operations';
import type { RedriveOptions } from '../../rpc/queue';
import { find, mustFind, viewOfRow } from '../read/find';
import { type JobRow, STATE } from '../store/columns';
import { move, remove } from '../store/jobs';
import { bodyOf, historyOf } from '../store/rows';
import type { QueueState } from '../store/state';
import { movable } from './movable';
import { refuseMoving } from './moving';

/** What a job takes along into its second life. */
export function secondLife(row: JobRow, override: Override = {}): { body: JobBody; history: JobHistory } {
  const body = bodyOf(row);
  if (override.meta) body.meta = { ...body.meta, ...override.meta };
  if (override.retry) {
    // The limit may have been written beside the policy: it stays unless the override names one.
    const limit = body.max_attempts === undefined ? {} : { max_attempts: body.max_attempts };
    delete body.max_attempts;
    body.retry = { ...body.retry, ...limit, ...override.retry };
  }
  // A second life that was over before it began helps nobody: the old expiry does not apply to it.
  delete body.expires_at;
  const history = historyOf(row);
  for (const gone of [
    'error',
    'completed_at',
    'cancelled_at',
    'discarded_at',
    'reason',
    'dead_letter',
    'retry_delay_ms',
    'started_at',
    'told_until',
    'unreported',
    'snoozed',
  ] as const) {
    delete history[gone];
  }
  return { body, history };
}

/** `discarded`, `cancelled` or `retryable` → `available`. @throws {ApiError} 404, 409, 422 (a retry policy that is none) */
export function redrive(q: QueueState, id: string, options: RedriveOptions, now: number): JobView {
  const found = options.deadLetterOnly ? { row: deadLetterRow(q, id) } : mustFind(q, id);
  const { row } = movable(q, id, found, 'redrive', ' and cannot be retried.', now);
  refuseMoving(q, row);
  const { body, history } = secondLife(row, options.override);
  if (options.override?.retry) checkRetry(q.retryLayers(row.type, { ...(body.retry && { retry: body.retry }) }));
  // An operator's decision: it is not refused as a duplicate, but stands in the way of later ones.
  const after = move(
    q,
    row,
    'redrive',
    {
      ...{ state: STATE.waiting, attempt: 0, enqueued_at: now, expires_at: null, ended_at: null, availableAt: now },
      body: JSON.stringify(body),
      history,
    },
    now,
  );
  return viewOfRow(q, after, now);
}

/** The row of a dead letter. @throws {ApiError} 404 */
export function deadLetterRow(q: QueueState, id: string): JobRow {
  const row = find(q, id)?.row;
  if (row?.state !== STATE.dead) throw notFound('dead letter', id, 'GET /ojs/v1/dead-letter lists them.');
  return row;
}

/** Deletes a dead letter for good. @throws {ApiError} 404 */
export function deleteDeadLetter(q: QueueState, id: string, now: number): { job_id: string } {
  const row = deadLetterRow(q, id);
  refuseMoving(q, row);
  remove(q, row, 'remove', now);
  return { job_id: id };
}
