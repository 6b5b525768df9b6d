/** A second life for a job that ended without success: attempts start again at 0, the error history stays. */

import { parseExactly } from '../../job/envelope/exact';
import { withinBytes } from '../../job/envelope/fields';
import { MAX_ENVELOPE_BYTES, MAX_META_BYTES } from '../../job/envelope/names';
import { conflict, notFound } from '../../job/errors';
import type { JobBody, JobHistory, JobView } from '../../job/record';
import { checkRetry } from '../../job/retry/validate';
import type { Override } from '../../rpc/operations';
import type { Edit, RedriveOptions } from '../../rpc/queue';
import { find, mustFind, viewOfRow } from '../read/find';
import { bodyOf, historyOf, type JobRow, STATE } from '../store/job-row';
import { move, remove } from '../store/jobs';
import type { Named, Observed, QueueParts, Stored } from '../store/parts';
import { isSnoozed } from '../store/rows';
import { forgetKey } from '../store/unique-keys';
import { movable, refuseMoving } from './legal-move';
import { patch } from './patch';
import { forgetOthers, keptSteps } from './steps';
import { endUndo, planUndo } from './undo';

export function secondLife(row: JobRow, override: Override = {}): { body: JobBody; history: JobHistory } {
  const body = bodyOf(row);
  if (override.meta) body.meta = { ...body.meta, ...override.meta };
  if (override.retry) {
    // The limit may be given apart from the policy: it stays unless the override has one.
    const limit = body.max_attempts === undefined ? {} : { max_attempts: body.max_attempts };
    delete body.max_attempts;
    body.retry = { ...body.retry, ...limit, ...override.retry };
  }
  // An expired second life would be useless: the old expiry does not apply to it.
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
    'begun',
    'undo_job',
  ] as const) {
    delete history[gone];
  }
  return { body, history };
}

/** {@link secondLife} on request. @throws {ApiError} 413 when its `meta`, or the job, becomes too large */
export function boundedLife(row: JobRow, override: Override = {}): ReturnType<typeof secondLife> {
  const life = secondLife(row, override);
  // Additions of earlier lives are kept: many small ones may become too much.
  if (override.meta) {
    withinBytes(JSON.stringify(life.body.meta), MAX_META_BYTES, 'override.meta');
    withinBytes(JSON.stringify(life.body), MAX_ENVELOPE_BYTES, 'body');
  }
  return life;
}

/**
 * `discarded`, `cancelled` or `retryable` → `available`. @param from name of a recorded step: it and all that began
 * after it run again @throws {ApiError} 404, 409, 422 (an invalid retry policy)
 */
export function redrive(q: QueueParts, id: string, options: RedriveOptions, now: number, from?: string): JobView {
  const { edit, change } = options;
  const found = options.deadLetterOnly ? { row: deadLetterRow(q, id) } : mustFind(q, id);
  const { row } = movable(q, id, found, 'redrive', ' and cannot be retried.', now);
  refuseMoving(q, row);
  if (from !== undefined && isSnoozed(row, historyOf(row))) throw asleep(id);
  const undo = planUndo(q, row, now);
  const steps = keptSteps(q, row.key, from, undo.isUndone);
  const { body, history } = boundedLife(row, options.override);
  if (edit) applyEdit(q, row, body, edit);
  if (options.override?.retry) checkRetry(q.config.retryLayers(row.type, { ...(body.retry && { retry: body.retry }) }));
  endUndo(q, undo, now);
  // An operator's decision: it is not refused as a duplicate, but later jobs conflict with it.
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
  if (steps) forgetOthers(q, row.key, steps, now);
  const view = change ? patch(q, { ...change, id }, now) : viewOfRow(q, after, now);
  return undo.isUndone && from === undefined ? { ...view, starts_over: true } : view;
}

const asleep = (id: string) =>
  conflict(
    `Job ${id} sleeps in the middle of its work, so it cannot start again from a step.`,
    { job_id: id, current_state: 'retryable' },
    'Cancel it first: POST /ojs/v1/admin/jobs/:id/cancel.',
  );

/** Replaces the job's own values by an operator's. @throws {ApiError} 413 when that makes it too large */
function applyEdit(q: Stored, row: JobRow, body: JobBody, { args, meta, fingerprint }: Edit): void {
  if (args !== undefined) body.args = parseExactly(args) as unknown[];
  if (meta !== undefined) body.meta = parseExactly(meta) as Record<string, unknown>;
  // An enqueue has this bound, too.
  withinBytes(JSON.stringify(body), MAX_ENVELOPE_BYTES, 'body');
  if (fingerprint === undefined || fingerprint === body.fingerprint) return;
  // From now on it conflicts with jobs like its new self, no longer with those like the old one.
  if (body.fingerprint !== undefined) forgetKey(q.store.sql, body.fingerprint, row.key);
  body.fingerprint = fingerprint;
}

/** The row of a dead letter. @throws {ApiError} 404 */
export function deadLetterRow(q: Named & Stored, id: string): JobRow {
  const row = find(q, id)?.row;
  if (row?.state !== STATE.dead) throw notFound('dead letter', id, 'GET /ojs/v1/dead-letter lists them.');
  return row;
}

/** Deletes a dead letter for good. @throws {ApiError} 404 */
export function deleteDeadLetter(q: Named & Stored & Observed, id: string, now: number): { job_id: string } {
  const row = deadLetterRow(q, id);
  refuseMoving(q, row);
  remove(q, row, 'remove', now);
  return { job_id: id };
}
