import type { LogEntry } from '../handler/journal';
import { snoozeOf } from '../handler/outcomes';
import type { DeliveryOutcome } from '../handler/protocol';
import type { StepRecord } from '../handler/step-rules';
import type { SignalUrlAsked, StreamMessage } from '../handler/voice';
import { DEFAULT_QUEUE } from '../job/options';
import type { JobEnvelope } from '../producer/envelope';
import { jsonOf } from '../producer/job';
import { batchOf, enqueuedJobOf, jobOf, listOf, member, shaped } from './answers';
import type { Checkpoint } from './jobs';
import { parametersFrom } from './pages';
import type {
  HeartbeatAnswer,
  Leases,
  ProgressAnswer,
  ProgressReport,
  RecordedStep,
  RunnableHandlers,
  RunOptions,
  Wanted,
  WorkerOptions,
} from './pull-types';
import type { Exchanged, FetchOptions, Held, ReleaseOptions, WorkerConnection } from './puller';
import type { Address } from './pulse';
import {
  type EndedJob,
  type JobFailure,
  type Note,
  outcomesOf,
  type ReportOutcome,
  reportOf,
  reportOfEnded,
  type SentReport,
  stepRecordOf,
  wireFailure,
  writeAnswer,
  writeReport,
} from './report';
import { pathTo, type Requests } from './requests';
import { createTokens } from './tokens';
import { PROTOCOL, type QueueSocket, type QueueSocketEvents, WorkerChannel } from './worker-channel';

const textsOf = (reports: readonly SentReport[]) => reports.map(({ text }) => text).join(',');
const idsOf = (reports: readonly SentReport[]) => reports.map(({ jobId }) => jobId);

/** The longest that the server waits for work, in ms. */
const LONGEST_WAIT_MS = 20_000;

/** Longest list of types in the address of a socket, in characters of JSON. */
const MAX_TYPES_CHARS = 1200;

/** Longest settings of handlers in the address of a socket, in characters of JSON. */
const MAX_HANDLERS_CHARS = 4096;

/** Default lease of jobs that `run` fetches, in ms: heartbeats keep it, and it ends soon after its worker died. */
const LEASE_MS = 60_000;

/** What a run needs of its worker. */
export type Puller = Pick<PullWorker, keyof PullWorker>;

type Run = <Job extends { type: string; args: readonly unknown[] }, Env>(
  worker: Puller,
  handlers: RunnableHandlers<Job, Env>,
  options: RunOptions<Env>,
  leases: Leases,
) => Promise<void>;

let runner: Run | undefined;

/** Makes `worker.run` possible: its code comes with `tocsin/client`, not with the client inside the queue's Worker. */
export function runWorkersBy(run: Run): void {
  runner = run;
}

/**
 * A pull worker, made by `tocsin.worker(id, options)`. Reports name the attempt and its claim, so they may be
 * repeated; a late one is a {@link ConflictError} and changes nothing.
 */
export class PullWorker<Job extends Held & { type: string; args: readonly unknown[] } = JobEnvelope> {
  readonly #requests: Requests;
  readonly #listeners = new Set<(job: Held) => void>();

  /** @param connect makes requests under settings of the client, some changed */
  constructor(
    private readonly connect: (settings: WorkerConnection) => Requests,
    /** The worker's name for itself. */
    readonly id: string,
    private readonly options: WorkerOptions,
    /** Default length of its leases, in ms. */
    private readonly defaultLeaseMs?: number,
  ) {
    this.#requests = connect({});
  }

  with(settings: WorkerConnection): PullWorker<Job> {
    const connect = (more?: WorkerConnection) => this.connect({ ...settings, ...more });
    return new PullWorker<Job>(connect, this.id, this.options, this.defaultLeaseMs);
  }

