/** How the outcome of an operation on many jobs is told. */
import { invalidRequest } from '../job/errors';
import type { BulkAction } from '../queue/operations/api';
import type { OperationSummary } from './operations';

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

/** The summary that operators' routes answer. */
export function bulkSummary(action: BulkAction, summary: OperationSummary): Record<string, unknown> {
  const { matched, succeeded, failed, skipped, errors } = summary;
  return { action, matched, succeeded, skipped, failed, errors, ...continuation(summary) };
}

/** 400: what cannot be undone must be confirmed. */
export function unconfirmed() {
  return invalidRequest('confirm', 'confirm must be true: what this removes or changes cannot be brought back.');
}
