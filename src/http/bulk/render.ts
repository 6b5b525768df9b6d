/** The results of operations on many jobs, for clients. */
import type { Counted } from '../../across/counts';
import type { OperationSummary } from '../../across/operations';
import type { AllOrNone, Operation, OperationItem } from '../../contract/bulk';
import type { Continued, OperationPreview } from '../../contract/common';
import type { ErrorBody } from '../../contract/errors';
import { defined } from '../../job/envelope/fields';
import { conflict } from '../../job/errors';
import { quote } from '../../job/text';
import { type BulkAction, type BulkAnswer, type BulkItem, MAX_ERRORS } from '../../rpc/operations';
import { type Answer, type AppContext, json } from '../context';
import { renderError } from '../errors';

/** 202 while an operation continues, 207 when some jobs could not be acted on. */
export const statusOf = ({ done, failed }: OperationSummary): 200 | 202 | 207 =>
  done ? (failed > 0 ? 207 : 200) : 202;

/** How a client follows an operation that continues. An aborted one has ended, too. */
export const continuation = ({ id, done, aborted }: OperationSummary): Continued => ({
  operation_id: id,
  completed: done,
  ...(aborted && { aborted }),
});

/** Where to follow an operation that continues. */
export const locationOf = ({ id, done }: OperationSummary): Record<string, string> =>
  done ? {} : { Location: `/ojs/v1/jobs/bulk/${id}` };

/** The past participle of each action, for clients. */
export const DONE: Record<BulkAction, 'cancelled' | 'retried' | 'deleted'> = {
  cancel: 'cancelled',
  retry: 'retried',
  delete: 'deleted',
  purge: 'deleted',
};

/** The result for each job. @param applied false: none was changed, because not all could be */
export const renderItems = (action: BulkAction, items: readonly BulkItem[], applied = true): OperationItem[] =>
  items.map(({ job_id, status, reason }, index) => {
    if (status !== 'done') return { index, job_id, status, ...defined({ reason }) };
    return applied
      ? { index, job_id, status: DONE[action] }
      : { index, job_id, status: 'skipped', reason: 'rolled_back' };
  });

/** The error of an all-or-none request that changed nothing. Nothing when it succeeded. */
export function notApplied(c: AppContext, { items, applied }: BulkAnswer): { error?: ErrorBody } {
  const culprit = items.find(({ status }) => status !== 'done');
  if (applied || !culprit) return {};
  const { job_id, reason } = culprit;
  const message = `No job was changed: job ${quote(job_id)} cannot be (${reason}).`;
  return { error: renderError(conflict(message, { job_id, reason }).data, c) };
}

/** The result of all or none, in the form of an operation that has ended. */
export function allOrNoneSummary(action: BulkAction, { items, applied }: BulkAnswer): AllOrNone {
  const culprits = items.filter(({ status }) => status !== 'done');
  const failed = culprits.filter(({ status }) => status === 'failed').length;
  return {
    action,
    matched: items.length,
    succeeded: applied ? items.length : 0,
    skipped: applied ? 0 : items.length - failed,
    failed,
    errors: culprits.slice(0, MAX_ERRORS).map(({ job_id, reason }) => ({ job_id, ...defined({ error: reason }) })),
    completed: true,
  };
}

export function renderPreview(action: BulkAction, { counts, byQueue, exact, searched }: Counted): OperationPreview {
  const states = Object.entries(counts).filter(([, count]) => count > 0);
  return {
    ...{ dry_run: true, action },
    matched: states.reduce((sum, [, count]) => sum + count, 0),
    matched_is_exact: exact,
    by_state: Object.fromEntries(states),
    by_queue: Object.fromEntries(byQueue),
    searched,
  };
}

export function answerSummary(
  c: AppContext,
  summary: OperationSummary,
  headers: Record<string, string>,
): Answer<Operation, 200 | 202> {
  const { action, matched, succeeded, failed, skipped, errors, done } = summary;
  const answer = { action, matched, succeeded, failed, skipped, errors, ...continuation(summary) };
  return json(c, answer, done ? 200 : 202, headers);
}
