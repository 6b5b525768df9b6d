/** The producer's view of a queue: enqueue, look, cancel. */
import type { JobEnvelope } from '../job/wire';
import { batchOf, enqueuedJobOf, jobOf, workflowOf } from './answers';
import { Batcher } from './batch';
import { Bulk } from './bulk';
import { Crons } from './cron';
import { DeadLetters } from './dead-letters';
import { ConflictError, DuplicateJobError, NotFoundError, type TocsinError } from './errors';
import { uuidv7 } from './id';
import { type EnqueueOptions, jsonOf, type NewJob, type PreparedJob, prepare } from './job';
import type { ClientOptions } from './options';
import {
  countJobs,
  type JobPatch,
  type JobQuery,
  type ListOptions,
  listJobs,
  type QueueCounts,
  type QueueState,
  queueStats,
  setPaused,
  wirePatch,
} from './queries';
import { createRequests, type Requests } from './requests';
import { type Retrier, withRetries } from './retry';
import { createSend, type Send } from './transport';
import { type Flow, flow, type Workflow, type WorkflowOptions, type WorkflowStatus, wireWorkflow } from './workflow';

const MAX_BATCH = 1000;

/** Job arguments by type; without type parameter anything goes. */
type AnyJobs = Record<string, readonly unknown[]>;

/** A job of any type of a job map. */
export type JobOf<Jobs extends Record<keyof Jobs, readonly unknown[]>> = {
  [Type in keyof Jobs & string]: NewJob<Type, Jobs[Type]>;
}[keyof Jobs & string];

/**
 * Enqueues jobs from a Worker with a service binding, or from anywhere by URL. Enqueues made in the same turn share a
 * request.
 *
 * @example
 * type Jobs = { 'email.send': [{ to: string; subject: string }] };
 *
 * const tocsin = new TocsinClient<Jobs>({ service: env.TOCSIN, key: env.TOCSIN_KEY });
 * const job = await tocsin.enqueue('email.send', [{ to: 'a@example.com', subject: 'Hello' }], { delay: '10s' });
 * console.log(job.id, job.state); // "0190…" "scheduled"
 */
export class TocsinClient<Jobs extends Record<keyof Jobs, readonly unknown[]> = AnyJobs> {
  readonly #send: Send;
  readonly #retrier: Retrier;
  readonly #requests: Requests;
  readonly #batcher: Batcher;
  readonly #newId: () => string | undefined;
  readonly #newWorkflowId: () => string;

  /** Makes workflows: `const { chain, group, batch, graph } = tocsin.flow;` */
  readonly flow: Flow<JobOf<Jobs>> = flow as unknown as Flow<JobOf<Jobs>>;

  /** Schedules: `await tocsin.cron.put({ name, expression: '@daily', job: { type: 'report.build', args: [] } });` */
  readonly cron: Crons<JobOf<Jobs>>;

  /** Discarded jobs that wait for a human: `await tocsin.deadLetters.retry(id);` */
  readonly deadLetters: DeadLetters;

  /** Operations on many jobs: `await tocsin.bulk.cancel({ queue: 'mail', type: 'email.*' });` */
  readonly bulk: Bulk;

