/** Operations on many jobs through the client: by their ids, or on all that match a query. */

import type { OperationItem } from '../contract/bulk';
import type { OperationPreview } from '../contract/common';
import { jsonOf, momentText } from '../producer/job';
import type { Named } from '../producer/names';
import { listOf, malformed, member, shaped } from './answers';
import { type BulkQuery, filterOf } from './queries';
import type { Age, Purged } from './queue-config';
import { pathTo, type Requests, type WaitOptions } from './requests';

/** The longest that the server waits for the end of an operation, in s. */
const MAX_WAIT_S = 20;

/** The outcome for one job. */
export type BulkItem = Omit<Named<OperationItem>, 'index'>;

export type BulkPreview = Omit<Named<OperationPreview>, 'dryRun' | 'action' | 'searched'>;

/** The outcome of an operation; its progress while it is not `completed`. */
export interface BulkResult {
  /** Absent for jobs named by ids. */
  operationId?: string;
  /** False: the operation continues in the background; see {@link Bulk.wait}. */
  completed: boolean;
  /** It was stopped before its end. */
  aborted?: true;
  matched: number;
  succeeded: number;
  /** Jobs that already were in the wanted state, or in one that the operation leaves alone. */
  skipped: number;
  failed: number;
  /** By ids, and all or none: one for each job. By query: the first 1000 jobs, then the first 100 that failed. */
  items: BulkItem[];
}

export interface BulkOptions {
  /** 1 … 256 characters. The server begins the same operation under the same key once, so the client may repeat it. */
  idempotencyKey?: string;
}

export interface BulkActOptions extends BulkOptions {
  /** All jobs or, when one cannot be, none. By query at most 1000 may match. */
  atomic?: boolean;
}

/** Operations on many jobs, as `tocsin.bulk`. Without an idempotency key none is repeated after a lost answer. */
export interface Bulk {
  /**
   * Cancels jobs that have not ended; by query only those that do not run.
   * @param jobs at most 1000 ids, or a query
   * @throws {InvalidJobError} when the query has no condition, or one that does not exist; then nothing was done
   * @example
   * const { succeeded } = await tocsin.bulk.cancel({ queue: 'mail', where: { 'args.0.campaign': 'spring' } });
   */
  cancel(jobs: readonly string[] | BulkQuery, options?: BulkActOptions): Promise<BulkResult>;
  /**
   * Makes jobs that are discarded, cancelled or wait for a retry available now, with attempts from 0.
   * @param jobs at most 1000 ids, or a query
   * @throws {InvalidJobError} as {@link Bulk.cancel}
   * @example
   * await tocsin.bulk.retry({ state: 'discarded', errorType: 'SmtpError', endedAfter: yesterday });
   */
  retry(jobs: readonly string[] | BulkQuery, options?: BulkActOptions): Promise<BulkResult>;
  /**
   * Removes jobs that have ended, permanently.
   * @param jobs at most 1000 ids, or a query
   * @throws {InvalidJobError} as {@link Bulk.cancel}
   * @example
   * const { items } = await tocsin.bulk.delete([first.id, second.id]);
   * console.log(items.filter((item) => item.status === 'failed'));
   */
  delete(jobs: readonly string[] | BulkQuery, options?: BulkActOptions): Promise<BulkResult>;
  /** Stops an operation before its next step. @returns how far it came @throws {NotFoundError} */
  abort(operationId: string): Promise<BulkResult>;
  /**
   * What an operation by query would act on now. Nothing is changed.
   * @example
   * const { matched, byState } = await tocsin.bulk.preview('retry', { queue: 'mail', q: 'timeout' });
   */
  preview(action: 'cancel' | 'retry' | 'delete', jobs: BulkQuery): Promise<BulkPreview>;
  /** The progress of an operation. Known until a day after its end. @throws {NotFoundError} */
  get(operationId: string): Promise<BulkResult>;
  /**
   * Waits for the end of an operation.
   * @param operation its id, or what {@link Bulk.cancel} and the others gave
   * @throws {WaitTimeoutError} when it has not ended in time; it continues
   * @example
   * const begun = await tocsin.bulk.delete({ queue: 'mail', endedBefore: lastYear });
   * const { succeeded } = await tocsin.bulk.wait(begun, { timeoutMs: 600_000 });
   */
  wait(operation: string | BulkResult, options?: WaitOptions): Promise<BulkResult>;
}

