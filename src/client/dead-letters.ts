import type * as contract from '../contract/dead-letters';
import type { JobEnvelope } from '../producer/envelope';
import { jsonOf, type Moment } from '../producer/job';
import type { Named } from '../producer/names';
import { jobOf } from './answers';
import { ageText, type BulkOptions, type BulkResult, purgedOf, summaryOf, waitParameter } from './bulk';
import { byCursor, collection, type ListOptions, matching } from './pages';
import { type BulkQuery, filterOf } from './queries';
import type { Age, Purged } from './queue-config';
import { pathTo, type Requests } from './requests';

/** Which dead letters to list. Conditions must all hold; times are those of the discard, inclusive. */
export type DeadLetterQuery = Omit<Named<contract.DeadLetterQuery>, 'since' | 'until'> & {
  since?: Moment;
  until?: Moment;
};

/** What to change about a job before it runs again. */
export interface RetryOverride extends Named<contract.RetryOverride> {}

export interface DeadLetterStats extends Named<contract.DeadLetterStats> {}

/** Dead letters that match, or all of all queues. `createdAfter` and `createdBefore` mean the discard. */
export type DeadLetterSelection = BulkQuery | 'all';

const DEAD_LETTERS = { queue: true, type: true, errorType: true, group: true, since: true, until: true };

/** Dead letters, as `tocsin.deadLetters`. */
export interface DeadLetters {
  /**
   * Every dead letter that matches, the one discarded last first, read page by page.
   * @example
   * for await (const job of tocsin.deadLetters.list({ queue: 'mail', errorType: 'SmtpError' })) {
   *   console.log(job.id, job.error?.message);
   * }
   */
  list(query?: DeadLetterQuery, options?: ListOptions): AsyncGenerator<JobEnvelope>;
  /** Counts them all, in all queues. It reads every one. */
  stats(): Promise<DeadLetterStats>;
  /** Reads a dead letter. @throws {NotFoundError} when there is no such job, or it is not a dead letter */
  get(id: string): Promise<JobEnvelope>;
  /**
   * Redrives a dead letter. Not repeated after a lost answer: the job may have failed again by then, and would be
   * redriven twice. A move to another queue happens once, so it is repeated.
   * @throws {NotFoundError} {@link ConflictError}
   * @example
   * await tocsin.deadLetters.retry(id, { retry: { maxAttempts: 3 } });
   */
  retry(id: string, override?: RetryOverride): Promise<JobEnvelope>;
  /** Removes a dead letter permanently. @throws {NotFoundError} when there is none */
  delete(id: string): Promise<void>;
  /**
   * Redrives many; long operations continue in the background: {@link Bulk.wait}. Without an idempotency key not
   * repeated after a lost answer.
   * @throws {InvalidJobError} when the query has no condition, or an unknown one; then nothing was done
   * @example
   * const begun = await tocsin.deadLetters.retryMany({ queue: 'mail', errorType: 'smtp.timeout' });
   * const { succeeded } = await tocsin.bulk.wait(begun);
   */
  retryMany(which: DeadLetterSelection, options?: BulkOptions): Promise<BulkResult>;
  /** Removes many permanently. Needs `admin:purge`. Otherwise as {@link DeadLetters.retryMany}. */
  deleteMany(which: DeadLetterSelection, options?: BulkOptions): Promise<BulkResult>;
  /**
   * Removes dead letters above an age. Needs `admin:purge`. Repeated like {@link DeadLetters.retryMany}.
   * @param olderThan an age, or a moment
   * @example
   * const { deleted } = await tocsin.deadLetters.purge('P30D', { queue: 'mail' });
   */
  purge(olderThan: Age, options?: BulkOptions & { queue?: string }): Promise<Purged>;
}

export function createDeadLetters(requests: Requests): DeadLetters {
  const { once, safely, underKey } = requests;
  const many =
    (method: string, path: string): DeadLetters['retryMany'] =>
    async (which, { idempotencyKey } = {}) => {
      const body = jsonOf({ confirm: true, ...(which !== 'all' && { filter: filterOf(which) }) });
      return summaryOf(await underKey(idempotencyKey)(method, `${path}?${waitParameter(requests)}`, body));
    };
  return {
    ...collection(requests, '/dead-letter', 'jobs', jobOf),
    list: (query = {}, options = {}) =>
      byCursor(safely, { path: '/dead-letter', conditions: matching(query, DEAD_LETTERS), member: 'jobs' }, options),
    stats: () => requests.read('/dead-letter/stats', 'total', 'the counts'),
    retry: async (id, override) => {
      const send = override?.queue === undefined ? once : safely;
      const body = override && jsonOf({ override }, 'The override');
      return jobOf(await send('POST', pathTo`/dead-letter/${id}/retry`, body));
    },
    retryMany: many('POST', '/dead-letter/retry'),
    deleteMany: many('DELETE', '/dead-letter'),
    purge: async (olderThan, { idempotencyKey, ...conditions } = {}) => {
      const path = `/dead-letter/purge?${waitParameter(requests)}&${matching(conditions, { queue: true })()}`;
      const body = jsonOf({ olderThan: ageText(olderThan) });
      return purgedOf(await underKey(idempotencyKey)('POST', path, body));
    },
  };
}
