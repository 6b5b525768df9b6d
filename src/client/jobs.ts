import type * as contract from '../contract/checkpoints';
import type * as history from '../contract/history';
import type * as progress from '../contract/progress';
import type { JobState } from '../job/states';
import type * as wire from '../job/wire';
import type { EnvelopeError, JobEnvelope, RetryPolicy } from '../producer/envelope';
import { ConflictError, WaitTimeoutError } from '../producer/errors';
import { jsonOf } from '../producer/job';
import { type Named, wireName } from '../producer/names';
import { jobOf, listOf, malformed, member, shaped, wasCancelled } from './answers';
import { byCursor, byOffset, type ListOptions, parametersFrom } from './pages';
import { type JobPatch, wirePatch } from './patch';
import { type JobQuery, parametersOf } from './queries';
import { pathTo, type Requests, type WaitOptions } from './requests';
import type { Send } from './transport';

/** The outcome of a job that has ended. */
export type JobOutcome<Result = unknown> =
  | { jobId: string; state: 'completed'; result: Result; completedAt: string; error?: never }
  | {
      jobId: string;
      state: 'discarded' | 'cancelled';
      result: null;
      completedAt: string | null;
      /** The last one; absent when it never failed. */
      error?: EnvelopeError;
    };

/** The outcome of a job so far. */
export type JobResult<Result = unknown> =
  | JobOutcome<Result>
  | {
      jobId: string;
      state: Exclude<JobState, JobOutcome['state']>;
      result: null;
      completedAt: null;
      error?: never;
    };

export interface JobOutcomes<Result = unknown> {
  /** By id. */
  results: Record<string, JobResult<Result>>;
  /** Unknown ids, or ids whose retention has passed. */
  missing: string[];
}

export interface JobProgress extends Named<progress.JobProgress> {}

/** The checkpoint of a job for its next attempt. */
export interface Checkpoint<State = unknown> extends Omit<Named<contract.Checkpoint>, 'state'> {
  state: State;
}

/** What is on record under the name of a step, a sleep or a signal: one of its members. Times in epoch ms. */
export interface JobStep extends Named<wire.JobStep> {}

export interface JobLogLine extends Named<wire.JobLogLine> {}

export interface JobHistoryEvent extends Named<history.JobHistoryEvent> {}

export interface FailedAttempt extends Named<history.FailedAttempt> {}

/** The failed attempts of a job, oldest first, and the policy by which it is retried. */
export interface JobRetries extends Named<history.JobRetries> {}

/** The steps in an answer; their results are the handler's own. */
export const stepsIn = (steps: Record<string, wire.JobStep>): Record<string, JobStep> =>
  Object.fromEntries(
    Object.entries(steps).map(([name, { timed_out, result_bytes: resultBytes, ...rest }]) => [
      name,
      { ...rest, ...(timed_out && { timedOut: true }), ...(resultBytes !== undefined && { resultBytes }) },
    ]),
  );

/** Ids in one request. */
const MAX_IDS = 1000;

export const isEnd = <Result>(result: JobResult<Result>): result is JobOutcome<Result> =>
  result.state === 'completed' || result.state === 'discarded' || result.state === 'cancelled';

/** Asks for many results, and again for those that did not fit in an answer. */
export async function outcomesOf<Result>(send: Send, ids: readonly string[]): Promise<JobOutcomes<Result>> {
  const outcomes: JobOutcomes<Result> = { results: {}, missing: [] };
  let left = [...new Set(ids)];
  while (left.length > 0) {
    const asked = left.slice(0, MAX_IDS);
    type Answer = JobOutcomes<Result> & { omitted: string[] };
    const body = jsonOf({ ids: asked }, 'The list');
    const answer = shaped<Answer>(await send('POST', '/jobs/results', body), 'results', 'the results');
    Object.assign(outcomes.results, answer.results);
    outcomes.missing.push(...answer.missing);
    if (answer.omitted.length >= asked.length) throw malformed('any of the results');
    left = [...answer.omitted, ...left.slice(MAX_IDS)];
  }
  return outcomes;
}

