/** How the outcome of an operation on many jobs is told. */

import { type OperateOptions, type OperationSummary, operate, patience } from '../../across/operations';
import { invalidRequest } from '../../job/errors';
import { type BulkAction, type BulkAnswer, type BulkItem, MAX_ERRORS } from '../../rpc/operations';
import { actOnMatches } from '../act-on-matches';
import type { AppContext } from '../context';
import type { JsonObject } from '../request/body';
import { filterFromBody, type Selection } from '../request/filter';
import { beginKeyed, REPLAYED } from '../request/idempotency';
import { refuseStrayConditions } from '../request/unknown-fields';

/** 202 while an operation goes on, 207 when some jobs could not be acted on. */
export function statusOf({ done, failed }: OperationSummary): number {
  return done ? (failed > 0 ? 207 : 200) : 202;
}

/** What tells a client how to follow an operation that goes on. */
export function continuation({ id, done }: OperationSummary): Record<string, unknown> {
  return { operation_id: id, completed: done };
}

/** Where to follow an operation that goes on. */
export function locationOf({ id, done }: OperationSummary): Record<string, string> {
  return done ? {} : { Location: `/ojs/v1/jobs/bulk/${id}` };
}

/** What is answered about an operation. */
interface Begun {
  summary: OperationSummary;
  headers: Record<string, string>;
}

/**
 * The operation of a request: begun, or, under an idempotency key, gone on with.
 * @param body what is asked, with the key if it stands there
 * @param select reads which jobs are meant, with ages counted from `now`; `until` is given when an earlier request began
 * then, so that what came to pass later does not count. Both epoch ms.
 * @returns what came of it so far, and the headers of the answer
 * @throws {ApiError} 400 naming the member; 409 when the key was used for another request
 */
export async function operateOn(
  c: AppContext,
  action: BulkAction,
  body: JsonObject,
  select: (now: number, until?: number) => Selection,
  options: Pick<OperateOptions, 'items'> = {},
): Promise<Begun> {
  select(Date.now());
  const keyed = (await beginKeyed(c, body))?.operation;
  // Ages count from the beginning.
  const { filter, queues } = keyed
    ? select(keyed.started_at, keyed.replayed ? keyed.started_at : undefined)
    : select(Date.now());
  const summary = await operate(c.env, action, filter, queues, patience(c), { ...options, keyed });
  return { summary, headers: { ...locationOf(summary), ...(keyed?.replayed && REPLAYED) } };
}

/**
 * The same where the request names its jobs by `filter`.
 * @throws {ApiError} as {@link operateOn}; 400 for a condition that stands beside the filter
 */
export function operateByFilter(
  c: AppContext,
  action: BulkAction,
  body: JsonObject,
  options: Pick<OperateOptions, 'items'> = {},
): Promise<Begun> {
  refuseStrayConditions(c, body);
  return operateOn(c, action, body, (now) => filterFromBody(body.filter, now), options);
}

/**
 * Acts on all jobs that match the `filter` of the request, or on none.
 * @throws {ApiError} as {@link operateByFilter}; 422 when too many match
 */
export async function allOrNoneByFilter(
  c: AppContext,
  action: BulkAction,
  body: JsonObject,
): Promise<BulkAnswer & { replayed: boolean }> {
  refuseStrayConditions(c, body);
  filterFromBody(body.filter, Date.now());
  const keyed = await beginKeyed(c, body);
  const selection = filterFromBody(body.filter, keyed?.operation.started_at ?? Date.now());
  const answer = await actOnMatches(c.env, action, selection, keyed);
  return { ...answer, replayed: answer.applied && keyed?.operation.replayed === true };
}

/** What a client is told was done to a job. */
export const DONE: Record<BulkAction, string> = {
  cancel: 'cancelled',
  retry: 'retried',
  delete: 'deleted',
  purge: 'deleted',
};

/** What a client is told of each job. @param applied false: none was changed, because not all could be */
export function renderItems(action: BulkAction, items: readonly BulkItem[], applied = true) {
  return items.map(({ job_id, status, reason }, index) => {
    if (status !== 'done') return { index, job_id, status, reason };
    return applied
      ? { index, job_id, status: DONE[action] }
      : { index, job_id, status: 'skipped', reason: 'rolled_back' };
  });
}

/** What all or none has come to, as an operation that has ended is told of. */
export function allOrNoneSummary(action: BulkAction, { items, applied }: BulkAnswer): Record<string, unknown> {
  const culprits = items.filter(({ status }) => status !== 'done');
  const failed = culprits.filter(({ status }) => status === 'failed').length;
  return {
    action,
    matched: items.length,
    succeeded: applied ? items.length : 0,
    skipped: applied ? 0 : items.length - failed,
    failed,
    errors: culprits.slice(0, MAX_ERRORS).map(({ job_id, reason }) => ({ job_id, error: reason })),
    completed: true,
  };
}

/** The summary that operators' routes answer. */
export function bulkSummary(action: BulkAction, summary: OperationSummary): Record<string, unknown> {
  const { matched, succeeded, failed, skipped, errors } = summary;
  return { action, matched, succeeded, skipped, failed, errors, ...continuation(summary) };
}

/** 400: what cannot be undone must be confirmed. */
export function unconfirmed() {
  return invalidRequest('confirm', 'confirm must be true: what this removes or changes cannot be brought back.');
}