export function createBulk(requests: Requests): Bulk {
  const { safely } = requests;
  const act =
    (action: string, counter: 'cancelled' | 'retried' | 'deleted'): Bulk['cancel'] =>
    async (jobs, { atomic = false, idempotencyKey } = {}) => {
      if (isIds(jobs) && jobs.length === 0) {
        return { completed: true, matched: 0, succeeded: 0, skipped: 0, failed: 0, items: [] };
      }
      const path = `/jobs/bulk/${action}${isIds(jobs) ? '' : `?${waitParameter(requests)}`}`;
      const atomicity = atomic && { atomicity: 'atomic' };
      const body = isIds(jobs)
        ? jsonOf({ jobIds: jobs, ...atomicity }, 'The list')
        : jsonOf({ filter: filterOf(jobs), ...atomicity });
      const answer = await requests.underKey(idempotencyKey)('POST', path, body, { answers: [422] });
      return resultOf(answer, 'totalMatched', counter, itemsOf(answer));
    };
  const look = async (id: string, seconds: number) =>
    summaryOf(await safely('GET', `${pathTo`/jobs/bulk/${id}`}?wait=${seconds}`));
  return {
    cancel: act('cancel', 'cancelled'),
    retry: act('retry', 'retried'),
    delete: act('delete', 'deleted'),
    abort: async (id) => summaryOf(await safely('DELETE', pathTo`/jobs/bulk/${id}`)),
    preview: async (action, jobs) => {
      const body = jsonOf({ filter: filterOf(jobs), dryRun: true });
      return await requests.ask('POST', `/jobs/bulk/${action}`, 'matched', 'the counts', body);
    },
    get: (id) => look(id, 0),
    wait: async (operation, options = {}) => {
      if (typeof operation !== 'string' && operation.completed) return operation;
      const id = typeof operation === 'string' ? operation : operation.operationId;
      if (id === undefined) throw malformed('the operation');
      return await requests.waitFor(`Operation ${id}`, options, async (seconds) => {
        const result = await look(id, Math.min(MAX_WAIT_S, Math.floor(seconds)));
        return result.completed ? result : undefined;
      });
    },
  };
}

const isIds = (jobs: readonly string[] | BulkQuery): jobs is readonly string[] => Array.isArray(jobs);

/** How long the server may wait before it answers with the progress of an operation. */
export const waitParameter = ({ longestWaitMs }: Pick<Requests, 'longestWaitMs'>): string =>
  `wait=${Math.max(0, Math.min(MAX_WAIT_S, Math.floor(longestWaitMs / 1000)))}`;

const itemsOf = (answer: unknown): BulkItem[] =>
  listOf<BulkItem>(answer, 'items', 'the outcome').map(({ jobId, status, reason }) => ({
    jobId,
    status,
    ...(reason !== undefined && { reason }),
  }));

/** The summary of an operation by query. @throws {UnavailableError} */
export function summaryOf(answer: unknown): BulkResult {
  if (member(answer, 'items') !== undefined) return resultOf(answer, 'matched', 'succeeded', itemsOf(answer));
  const errors = listOf<{ jobId: string; error: string }>(answer, 'errors', 'the operation');
  const items = errors.map(({ jobId, error }): BulkItem => ({ jobId, status: 'failed', reason: error }));
  return resultOf(answer, 'matched', 'succeeded', items);
}

function resultOf(answer: unknown, matched: string, succeeded: string, items: BulkItem[]): BulkResult {
  const count = (name: string): number => {
    const value = member(answer, name);
    if (typeof value !== 'number') throw malformed('the counts');
    return value;
  };
  const operationId = member(answer, 'operationId');
  return {
    ...(typeof operationId === 'string' && { operationId }),
    completed: member(answer, 'completed') !== false,
    ...(member(answer, 'aborted') === true && { aborted: true as const }),
    matched: count(matched),
    succeeded: count(succeeded),
    skipped: count('skipped'),
    failed: count('failed'),
    items,
  };
}

export function purgedOf(answer: unknown): Purged {
  type Answer = { deleted: number; operationId: string };
  const { deleted, operationId } = shaped<Answer>(answer, 'deleted', 'the outcome');
  return { deleted, operationId, completed: member(answer, 'completed') !== false };
}

export const ageText = (age: Age): string => (typeof age === 'string' ? age : (momentText(age, 'olderThan') ?? ''));