/** One page of jobs, for callers that show them page by page. */
export interface JobPage {
  jobs: JobEnvelope[];
  total: number;
  /** False: `total` is a lower bound. */
  totalIsExact: boolean;
  /** Absent on the last page. */
  nextCursor?: string;
}

/** A job with its policy, errors and reason, as operators see it. */
export interface InspectedJob extends JobEnvelope {
  retryPolicy: RetryPolicy;
  errors: NonNullable<JobEnvelope['errors']>;
  /** Its times once more. */
  metadata: Record<string, string>;
  /** Why it was discarded. */
  discardReason?: string;
  deadLetter?: boolean;
}

export type JobSummary = Omit<JobEnvelope, 'args' | 'meta' | 'result' | 'errors' | 'retryEffective'>;

export interface SummaryOrder {
  /** Default `createdAt`. */
  sort?: 'createdAt' | 'scheduledAt' | 'priority';
  /** Default `desc`. */
  order?: 'asc' | 'desc';
}

/** The longest that the server waits for the end of a job, in s. */
const LONGEST_WAIT_S = 60;

/** Jobs that exist, as `tocsin.jobs`. */
export interface StoredJobs {
  /** Reads a job. @throws {NotFoundError} when there is none, or its retention has passed */
  get(id: string): Promise<JobEnvelope>;
  /** Cancels a job; a running handler's report is refused. @throws {NotFoundError} {@link ConflictError} when ended */
  cancel(id: string): Promise<JobEnvelope>;
  /**
   * Makes a job available that was enqueued as `pending`.
   * @throws {NotFoundError} {@link ConflictError} when it is not pending
   * @example
   * const { id } = await tocsin.enqueue('order.ship', [17], { pending: true });
   * await tocsin.jobs.activate(id);
   */
  activate(id: string): Promise<JobEnvelope>;
  /**
   * Changes a waiting job: its time, its place, its policy. Sending the same change again has no further effect.
   * @throws {NotFoundError} {@link ConflictError} when it runs or has ended; {@link InvalidJobError}
   * @example
   * await tocsin.jobs.patch(job.id, { delay: '10m', priority: 5, retry: { maxAttempts: 8 } });
   */
  patch(id: string, change: JobPatch): Promise<JobEnvelope>;
  /**
   * Makes a discarded, cancelled or retrying job available now, with attempts from 0. Not repeated after a lost answer.
   * @param options.from name of a recorded step: it, and all that began after it, run again
   * @throws {NotFoundError} {@link ConflictError}
   */
  retry(id: string, options?: { from?: string | undefined }): Promise<JobEnvelope>;
  /**
   * Enqueues a copy of a job that begins with what the job had recorded before this step. Needs `admin:write`.
   * @throws {NotFoundError}
   */
  fork(id: string, options: { from: string }): Promise<JobEnvelope>;
  /**
   * Answers for a step without a result; a job that waits for its next try continues. Needs `admin:write`.
   * @param result what the step returns, any JSON value
   * @throws {NotFoundError} {@link ConflictError} while the job runs, or where the step has a result
   */
  answerStep(id: string, name: string, result: unknown): Promise<JobEnvelope>;
  /** Every job that matches, newest first, read page by page, each at most once. Later jobs are not included. */
  list(query?: JobQuery, options?: ListOptions): AsyncGenerator<JobEnvelope>;
  /** A page of {@link StoredJobs.list}. @param options `limit`: 1 … 200, default 100; `cursor`: a `nextCursor` */
  page(query?: JobQuery, options?: { limit?: number; cursor?: string }): Promise<JobPage>;
  /** How many jobs match, without reading them. */
  count(query?: JobQuery): Promise<number>;
  /** The outcome of a job so far: `result` and `error` are there once it has ended. @throws {NotFoundError} */
  result<Result = unknown>(id: string): Promise<JobResult<Result>>;
  /**
   * Waits for the end of a job, whichever it is.
   * @throws {WaitTimeoutError} when it has not ended in time (it continues); {@link NotFoundError}
   * @example
   * const outcome = await tocsin.jobs.wait<{ url: string }>(job.id, { timeoutMs: 120_000 });
   * if (outcome.state === 'completed') console.log(outcome.result.url);
   * else console.error(outcome.state, outcome.error?.message);
   */
  wait<Result = unknown>(id: string, options?: WaitOptions): Promise<JobOutcome<Result>>;
  /**
   * The outcomes of many jobs, by id.
   * @example
   * const { results, missing } = await tocsin.jobs.results(jobs.map((job) => job.id));
   */
  results<Result = unknown>(ids: readonly string[]): Promise<JobOutcomes<Result>>;
  /** The progress of a job, by its own reports. @throws {NotFoundError} */
  progress(id: string): Promise<JobProgress>;
  /**
   * Sends a signal to a job: one that waits for it continues at once, one that does not yet finds it later. The first
   * one wins.
   * @param payload what the handler is given, any JSON value
   * @throws {NotFoundError} {@link ConflictError} when the job has ended, or does not wait for the signal any more
   * @example
   * await tocsin.jobs.signal(job.id, 'approved', { by: 'ann' });
   */
  signal(id: string, name: string, payload?: unknown): Promise<JobEnvelope>;
  /** What the handler of a job has logged in all its attempts, the newest 100 lines. @throws {NotFoundError} */
  log(id: string): Promise<JobLogLine[]>;
  /** What is on record of a job's durable steps, sleeps and signals, by name. @throws {NotFoundError} */
  steps(id: string): Promise<Record<string, JobStep>>;
  /** One of them, with its result even if that is large. @throws {NotFoundError} */
  step(id: string, name: string): Promise<JobStep>;
  /** The checkpoint that a job has saved for its next attempt; undefined when there is none. @throws {NotFoundError} */
  checkpoint<State = unknown>(id: string): Promise<Checkpoint<State> | undefined>;
  /** The history of a job, oldest first, from its own record. @throws {NotFoundError} */
  history(id: string, options?: ListOptions): AsyncGenerator<JobHistoryEvent>;
  /** The attempts of a job that failed, and the policy by which it is retried. @throws {NotFoundError} */
  retries(id: string): Promise<JobRetries>;
  /** A job with its policy, all its errors, and why it was discarded. Needs `admin:read`. @throws {NotFoundError} */
  inspect(id: string): Promise<InspectedJob>;
  /** Jobs without payload. Needs `admin:read`. Orders other than creation refuse too many. @throws {InvalidJobError} */
  summaries(query?: JobQuery, options?: ListOptions & SummaryOrder): AsyncGenerator<JobSummary>;
}

