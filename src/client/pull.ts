/** A worker that pulls, through the client: fetch, report, extend leases. */
import type { JobEnvelope } from '../job/wire';
import { jobOf, listOf, shaped } from './answers';
import { jsonOf, momentText } from './job';
import type { Requests } from './requests';
import type { Checkpoint, JobProgress } from './results';
import { type JobFailure, type RunOptions, runWorker, type WorkerHandlers } from './run';
import { pathTo } from './transport';
import type { Directive } from './workers';

/** How a worker describes itself. */
export interface WorkerOptions {
  /** Fetched from in this order. */
  queues: readonly string[];
  /** Length of its leases, in ms. Default: that of the job, else of its queue, else 30 minutes. */
  visibilityTimeoutMs?: number;
  /** Shown to operators. */
  hostname?: string;
  pid?: number;
  concurrency?: number;
  version?: string;
  labels?: Record<string, unknown> | readonly unknown[];
}

/** How far a job is. */
export interface ProgressReport {
  /** 0 … 1. */
  progress: number;
  message?: string;
  data?: Record<string, unknown>;
  /** Saved together with the progress, both or neither. */
  checkpoint?: unknown;
}

/** A heartbeat's answer. */
export interface HeartbeatAnswer {
  /** What the worker should do. */
  state: Directive;
  /** Jobs whose leases were extended. */
  jobs_extended: string[];
  server_time: string;
}

/** A job that a worker has leased, with what its reports need. */
export type Held = Pick<JobEnvelope, 'id' | 'attempt'>;

/** The longest that the server waits for work, in ms. */
const LONGEST_WAIT_MS = 20_000;

/**
 * A worker that pulls, made by `tocsin.worker(id, options)`. Its reports name the attempt, so they may be repeated
 * after a lost answer. A late one is a {@link ConflictError} and changes nothing.
 */
export class PullWorker<Job extends Held & { type: string } = JobEnvelope> {
  constructor(
    private readonly requests: Requests,
    /** The worker's name for itself. */
    readonly id: string,
    private readonly options: WorkerOptions,
  ) {}

  /**
   * Claims jobs, each under a lease. Not repeated after a lost answer: those jobs are available again when their leases
   * end.
   * @param options.count at most so many, 1 … 100; default 1
   * @param options.waitMs how long to wait for the first, 0 … 20000, at most half of the client's timeout; default 0
   * @example
   * const jobs = await worker.fetch({ count: 10, waitMs: 10_000 });
   */
  async fetch(options: { count?: number; waitMs?: number } = {}): Promise<Job[]> {
    const wait = Math.min(options.waitMs ?? 0, LONGEST_WAIT_MS, this.requests.longestWaitMs);
    const body = {
      queues: this.options.queues,
      count: options.count,
      wait_ms: wait > 0 ? Math.floor(wait) : undefined,
      worker_id: this.id,
      visibility_timeout_ms: this.options.visibilityTimeoutMs,
    };
    return listOf<Job>(await this.requests.once('POST', '/workers/fetch', jsonOf(body)), 'jobs', 'the jobs');
  }

  /**
   * Fetches and runs jobs, extends their leases and obeys operators, until the signal fires or an operator says
   * `terminate`. Resolves when every job that it began is reported.
   * @example
   * const stop = new AbortController();
   * process.on('SIGTERM', () => stop.abort());
   * await worker.run({ 'greeting.write': (job) => ({ text: `Hello, ${job.args[0]}!` }) }, { signal: stop.signal });
   */
  async run(handlers: WorkerHandlers<Job>, options: RunOptions): Promise<void> {
    await runWorker<Job>(this, handlers, options);
  }

  /** Completes a job. @throws {ConflictError} when the attempt is over; {@link NotFoundError} */
  async ack(job: Held, result?: unknown): Promise<JobEnvelope> {
    return await this.#report('/workers/ack', job, { result });
  }

  /**
   * Reports a failure; the retry policy decides what follows.
   * @param error what was thrown, or a description
   * @throws {ConflictError} when the attempt is over; {@link NotFoundError}
   */
  async nack(job: Held, error: Error | JobFailure): Promise<JobEnvelope> {
    return await this.#report('/workers/nack', job, { error: wireFailure(error) });
  }

  /** Gives a job back without an error; the attempt stays counted. @throws {ConflictError} {@link NotFoundError} */
  async release(job: Held): Promise<JobEnvelope> {
    return await this.#report('/workers/nack', job, { requeue: true });
  }

  /**
   * Extends leases, makes the worker known, and returns what it must do. Send one every few seconds.
   * @param held the jobs it works on; absent: all that the server knows it to hold
   * @param state what it does: `stopped` is its last word
   */
  async heartbeat(
    held?: readonly (string | Held)[],
    state?: 'running' | 'quiet' | 'drain' | 'terminate' | 'stopped',
  ): Promise<HeartbeatAnswer> {
    const { visibilityTimeoutMs, ...about } = this.options;
    const body = {
      worker_id: this.id,
      ...about,
      state,
      active_jobs: held?.map((job) => (typeof job === 'string' ? job : job.id)),
      visibility_timeout_ms: visibilityTimeoutMs,
    };
    const answer = await this.requests.safely('POST', '/workers/heartbeat', jsonOf(body, 'The heartbeat'));
    return shaped<HeartbeatAnswer>(answer, 'state', 'the directive');
  }

  /** Reports the progress of a job, and extends its lease. @throws {NotFoundError} */
  async progress(job: Held, report: ProgressReport): Promise<JobProgress> {
    const answer = await this.requests.safely('PUT', pathTo`/jobs/${job.id}/progress`, this.#about(job, { ...report }));
    return shaped<JobProgress>(answer, 'job_id', 'the progress');
  }

  /** Saves a checkpoint of a job for its next attempt. @throws {ConflictError} when this one is over */
  async saveCheckpoint<State>(job: Held, state: State): Promise<Checkpoint<State>> {
    const body = this.#about(job, { state });
    const answer = await this.requests.safely('PUT', pathTo`/jobs/${job.id}/checkpoint`, body);
    return shaped<{ checkpoint: Checkpoint<State> }>(answer, 'checkpoint', 'the checkpoint').checkpoint;
  }

  /** Deletes the checkpoint of a job. @throws {ConflictError} when this attempt is over */
  async deleteCheckpoint(job: Held): Promise<void> {
    await this.requests.safely('DELETE', pathTo`/jobs/${job.id}/checkpoint`, this.#about(job, {}));
  }

  #about({ attempt }: Held, content: Record<string, unknown>): string {
    return jsonOf({ attempt, worker_id: this.id, ...content }, 'The report');
  }

  async #report(path: string, job: Held, content: Record<string, unknown>): Promise<JobEnvelope> {
    return jobOf(await this.requests.safely('POST', path, this.#about(job, { job_id: job.id, ...content })));
  }
}

function wireFailure(error: Error | JobFailure): Record<string, unknown> {
  if (error instanceof Error) return { type: error.name, message: error.message };
  const { retryIn, retryAt, ...members } = error;
  return { ...members, retry_in: retryIn, retry_at: momentText(retryAt, 'retryAt') };
}