  /** @throws {TypeError} when there is neither binding nor valid url, or a setting is out of range. */
  constructor(options: ClientOptions) {
    const { maxBatch = 100, linger, timeoutMs = 30_000, random = Math.random, now = Date.now } = options;
    const retry = options.retry === false ? { attempts: 1 } : options.retry;
    if (!Number.isInteger(maxBatch) || maxBatch < 1 || maxBatch > MAX_BATCH) {
      throw new TypeError(`TocsinClient: maxBatch must be a whole number of 1 to ${MAX_BATCH}`);
    }
    this.#send = createSend(options, options.key, timeoutMs, now);
    this.#retrier = {
      attempts: retry?.attempts ?? 4,
      baseMs: retry?.baseMs ?? 100,
      maxMs: retry?.maxMs ?? 10_000,
      random,
      sleep: options.sleep ?? ((ms) => new Promise((resolve) => setTimeout(resolve, ms))),
    };
    this.#requests = createRequests(this.#send, this.#retrier);
    this.cron = new Crons(this.#requests);
    this.deadLetters = new DeadLetters(this.#requests);
    this.bulk = new Bulk(this.#requests, timeoutMs);
    this.#newId = options.safeRetries ? () => uuidv7(now(), random) : () => undefined;
    this.#newWorkflowId = () => uuidv7(now(), random);
    this.#batcher = new Batcher(
      (jobs) => this.#enqueue(jobs),
      maxBatch,
      (flush) => void (linger === undefined ? queueMicrotask(flush) : setTimeout(flush, linger)),
    );
  }

  /**
   * Enqueues a job. When it resolves, the job is stored durably.
   *
   * @returns the job; with a unique policy that ignores duplicates possibly the one that existed, `deduplicated: true`
   * @throws {InvalidJobError} {@link DuplicateJobError} {@link QueueFullError} {@link UnavailableError} and others
   * @example
   * await tocsin.enqueue('image.resize', [{ key: 'a.png', width: 800 }], { queue: 'images', maxAttempts: 5 });
   */
  async enqueue<Type extends keyof Jobs & string>(
    type: Type,
    args: Jobs[Type],
    options: EnqueueOptions = {},
  ): Promise<JobEnvelope<Jobs[Type]>> {
    const envelope = await this.#batcher.add(prepare(type, args, options, this.#newId()));
    return typed<Jobs[Type]>(envelope);
  }

  /**
   * Enqueues jobs all or nothing, in one request of at most 1000 jobs and 16 MiB.
   *
   * @throws {InvalidJobError} with `details.index` of the first job that is wrong; then none was enqueued
   * @example
   * await tocsin.enqueueMany(users.map((user) => ({ type: 'email.send', args: [{ to: user.email }] })));
   */
  async enqueueMany(jobs: readonly JobOf<Jobs>[]): Promise<JobEnvelope[]> {
    if (jobs.length === 0) return [];
    return await this.#enqueue(
      jobs.map((job) => prepare(job.type, job.args, job.options ?? {}, this.#newId())),
      true,
    );
  }

  /**
   * Reads a job.
   * @throws {NotFoundError} when there is none, or its retention has passed
   */
  async get(id: string): Promise<JobEnvelope> {
    return await withRetries(this.#retrier, true, async () => jobOf(await this.#send('GET', pathOf(id))));
  }

  /**
   * Cancels a job that has not ended. A running handler is not stopped, but its report is refused.
   * @throws {NotFoundError} {@link ConflictError} when the job has ended
   */
  async cancel(id: string): Promise<JobEnvelope> {
    return await withRetries(this.#retrier, true, async ({ mayHaveHappened }) => {
      try {
        return jobOf(await this.#send('DELETE', pathOf(id)));
      } catch (error) {
        // An earlier try without an answer did it.
        const done = error instanceof ConflictError && error.details.current_state === 'cancelled';
        if (done && mayHaveHappened) return await this.get(id);
        throw error;
      }
    });
  }

  /**
   * Changes a job that waits: its time, its place, its policy. Sending it again changes nothing more.
   * @throws {NotFoundError} {@link ConflictError} when it runs or has ended; {@link InvalidJobError}
   * @example
   * await tocsin.patch(job.id, { delay: '10m', priority: 5, retry: { max_attempts: 8 } });
   */
  async patch(id: string, change: JobPatch): Promise<JobEnvelope> {
    const json = JSON.stringify(wirePatch(change));
    return await withRetries(this.#retrier, true, async () => jobOf(await this.#send('PATCH', pathOf(id), json)));
  }

  /**
   * Every job that matches, newest first, read page by page. Each is seen at most once, whatever moves meanwhile; jobs
   * enqueued after the first page are not part of it.
   * @example
   * for await (const job of tocsin.list({ queue: 'mail', state: 'discarded', where: { 'args.0.user_id': 42 } })) {
   *   console.log(job.id, job.error?.message);
   * }
   */
  list(query: JobQuery = {}, options: ListOptions = {}): AsyncGenerator<JobEnvelope> {
    return listJobs(this.#requests.safely, query, options);
  }

  /** How many jobs match, without reading them. */
  async count(query: JobQuery = {}): Promise<number> {
    return await countJobs(this.#requests.safely, query);
  }

  /** Lets a queue take jobs and give none out, until it is resumed. */
  async pause(queue: string): Promise<QueueState> {
    return await setPaused(this.#requests.safely, queue, 'pause');
  }

  /** Lets a queue give out jobs again. */
  async resume(queue: string): Promise<QueueState> {
    return await setPaused(this.#requests.safely, queue, 'resume');
  }

  /** How many jobs a queue has in each state. */
  async stats(queue: string): Promise<QueueCounts> {
    return await queueStats(this.#requests.safely, queue);
  }

  /**
   * Starts a workflow. When it resolves, the workflow is stored durably and goes its way.
   *
   * @throws {InvalidJobError} with `details.field` of what is wrong; then nothing was enqueued
   * @example
   * const { chain, group } = tocsin.flow;
   * const build = chain(
   *   { type: 'report.collect', args: [month] },
   *   group({ type: 'report.pdf', args: [] }, { type: 'report.csv', args: [] }),
   *   { type: 'report.mail', args: [to] },
   * );
   * const { id } = await tocsin.startWorkflow(build, { name: 'monthly report' });
   */
  async startWorkflow(workflow: Workflow<JobOf<Jobs>>, options: WorkflowOptions = {}): Promise<WorkflowStatus> {
    const id = options.id ?? this.#newWorkflowId();
    const json = jsonOf(wireWorkflow(workflow as Workflow, id, options), 'The workflow');
    return await withRetries(this.#retrier, true, async ({ mayHaveHappened }) => {
      try {
        return workflowOf(await this.#send('POST', '/workflows', json));
      } catch (error) {
        // An earlier try without an answer did it.
        const ours = error instanceof DuplicateJobError && error.details.existing_workflow_id === id;
        if (ours && mayHaveHappened) return await this.getWorkflow(id);
        throw error;
      }
    });
  }

  /**
   * Reads a workflow.
   * @throws {NotFoundError} when there is none, or its retention has passed
   */
  async getWorkflow(id: string): Promise<WorkflowStatus> {
    return await withRetries(this.#retrier, true, async () => workflowOf(await this.#send('GET', workflowPath(id))));
  }

  /**
   * Cancels a workflow that has not ended, and its jobs.
   * @throws {NotFoundError} {@link ConflictError} when it has ended
   */
  async cancelWorkflow(id: string): Promise<WorkflowStatus> {
    return await withRetries(this.#retrier, true, async ({ mayHaveHappened }) => {
      try {
        return workflowOf(await this.#send('DELETE', workflowPath(id)));
      } catch (error) {
        // An earlier try without an answer did it.
        const done = error instanceof ConflictError && error.details.current_state === 'cancelled';
        if (done && mayHaveHappened) return await this.getWorkflow(id);
        throw error;
      }
    });
  }

  async #enqueue(jobs: PreparedJob[], asBatch = jobs.length > 1): Promise<JobEnvelope[]> {
    const repeatable = jobs.every((job) => job.id !== undefined);
    return await withRetries(this.#retrier, repeatable, async ({ mayHaveHappened }) => {
      try {
        if (asBatch) return await this.#postBatch(jobs);
        return [enqueuedJobOf(await this.#send('POST', '/jobs', jobs[0]?.json ?? ''))];
      } catch (error) {
        const ours = error instanceof DuplicateJobError && jobs.some((job) => job.id === error.existingJobId);
        if (ours && mayHaveHappened) return await this.#existing(jobs, error);
        throw error;
      }
    });
  }

  async #postBatch(jobs: PreparedJob[]): Promise<JobEnvelope[]> {
    const json = `{"jobs":[${jobs.map((job) => job.json).join(',')}]}`;
    return batchOf(await this.#send('POST', '/jobs/batch', json), jobs.length);
  }

  /**
   * The jobs an earlier try has made: a batch is written whole, so one of them means all of them. If one is missing or
   * is of another type, an id was taken by somebody else, and the refusal stands.
   */
  async #existing(jobs: PreparedJob[], refusal: TocsinError): Promise<JobEnvelope[]> {
    try {
      const found: JobEnvelope[] = [];
      for (const job of jobs) {
        const envelope = await this.get(job.id ?? '');
        if (envelope.type !== job.type) throw refusal;
        found.push(envelope);
      }
      return found;
    } catch (error) {
      throw error instanceof NotFoundError ? refusal : error;
    }
  }
}

function pathOf(id: string): string {
  return `/jobs/${encodeURIComponent(id)}`;
}

function workflowPath(id: string): string {
  return `/workflows/${encodeURIComponent(id)}`;
}

/** The server gives back the arguments it was given. */
function typed<Args extends readonly unknown[]>(envelope: JobEnvelope): JobEnvelope<Args> {
  return envelope as unknown as JobEnvelope<Args>;
}