  /**
   * Claims jobs, each under a lease. Not repeated after a lost answer: those jobs are available again when their leases
   * end.
   * @example
   * const jobs = await worker.fetch({ count: 10, waitMs: 10_000 });
   */
  async fetch(options: FetchOptions = {}): Promise<Job[]> {
    return listOf<Job>(await this.#requests.once('POST', '/workers/fetch', this.#wanted(options)), 'jobs', 'the jobs');
  }

  /** Where its heartbeats go over the network. */
  get address(): Address | undefined {
    return this.#requests.address;
  }

  /** What it works on, the most urgent first. */
  get queues(): readonly string[] {
    return this.options.queues;
  }

  #wanted({ count, counts, waitMs = 0, types, handlers, queues = this.queues }: FetchOptions): string {
    const wait = Math.min(waitMs, this.longestWaitMs);
    const waiting = { waitMs: wait > 0 ? Math.floor(wait) : undefined };
    const wanted = jsonOf({ queues, count, ...waiting, types, handlers, workerId: this.id, ...this.#leases });
    // Keyed by names of queues, which stay as they are.
    return counts ? `${wanted.slice(0, -1)},"counts":${JSON.stringify(counts)}}` : wanted;
  }

  get #leases() {
    const { visibilityTimeoutMs } = this.options;
    const defaultMs = visibilityTimeoutMs === undefined ? this.defaultLeaseMs : undefined;
    return { visibilityTimeoutMs, defaultVisibilityTimeoutMs: defaultMs };
  }

  /** Reports and fetches in one request, not repeated. `outcomes` is absent with a server of an earlier release. */
  async exchange(reports: readonly SentReport[], { waitMs: _, ...options }: FetchOptions): Promise<Exchanged<Job>> {
    const wanted = this.#wanted(options);
    const body = `${wanted.slice(0, -1)},"reports":[${textsOf(reports)}]}`;
    const answer = await this.#requests.once('POST', '/workers/fetch', body);
    const jobs = listOf<Job>(answer, 'jobs', 'the jobs');
    const reported = member(answer, 'reports');
    return reported === undefined ? { jobs } : { jobs, outcomes: outcomesOf(reported, idsOf(reports)) };
  }

  /** The longest that a fetch waits, in ms: the server allows 20 s, and the client must not give up before. */
  get longestWaitMs(): number {
    return Math.min(LONGEST_WAIT_MS, this.#requests.longestWaitMs);
  }

  /**
   * Fetches and runs jobs of the types that it has handlers for, extends their leases and obeys operators. It ends when
   * the signal fires or an operator directs `terminate`. Resolves when every job that it began is reported, or given
   * back after `shutdownTimeoutMs`.
   * @param handlers functions of `(job, ctx)` by type, or what `defineHandlers` returned
   * @throws {TypeError} when a handler or an option is wrong
   * @throws {UnauthorizedError} when the key is refused before any fetch was answered
   * @example
   * const stop = new AbortController();
   * process.on('SIGTERM', () => stop.abort());
   * await worker.run({ 'greeting.write': (job) => ({ text: `Hello, ${job.args[0]}!` }) }, { signal: stop.signal });
   */
  async run<Env = unknown>(handlers: RunnableHandlers<Job, Env>, options: RunOptions<Env>): Promise<void> {
    if (!runner) throw new TypeError("worker.run: what runs workers is not in this Worker: add import 'tocsin/client'");
    const { concurrency } = options;
    const about = { ...(concurrency !== undefined && { concurrency }), ...this.options };
    const own = new PullWorker(this.connect, this.id, about, LEASE_MS);
    const unsubscribe = this.onCancelled((job) => own.#notify(job));
    try {
      await runner<Job, Env>(own, handlers, options, {
        chosenMs: this.options.visibilityTimeoutMs,
        defaultMs: LEASE_MS,
      });
    } finally {
      unsubscribe();
    }
  }

  /** Completes a job. @throws {ConflictError} when the attempt is over; {@link NotFoundError} */
  async ack(job: Held, result?: unknown): Promise<JobEnvelope> {
    return await this.#report('/workers/ack', job, { result });
  }

  /**
   * Reports a failure; the retry policy decides what follows, unless the error does.
   * @param error what was thrown, such as `retryIn('30s')` of `tocsin/handler`, or a description
   * @throws {ConflictError} when the attempt is over; {@link NotFoundError}
   */
  async nack(job: Held, error: Error | JobFailure): Promise<JobEnvelope> {
    const snooze = snoozeOf(error);
    if (snooze !== undefined) return await this.settle(job, { status: 'snoozed', in: snooze });
    return await this.#report('/workers/nack', job, { error: wireFailure(error) });
  }

  /** Reports how a handler ended, in the words of a handler Worker. */
  async settle(job: Held, answer: DeliveryOutcome): Promise<JobEnvelope> {
    const { action, content } = reportOf(answer);
    return await this.#report(`/workers/${action}`, job, content);
  }

  /**
   * Reports many jobs in one request, each fenced on its own: at most 1000, and 16 MiB. May be repeated.
   * @returns an outcome for each, in order; none is thrown
   * @example
   * const outcomes = await worker.report([{ job: first, result: 1 }, { job: second, error: new Error('no') }]);
   */
  async report(ended: readonly EndedJob[]): Promise<ReportOutcome[]> {
    if (ended.length === 0) return [];
    return await this.sendReports(ended.map((one) => writeReport(one.job, reportOfEnded(one))));
  }

  writeReport(job: Held, answer: DeliveryOutcome): SentReport {
    return writeAnswer(job, answer);
  }

  writeNote(job: Held, note: Note): SentReport {
    return writeReport(job, note);
  }

  /** Sends reports together. @throws {NotFoundError} about the route when the server is of an earlier release */
  async sendReports(reports: readonly SentReport[]): Promise<ReportOutcome[]> {
    const body = `{"worker_id":${JSON.stringify(this.id)},"reports":[${textsOf(reports)}]}`;
    return outcomesOf(await this.#requests.safely('POST', '/workers/report', body), idsOf(reports));
  }

  /** Gives a job back without an error. @throws {ConflictError} {@link NotFoundError} */
  async release(job: Held, { attemptUsed = true, message }: ReleaseOptions = {}): Promise<JobEnvelope> {
    const error = message === undefined ? undefined : { code: 'released', type: 'released', message };
    const content = { requeue: true, attemptUsed: attemptUsed ? undefined : false, error };
    return await this.#report('/workers/nack', job, content);
  }

  /**
   * Extends leases and returns what the worker must do. Send one every few seconds.
   * @param held its jobs; absent: all that the server knows it to hold @param state `stopped`: the last heartbeat
   */
  async heartbeat(
    held?: readonly (string | Held)[],
    state?: 'running' | 'quiet' | 'drain' | 'terminate' | 'stopped',
  ): Promise<HeartbeatAnswer> {
    const answer = await this.#requests.safely('POST', '/workers/heartbeat', this.heartbeatText(held, state));
    const received = shaped<HeartbeatAnswer>(answer, 'state', 'the directive');
    return { ...received, jobsCancelled: received.jobsCancelled ?? [], jobsLost: received.jobsLost ?? [] };
  }

  heartbeatText(held?: readonly (string | Held)[], state?: string): string {
    const { visibilityTimeoutMs, ...about } = this.options;
    const activeJobs = held?.map((job) => (typeof job === 'string' ? job : job.id));
    return jsonOf({ workerId: this.id, ...about, state, activeJobs, visibilityTimeoutMs }, 'The heartbeat');
  }

  /** Opens a socket to a queue. Undefined: there can be none. @throws {UnavailableError} */
  async openLine(
    queue: string,
    { types, handlers }: Wanted,
    events: QueueSocketEvents,
  ): Promise<QueueSocket | undefined> {
    const { dial } = this.#requests;
    const settings = handlers && jsonOf(handlers);
    const fits = JSON.stringify(types ?? []).length <= MAX_TYPES_CHARS && (settings ?? '').length <= MAX_HANDLERS_CHARS;
    if (!dial || !fits) return undefined;
    const query = parametersFrom({ queue, workerId: this.id, types, handlers: settings, ...this.#leases });
    return new WorkerChannel(await dial(`/workers/socket?${query}`, PROTOCOL), events);
  }

  /** Reports progress and extends the lease. A cancelled job's handler signal aborts. @throws {NotFoundError} */
  async progress(job: Held, report: ProgressReport): Promise<ProgressAnswer> {
    const body = this.#about(job, { ...report });
    const sent = await this.#requests.safely('PUT', pathTo`/jobs/${job.id}/progress`, body);
    const answer = shaped<ProgressAnswer>(sent, 'jobId', 'the progress');
    if (answer.cancelled) this.#notify(job);
    return answer;
  }

  /** Calls `listener` when the answer to a report shows that its job was cancelled. @returns unsubscribes */
  onCancelled(listener: (job: Held) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Saves a checkpoint of a job for its next attempt. @throws {ConflictError} when this one is over */
  async saveCheckpoint<State>(job: Held, state: State): Promise<Checkpoint<State>> {
    const body = this.#about(job, { state });
    const answer = await this.#requests.safely('PUT', pathTo`/jobs/${job.id}/checkpoint`, body);
    return shaped<{ checkpoint: Checkpoint<State> }>(answer, 'checkpoint', 'the checkpoint').checkpoint;
  }

  /** Deletes the checkpoint of a job. @throws {ConflictError} when this attempt is over */
  async deleteCheckpoint(job: Held): Promise<void> {
    await this.#requests.safely('DELETE', pathTo`/jobs/${job.id}/checkpoint`, this.#about(job, {}));
  }

  /** Records a step or a timed-out signal. @returns an earlier record, which wins @throws {ConflictError} when over */
  async recordStep(job: Held, name: string, record: StepRecord): Promise<StepRecord | undefined> {
    const path = pathTo`/jobs/${job.id}/steps/${name}`;
    const answer = await this.#requests.safely('PUT', path, this.#about(job, { ...record }));
    return stepRecordOf(shaped<RecordedStep & { recorded: true }>(answer, 'recorded', 'the step'));
  }

  /** A step that is on record, with its result. @throws {NotFoundError} */
  async recall(job: Held, name: string): Promise<StepRecord | undefined> {
    const path = pathTo`/jobs/${job.id}/steps/${name}`;
    return stepRecordOf(await this.#requests.read<RecordedStep & { name: string }>(path, 'name', 'the step'));
  }

  async signalUrl({ id }: Held, { signal, expires_in, ...options }: SignalUrlAsked): Promise<string> {
    const { url } = await createTokens(this.#requests).signalUrl(id, signal, { ...options, expires: expires_in });
    return url;
  }

  /** JSON of a message of `POST /jobs/:id/streams/:name`. */
  streamText(job: Held, { name: _, chunks, ...about }: StreamMessage): string {
    return `${this.#about(job, about).slice(0, -1)},"chunks":${JSON.stringify(chunks)}}`;
  }

  /** Writes chunks of an output stream. May be repeated. @throws {ConflictError} {@link InvalidJobError} */
  async writeStream(job: Held, message: StreamMessage): Promise<void> {
    const body = this.streamText(job, message);
    await this.#requests.safely('POST', pathTo`/jobs/${job.id}/streams/${message.name}`, body);
  }

  /** Adds lines to the log of a job; the last 100 are kept. @throws {ConflictError} when this attempt is over */
  async log(job: Held, lines: readonly LogEntry[]): Promise<void> {
    await this.#requests.once('POST', pathTo`/jobs/${job.id}/log`, this.#about(job, { lines }));
  }

  async enqueue(child: Record<string, unknown>): Promise<JobEnvelope> {
    const send = child.id === undefined ? this.#requests.once : this.#requests.safely;
    return enqueuedJobOf(await send('POST', '/jobs', jsonOf(child)));
  }

  async enqueueMany(children: readonly Record<string, unknown>[]): Promise<JobEnvelope[]> {
    const send = children.every(({ id }) => id !== undefined) ? this.#requests.safely : this.#requests.once;
    const answer = await send('POST', '/jobs/batch', jsonOf({ jobs: children }));
    const sent = children.map((child) => ({ json: JSON.stringify(child), queue: DEFAULT_QUEUE }));
    return batchOf(answer, sent);
  }

  #notify(job: Held): void {
    for (const listener of this.#listeners) listener(job);
  }

  #about({ attempt, deliveryId }: Held, content: Record<string, unknown>): string {
    return jsonOf({ attempt, deliveryId, workerId: this.id, ...content }, 'The report');
  }

  async #report(path: string, job: Held, content: Record<string, unknown>): Promise<JobEnvelope> {
    return jobOf(await this.#requests.safely('POST', path, this.#about(job, { jobId: job.id, ...content })));
  }
}