export function createStoredJobs({ once, safely, read, settle, waitFor }: Requests): StoredJobs {
  const get = async (id: string) => jobOf(await safely('GET', pathTo`/jobs/${id}`));
  return {
    get,
    cancel: (id) =>
      settle(async (send) => jobOf(await send('DELETE', pathTo`/jobs/${id}`)), {
        isDone: wasCancelled,
        read: () => get(id),
      }),
    activate: (id) =>
      settle(async (send) => jobOf(await send('POST', pathTo`/jobs/${id}/activate`)), {
        isDone: (error) => error instanceof ConflictError,
        read: async (refusal) => {
          const job = await get(id);
          // A cancel may have come first.
          if (job.state === 'cancelled') throw refusal;
          return job;
        },
      }),
    patch: async (id, change) =>
      jobOf(await safely('PATCH', pathTo`/jobs/${id}`, jsonOf(wirePatch(change), 'The change'))),
    retry: async (id, { from } = {}) => {
      const body = from === undefined ? undefined : jsonOf({ from }, 'The name of the step');
      return jobOf(await once('POST', pathTo`/admin/jobs/${id}/retry`, body));
    },
    fork: async (id, { from }) =>
      jobOf(await once('POST', pathTo`/admin/jobs/${id}/clone`, jsonOf({ from }, 'The name of the step'))),
    answerStep: async (id, name, result) =>
      jobOf(await safely('PUT', pathTo`/admin/jobs/${id}/steps/${name}`, jsonOf({ result }, 'The result'))),
    list: (query = {}, options = {}) =>
      byCursor(safely, { path: '/jobs', conditions: () => parametersOf(query), member: 'jobs' }, options),
    page: async (query = {}, options = {}) => {
      const place = parametersFrom({ limit: options.limit ?? 100, cursor: options.cursor });
      const answer = await safely('GET', `/jobs?${new URLSearchParams([...parametersOf(query), ...place])}`);
      const cursor = member(member(answer, 'pagination'), 'nextCursor');
      return {
        jobs: listOf<JobEnvelope>(answer, 'jobs', 'the jobs'),
        total: shaped<{ total: number }>(answer, 'total', 'the jobs').total,
        totalIsExact: member(answer, 'totalIsExact') !== false,
        ...(typeof cursor === 'string' && { nextCursor: cursor }),
      };
    },
    count: async (query = {}) =>
      (await read<{ count: number }>(`/jobs/count?${parametersOf(query)}`, 'count', 'the count')).count,
    result: async (id) => read(pathTo`/jobs/${id}/result`, 'state', 'the result'),
    wait: <Result>(id: string, options: WaitOptions = {}) =>
      waitFor(`Job ${id}`, options, async (seconds) => {
        const query = `wait=true&timeout=${Math.min(LONGEST_WAIT_S, seconds).toFixed(3)}`;
        try {
          const answer = await read<JobResult<Result>>(pathTo`/jobs/${id}/result?` + query, 'state', 'the result');
          return isEnd(answer) ? answer : undefined;
        } catch (error) {
          if (error instanceof WaitTimeoutError) return undefined;
          throw error;
        }
      }),
    results: (ids) => outcomesOf(safely, ids),
    progress: async (id) => read(pathTo`/jobs/${id}/progress`, 'jobId', 'the progress'),
    signal: async (id, name, payload = null) =>
      jobOf(await safely('POST', pathTo`/jobs/${id}/signals/${name}`, jsonOf({ payload }, 'The payload'))),
    log: async (id) => listOf(await safely('GET', pathTo`/jobs/${id}/log`), 'lines', 'the log'),
    steps: async (id) => {
      type Answer = { steps: Parameters<typeof stepsIn>[0] };
      return stepsIn((await read<Answer>(pathTo`/jobs/${id}/steps`, 'steps', 'the steps')).steps);
    },
    step: async (id, name) => {
      type Answer = JobStep & { jobId: string; name: string };
      const path = pathTo`/jobs/${id}/steps/${name}`;
      const { jobId: _, name: __, ...step } = await read<Answer>(path, 'name', 'the step');
      return step;
    },
    checkpoint: async <State>(id: string) => {
      type Answer = { hasCheckpoint: boolean; checkpoint?: Checkpoint<State> };
      const path = pathTo`/checkpoints/${id}/resume`;
      return (await read<Answer>(path, 'hasCheckpoint', 'the checkpoint')).checkpoint;
    },
    async *history(id, options = {}) {
      yield* byCursor<JobHistoryEvent>(safely, { path: pathTo`/jobs/${id}/history`, member: 'events' }, options);
    },
    retries: async (id) => read(pathTo`/jobs/${id}/retries`, 'retries', 'the retries'),
    inspect: async (id) => read(pathTo`/admin/jobs/${id}`, 'id', 'the job'),
    summaries: (query = {}, { sort, order, ...paging } = {}) => {
      const ordered = () => parametersFrom({ sort: sort && wireName(sort), order });
      const conditions = () => new URLSearchParams([...parametersOf(query), ...ordered()]);
      const asMade = (sort ?? 'createdAt') === 'createdAt' && order !== 'asc';
      return (asMade ? byCursor : byOffset)(safely, { path: '/admin/jobs', conditions, member: 'items' }, paging);
    },
  };
}
