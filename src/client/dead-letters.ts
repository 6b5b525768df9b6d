import type * as contract from '../contract/dead-letters';
import type { JobEnvelope } from '../producer/envelope';
import { jsonOf, type Moment, momentText } from '../producer/job';
import type { Named } from '../producer/names';
import { jobOf } from './answers';
import { type BulkOptions, type BulkResult, summaryOf, waitParameter } from './bulk';
import { checked } from './conditions';
import { keyHeader } from './enqueue';
import { byCursor, type ListOptions, parametersFrom } from './pages';
import { type BulkQuery, filterOf } from './queries';
import { type Age, ageText, type Purged, purgedOf } from './queue-config';
import type { Requests } from './requests';
import { pathTo } from './transport';

/** Which dead letters to list. Conditions must all hold; times are those of the discard, inclusive. */
export type DeadLetterQuery = Omit<Named<contract.DeadLetterQuery>, 'since' | 'until'> & {
  since?: Moment;
  until?: Moment;
};

/** What to change about a job before it runs again. */
export interface RetryOverride extends Named<contract.RetryOverride> {}

/** How many dead letters there are, and of what kind. */
export interface DeadLetterStats extends Named<contract.DeadLetterStats> {}

/** Dead letters that match, or all of all queues. `createdAfter` and `createdBefore` mean the discard. */
export type DeadLetterSelection = BulkQuery | 'all';

const DEAD_LETTERS = { queue: true, type: true, errorType: true, group: true, since: true, until: true };

/** Dead letters, as `tocsin.deadLetters`. */
export class DeadLetters {
  constructor(private readonly requests: Requests) {}

  /**
   * Every dead letter that matches, the one discarded last first, read page by page.
   * @example
   * for await (const job of tocsin.deadLetters.list({ queue: 'mail', errorType: 'SmtpError' })) {
   *   console.log(job.id, job.error?.message);
   * }
   */
  async *list(query: DeadLetterQuery = {}, options: ListOptions = {}): AsyncGenerator<JobEnvelope> {
    const { since, until, ...others } = checked(query, DEAD_LETTERS);
    const times = { since: momentText(since, 'since'), until: momentText(until, 'until') };
    const conditions = parametersFrom({ ...others, ...times });
    const list = { path: '/dead-letter', conditions, member: 'jobs' };
    yield* byCursor<JobEnvelope>(this.requests.safely, list, options);
  }

  /** Counts them all, in all queues. It reads every one. */
  async stats(): Promise<DeadLetterStats> {
    return await this.requests.read<DeadLetterStats>('/dead-letter/stats', 'total', 'the counts');
  }

  /** Reads a dead letter. @throws {NotFoundError} when there is no such job, or it is not a dead letter */
  async get(id: string): Promise<JobEnvelope> {
    return jobOf(await this.requests.safely('GET', pathTo`/dead-letter/${id}`));
  }

  /**
   * Redrives a dead letter. Not repeated after a lost answer: the job may have failed again by then, and would be
   * redriven twice. A move to another queue happens once, so it is repeated.
   * @throws {NotFoundError} {@link ConflictError}
   * @example
   * await tocsin.deadLetters.retry(id, { retry: { maxAttempts: 3 } });
   */
  async retry(id: string, override?: RetryOverride): Promise<JobEnvelope> {
    const body = override && jsonOf({ override }, 'The override');
    const send = override?.queue === undefined ? this.requests.once : this.requests.safely;
    return jobOf(await send('POST', pathTo`/dead-letter/${id}/retry`, body));
  }

  /** Removes a dead letter permanently. @throws {NotFoundError} when there is none */
  async delete(id: string): Promise<void> {
    await this.requests.remove(pathTo`/dead-letter/${id}`);
  }

  /**
   * Redrives many; long operations continue in the background: {@link Bulk.wait}. Without an idempotency key not
   * repeated after a lost answer.
   * @throws {InvalidJobError} when the query has no condition, or an unknown one; then nothing was done
   * @example
   * const begun = await tocsin.deadLetters.retryMany({ queue: 'mail', errorType: 'smtp.timeout' });
   * const { succeeded } = await tocsin.bulk.wait(begun);
   */
  async retryMany(which: DeadLetterSelection, options: BulkOptions = {}): Promise<BulkResult> {
    return await this.#many('POST', '/dead-letter/retry', which, options);
  }

  /** Removes many permanently. Needs `admin:purge`. Otherwise as {@link DeadLetters.retryMany}. */
  async deleteMany(which: DeadLetterSelection, options: BulkOptions = {}): Promise<BulkResult> {
    return await this.#many('DELETE', '/dead-letter', which, options);
  }

  /**
   * Removes dead letters above an age. Needs `admin:purge`. Repeated like {@link DeadLetters.retryMany}.
   * @param olderThan an age, or a moment
   * @example
   * const { deleted } = await tocsin.deadLetters.purge('P30D', { queue: 'mail' });
   */
  async purge(olderThan: Age, options: BulkOptions & { queue?: string } = {}): Promise<Purged> {
    const body = jsonOf({ olderThan: ageText(olderThan) });
    const { idempotencyKey: _, ...conditions } = options;
    const parameters = parametersFrom({ ...checked(conditions, { queue: true }) });
    const path = `/dead-letter/purge?${waitParameter(this.requests)}&${parameters}`;
    return purgedOf(await this.#send('POST', path, body, options));
  }

  async #many(method: string, path: string, which: DeadLetterSelection, options: BulkOptions): Promise<BulkResult> {
    const body = jsonOf({ confirm: true, ...(which !== 'all' && { filter: filterOf(which) }) });
    return summaryOf(await this.#send(method, `${path}?${waitParameter(this.requests)}`, body, options));
  }

  async #send(method: string, path: string, body: string, { idempotencyKey }: BulkOptions): Promise<unknown> {
    const send = idempotencyKey === undefined ? this.requests.once : this.requests.safely;
    return await send(method, path, body, { headers: keyHeader(idempotencyKey) });
  }
}
