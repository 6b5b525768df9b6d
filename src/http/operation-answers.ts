/** How the outcome of an operation on many jobs is told. */
import { invalidRequest } from '../job/errors';
import type { BulkAction } from '../queue/operations/api';
import type { JsonObject } from './body';
import type { AppContext } from './context';
import { filterFromBody } from './filter';
import { beginKeyed, REPLAYED } from './idempotency';
import { type OperationSummary, operate, patience } from './operations';

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

/**
 * The operation of a request that names its jobs by `filter`: begun, or, under an idempotency key, gone on with.
 * @returns what came of it so far, and the headers of the answer
 * @throws {ApiError} 400 naming the member; 409 when the key was used for another request
 */
export async function operateByFilter(
  c: AppContext,
  action: BulkAction,
  body: JsonObject,
): Promise<{ summary: OperationSummary; headers: Record<string, string> }> {
  filterFromBody(body.filter, Date.now());
  const operation = (await beginKeyed(c, body))?.operation;
  // Ages count from the beginning.
  const { filter, queues } = filterFromBody(body.filter, operation?.started_at ?? Date.now());
  const summary = await operate(c.env, action, filter, queues, patience(c), operation);
  return { summary, headers: { ...locationOf(summary), ...(operation?.replayed && REPLAYED) } };
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
