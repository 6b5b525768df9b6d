/** Discarded jobs that wait for a human, through the client: look, give another life, remove. */
import type { JobEnvelope, RetryPolicy } from '../job/wire';
import { jobOf } from './answers';
import { jsonOf, type Moment, momentText } from './job';
import { type ListOptions, pagesOf } from './queries';
import type { Requests } from './requests';

/** Which dead letters are meant. Conditions must all hold; times are those of the discard, inclusive. */
export interface DeadLetterQuery {
  queue?: string;
  type?: string;
  /** Type of the last error. */
  errorType?: string;
  since?: Moment;
  until?: Moment;
}

/** What to change about a job before it runs again. */
export interface RetryOverride {
  /** Members to add or replace. */
  meta?: Record<string, unknown>;
  /** Members replace those of the job's own policy. */
  retry?: RetryPolicy;
}

/** Dead letters, as `tocsin.deadLetters`. Many at once: {@link Bulk}. */
export class DeadLetters {
  readonly #requests: Requests;

  constructor(requests: Requests) {
    this.#requests = requests;
  }

  /**
   * Every dead letter that matches, the one discarded last first, read page by page.
   * @example
   * for await (const job of tocsin.deadLetters.list({ queue: 'mail', errorType: 'SmtpError' })) {
   *   console.log(job.id, job.error?.message);
   * }
   */
  async *list(query: DeadLetterQuery = {}, options: ListOptions = {}): AsyncGenerator<JobEnvelope> {
    const conditions = {
      queue: query.queue,
      type: query.type,
      error_type: query.errorType,
      since: momentText(query.since, 'since'),
      until: momentText(query.until, 'until'),
    };
    const parameters = new URLSearchParams();
    for (const [name, value] of Object.entries(conditions)) if (value !== undefined) parameters.set(name, value);
    yield* pagesOf(this.#requests.safely, '/dead-letter', parameters, options);
  }

  /**
   * Reads a dead letter.
   * @throws {NotFoundError} when there is no such job, or it is no dead letter
   * @example
   * const { error } = await tocsin.deadLetters.get(id);
   */
  async get(id: string): Promise<JobEnvelope> {
    return jobOf(await this.#requests.safely('GET', pathOf(id)));
  }

  /**
   * Gives a dead letter another life. Not repeated when there was no answer: by then it may have failed again, and would
   * get one life more.
   *
   * @throws {NotFoundError} {@link ConflictError}
   * @example
   * await tocsin.deadLetters.retry(id, { retry: { max_attempts: 3 } });
   */
  async retry(id: string, override?: RetryOverride): Promise<JobEnvelope> {
    const body = override && jsonOf({ override }, 'The override');
    return jobOf(await this.#requests.once('POST', `${pathOf(id)}/retry`, body));
  }

  /**
   * Removes a dead letter for good.
   * @throws {NotFoundError} when there is no such job, or it is no dead letter
   * @example
   * await tocsin.deadLetters.delete(id);
   */
  async delete(id: string): Promise<void> {
    await this.#requests.remove(pathOf(id));
  }
}

function pathOf(id: string): string {
  return `/dead-letter/${encodeURIComponent(id)}`;
}
