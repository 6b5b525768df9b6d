/** Operations on many jobs through the client: by their ids, or on all that match a query. */
import { malformed, member } from './answers';
import { jsonOf, type Moment, momentText } from './job';
import { invalid, type JobQuery } from './queries';
import type { Requests } from './requests';

/** The longest the server waits for the end of an operation, in s. */
const MAX_WAIT_S = 20;

/** Which jobs to act on; at least one condition. */
export type BulkQuery = Omit<JobQuery, 'deadLetter'>;

/** What became of one job. */
export interface BulkItem {
  job_id: string;
  status: 'cancelled' | 'retried' | 'deleted' | 'skipped' | 'failed';
  /** Why it was skipped or failed. */
  reason?: string;
}

/** What came of an operation, so far when it is not `completed`. */
export interface BulkResult {
  /** Absent for jobs named by ids. */
  operationId?: string;
  /** False: it goes on by itself; see {@link Bulk.get}. */
  completed: boolean;
  matched: number;
  /** Jobs it was done to. */
  succeeded: number;
  /** Jobs that were so already, or in a state that is left alone. */
  skipped: number;
  failed: number;
  /** By ids: one for each, in order. By query: the first 100 that failed. */
  items: BulkItem[];
}

/**
 * Operations on many jobs, as `tocsin.bulk`. None is repeated when there was no answer: a query may match other jobs by
 * then, and the result would not tell what the first try has done.
 */
export class Bulk {
  readonly #requests: Requests;
  readonly #waitS: number;

  /** @param timeoutMs how long the client waits for an answer; the server is asked to answer well before */
  constructor(requests: Requests, timeoutMs: number) {
    this.#requests = requests;
    this.#waitS = Math.max(0, Math.min(MAX_WAIT_S, Math.floor(timeoutMs / 2000)));
  }

  /**
   * Cancels jobs that have not ended; by query not those that run.
   * @param jobs at most 1000 ids, or a query
   * @throws {InvalidJobError} when the query has no condition, or one nobody knows; then nothing was done
   * @example
   * const { succeeded } = await tocsin.bulk.cancel({ queue: 'mail', where: { 'args.0.campaign': 'spring' } });
   */
  async cancel(jobs: readonly string[] | BulkQuery): Promise<BulkResult> {
    return await this.#act('cancel', 'cancelled', jobs);
  }

  /**
   * Gives jobs that are discarded, cancelled or wait for a retry another life: now, with attempts from 0.
   * @param jobs at most 1000 ids, or a query
   * @throws {InvalidJobError} as {@link Bulk.cancel}
   * @example
   * await tocsin.bulk.retry({ state: 'discarded', errorType: 'SmtpError', endedAfter: yesterday });
   */
  async retry(jobs: readonly string[] | BulkQuery): Promise<BulkResult> {
    return await this.#act('retry', 'retried', jobs);
  }

  /**
   * Removes jobs that have ended, for good.
   * @param jobs at most 1000 ids, or a query
   * @throws {InvalidJobError} as {@link Bulk.cancel}
   * @example
   * const { items } = await tocsin.bulk.delete([first.id, second.id]);
   * console.log(items.filter((item) => item.status === 'failed'));
   */
  async delete(jobs: readonly string[] | BulkQuery): Promise<BulkResult> {
    return await this.#act('delete', 'deleted', jobs);
  }

  /**
   * How far an operation is; waits a while for its end. Known until a day after the end.
   * @throws {NotFoundError}
   * @example
   * let result = await tocsin.bulk.delete({ queue: 'mail', endedBefore: lastYear });
   * while (!result.completed && result.operationId) result = await tocsin.bulk.get(result.operationId);
   */
  async get(operationId: string): Promise<BulkResult> {
    const path = `/jobs/bulk/${encodeURIComponent(operationId)}?wait=${this.#waitS}`;
    const answer = await this.#requests.safely('GET', path);
    const errors = member(answer, 'errors');
    if (!Array.isArray(errors)) throw malformed('the operation');
    const items = errors.map(({ job_id, error }): BulkItem => ({ job_id, status: 'failed', reason: error }));
    return resultOf(answer, 'matched', 'succeeded', items);
  }

  async #act(
    action: string,
    counter: 'cancelled' | 'retried' | 'deleted',
    jobs: readonly string[] | BulkQuery,
  ): Promise<BulkResult> {
    const path = `/jobs/bulk/${action}`;
    if (isIds(jobs) && jobs.length === 0) {
      return { completed: true, matched: 0, succeeded: 0, skipped: 0, failed: 0, items: [] };
    }
    const answer = isIds(jobs)
      ? await this.#requests.once('POST', path, jsonOf({ job_ids: jobs }, 'The list'))
      : await this.#requests.once('POST', `${path}?wait=${this.#waitS}`, jsonOf({ filter: wireFilter(jobs) }));
    const items = member(answer, 'items');
    if (!Array.isArray(items)) throw malformed('the outcome');
    return resultOf(
      answer,
      'total_matched',
      counter,
      items.map(({ job_id, status, reason }) => ({ job_id, status, ...(reason !== undefined && { reason }) })),
    );
  }
}

function isIds(jobs: readonly string[] | BulkQuery): jobs is readonly string[] {
  return Array.isArray(jobs);
}

function resultOf(answer: unknown, matched: string, succeeded: string, items: BulkItem[]): BulkResult {
  const count = (name: string): number => {
    const value = member(answer, name);
    if (typeof value !== 'number') throw malformed('the counts');
    return value;
  };
  const operationId = member(answer, 'operation_id');
  return {
    ...(typeof operationId === 'string' && { operationId }),
    completed: member(answer, 'completed') !== false,
    matched: count(matched),
    succeeded: count(succeeded),
    skipped: count('skipped'),
    failed: count('failed'),
    items,
  };
}

/** Conditions → their wire names. */
const CONDITIONS: Record<keyof BulkQuery, string> = {
  queue: 'queue',
  ids: 'ids',
  type: 'type',
  state: 'state',
  tags: 'tags',
  priority: 'priority',
  attempts: 'attempts',
  createdAfter: 'created_after',
  createdBefore: 'created_before',
  enqueuedAfter: 'enqueued_after',
  enqueuedBefore: 'enqueued_before',
  scheduledAfter: 'scheduled_after',
  scheduledBefore: 'scheduled_before',
  endedAfter: 'ended_after',
  endedBefore: 'ended_before',
  errorType: 'error_type',
  where: 'where',
};

/** What cannot be sent would widen the query, so it is refused. @throws {InvalidJobError} */
function wireFilter(query: BulkQuery): Record<string, unknown> {
  const filter: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(query)) {
    const wireName = Object.hasOwn(CONDITIONS, name) ? CONDITIONS[name as keyof BulkQuery] : undefined;
    if (wireName === undefined) throw invalid(`${name} is not a condition of an operation on many jobs.`, name);
    // JSON has no other word for NaN than null, which the server takes for no condition.
    if (value === null || Number.isNaN(value)) throw invalid(`${name} must have a value.`, name);
    if (value !== undefined) filter[wireName] = isMoment(name, value) ? momentText(value, name) : value;
  }
  if (Object.keys(filter).length > 0) return filter;
  throw invalid('Name at least one condition; for all jobs of a queue, name the queue.', 'filter');
}

function isMoment(name: string, value: unknown): value is Moment {
  return (
    /(After|Before)$/.test(name) && (value instanceof Date || typeof value === 'number' || typeof value === 'string')
  );
}
