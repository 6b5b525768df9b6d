/** The jobs that a worker runs: each is run by its handler and reported, unless it is stopped. */
import type { Host } from '../handler/host';
import type { DeliveryOutcome, HandlerDelivery } from '../handler/protocol';
import { runAll } from '../handler/run-all';
import type { Runnable } from '../handler/runnable';
import { Deadlines } from '../handler/time-limit';
import { Backoff, type Changes, wait } from '../handler/timing';
import type { Voice } from '../handler/voice';
import type { JobEnvelope } from '../producer/envelope';
import { TocsinError } from '../producer/errors';
import { wasCancelled } from './answers';
import type { Puller } from './pull';
import type { HeartbeatAnswer, Leases } from './pull-types';
import type { Held } from './puller';
import type { ReportGatherer } from './report-gatherer';
import { aborted, DRAINING, RunningJob } from './running-job';
import type { Threads } from './threads';

/** Pauses after a request that failed, in ms: the first, and the longest. */
const [FIRST_PAUSE_MS, LONGEST_PAUSE_MS] = [200, 5000];

/** How long a job that was taken away may still run, in ms. */
const LOST_AFTER_MS = 250;

/** The limits of a pulled job: the server ends its attempt after the job's timeout, its queue's, or 30 minutes. */
const PULLED = { default: 1_800_000, longest: 2_147_483_647 };

/** Jobs that are taken beforehand: what handlers that end fast work off in this time, ms, and most of them. */
const AHEAD_MS = 10;
const MAX_AHEAD = 300;

/** How long a job may wait for its handler before another worker may have it, in ms. */
const HOLD_MS = 250;

/** How much the last run counts in the mean of their times. */
const LAST_COUNTS = 0.1;

/** How long log lines are gathered, in ms: longer than for a pushed job, because a request costs more than a line. */
export const LOG_AFTER_MS = 5_000;

export interface JobsOptions extends Runnable {
  env: unknown;
  leases: Leases;
  concurrency: number;
  /** Handlers at once of some queues. */
  queueConcurrency: ReadonlyMap<string, number>;
  threads: Threads | undefined;
}

type Reports = Pick<ReportGatherer, 'settle' | 'progress' | 'checkpoint' | 'step' | 'stream' | 'keepsOrder'>;

export class RunningJobs {
  readonly #runs = new Set<RunningJob>();
  /** Those of them that another one leads. */
  #followers = 0;
  #isDraining = false;
  /** Those that have not begun, in the order of their queues. */
  #waiting: { run: RunningJob; since: number }[] = [];
  #holding: ReturnType<typeof setTimeout> | null = null;
  /** Handlers that run, and those of each queue. */
  #active = 0;
  readonly #activeIn = new Map<string, number>();
  /** How long handlers take, in ms; undefined: none has ended yet. */
  #typicalMs: number | undefined;
  readonly #deadlines = new Deadlines();
  readonly #background = new Set<Promise<unknown>>();

  /**
   * @param reporting sends handlers' notes @param reports sends ends and progress @param changes called at a job's end
   * @param complain receives errors of reports @param ran called when a handler has ended
   */
  constructor(
    private readonly reporting: Puller,
    private readonly reports: Reports,
    private readonly options: JobsOptions,
    private readonly changes: Changes,
    private readonly complain: (error: unknown) => void,
    private readonly ran: (run: RunningJob) => void,
  ) {}

  /** How many may be at hand beside those that run, so that the next one begins as soon as one has ended. */
  get ahead(): number {
    if (this.#typicalMs === undefined) return 0;
    return Math.min(MAX_AHEAD, Math.floor((this.options.concurrency * AHEAD_MS) / Math.max(this.#typicalMs, 0.01)));
  }

  /** Jobs that wait for a handler, whose handlers have not ended, or whose reports are under way. A chunk is one. */
  get size(): number {
    return this.#runs.size - this.#followers;
  }

  /** Is anything under way, work of `ctx.waitUntil` included? */
  get busy(): boolean {
    return this.#runs.size + this.#background.size > 0;
  }

  held(): RunningJob[] {
    return [...this.#runs].filter(({ isStopped }) => !isStopped);
  }

  /** Starts a job that was just fetched, or the jobs of a chunk, or keeps them until a handler is free. */
  begin(jobs: readonly JobEnvelope[]): void {
    const runs = jobs.map((job) => new RunningJob(job, this.leaseOf(job)));
    const [run, ...followers] = runs;
    if (!run) return;
    for (const each of runs) this.#runs.add(each);
    if (followers.length > 0) run.lead(runs);
    this.#followers += followers.length;
    if (this.#mayStart(run)) this.#start(run);
    else this.#keep(run);
  }

  /** Length of the lease of a job, in ms: the queue names one that the worker did not ask for. */
  leaseOf(job: JobEnvelope): number {
    const { chosenMs, defaultMs } = this.options.leases;
    return chosenMs ?? job.leaseMs ?? defaultMs;
  }

  get shortestLeaseMs(): number {
    return Math.min(...this.held().map(({ leaseMs }) => leaseMs));
  }

  #keep(run: RunningJob): void {
    const rank = this.#rankOf(run);
    const at = this.#waiting.findLastIndex((other) => this.#rankOf(other.run) <= rank);
    this.#waiting.splice(at + 1, 0, { run, since: Date.now() });
    this.#holding ??= setTimeout(() => this.#letGo(), HOLD_MS);
  }

  #rankOf({ job }: RunningJob): number {
    return this.reporting.queues.indexOf(job.queue);
  }

  #mayStart({ job: { queue } }: RunningJob): boolean {
    const { concurrency, queueConcurrency } = this.options;
    return (
      this.#active < concurrency && (this.#activeIn.get(queue) ?? 0) < (queueConcurrency.get(queue) ?? concurrency)
    );
  }

  /** How many more of a queue it may have; those count that have not begun, and no longer those that are reported. */
  roomIn(queue: string): number {
    const most = this.options.queueConcurrency.get(queue);
    if (most === undefined) return Number.POSITIVE_INFINITY;
    const counts = ({ job, reporting, leader }: RunningJob, run: RunningJob) =>
      job.queue === queue && !reporting && leader === run;
    return most - [...this.#runs].filter((run) => counts(run, run)).length;
  }

  #start(run: RunningJob): void {
    this.#countActive(run, 1);
    if (this.#isDraining) run.draining.abort(aborted(DRAINING));
    const ended = this.#work(run).catch(this.complain);
    for (const member of run.members) member.ended = ended;
  }

  #forget(run: RunningJob): void {
    if (this.#runs.delete(run) && run.leader.forgotten()) this.#followers--;
    this.changes.notify();
  }

  #countActive({ job: { queue } }: RunningJob, change: 1 | -1): void {
    this.#active += change;
    if (this.options.queueConcurrency.has(queue)) this.#activeIn.set(queue, (this.#activeIn.get(queue) ?? 0) + change);
  }

  #startNext(ended: RunningJob): void {
    this.#countActive(ended, -1);
    while (this.#active < this.options.concurrency) {
      const at = this.#waiting.findIndex(({ run }) => run.isOver || this.#mayStart(run));
      const [next] = at < 0 ? [] : this.#waiting.splice(at, 1);
      if (!next) return;
      if (next.run.isOver) for (const member of next.run.members) this.#forget(member);
      else this.#start(next.run);
    }
  }

  /** Gives back what has waited for too long: its handler would not have ended as fast as the others. */
  #letGo(): void {
    const late = Date.now() - HOLD_MS;
    const over = this.#waiting.filter(({ since }) => since <= late);
    this.#waiting = this.#waiting.filter(({ since }) => since > late);
    const first = Math.min(...this.#waiting.map(({ since }) => since));
    this.#holding = this.#waiting.length === 0 ? null : setTimeout(() => this.#letGo(), first - late);
    for (const { run } of over) this.#returnUnused(run);
  }

  #returnUnused({ members }: RunningJob): void {
    for (const run of members) run.ended = this.#report(run, { status: 'again' }).finally(() => this.#forget(run));
  }

  drain(): void {
    this.#isDraining = true;
    for (const run of this.#runs) run.draining.abort(aborted(DRAINING));
  }

  beginNoMore(): void {
    if (this.#holding !== null) clearTimeout(this.#holding);
    for (const { run } of this.#waiting.splice(0)) this.#returnUnused(run);
  }

  cancelled({ id, attempt }: Held): void {
    for (const run of this.held()) if (run.job.id === id && run.job.attempt === attempt) run.stop('cancelled');
  }

  /** The queue ended its attempt. A job lost at its timeout ends by itself in this moment, with a better reason. */
  taken(jobId: string, why: 'cancelled' | 'lost'): void {
    for (const run of this.held()) {
      if (run.job.id !== jobId || run.reporting) continue;
      if (why === 'cancelled') run.stop(why);
      else void wait(LOST_AFTER_MS, run.signal).then(() => !run.reporting && run.stop(why));
    }
  }

  /** @param named the runs of the heartbeat: an id may have been fetched again since @param sentAt epoch ms */
  applyHeartbeat(answer: HeartbeatAnswer, named: readonly RunningJob[], sentAt: number): void {
    const extended = new Set(answer.jobsExtended);
    const cancelled = new Set(answer.jobsCancelled);
    const lost = new Set(answer.jobsLost);
    for (const run of named) {
      const { id } = run.job;
      if (extended.has(id)) run.leasedUntil = sentAt + run.leaseMs;
      else if (cancelled.has(id)) run.stop('cancelled');
      else if (lost.has(id)) run.stop('lost');
    }
  }

  /** A heartbeat was sent, at this moment, that extended the leases of all. Epoch ms. */
  extended(sentAt: number): void {
    for (const run of this.held()) run.leasedUntil = Math.max(run.leasedUntil, sentAt + run.leaseMs);
  }

  /** Stops jobs whose leases no heartbeat has extended in time. */
  dropExpired(): void {
    const now = Date.now();
    for (const run of this.held()) if (now >= run.leasedUntil) run.stop('lost');
  }

  /** Stops every handler. @returns the jobs that they ran, and the reports under way */
  stopAll(): { stopped: JobEnvelope[]; reports: Promise<void>[] } {
    const held = this.held();
    const stopped = held.filter(({ reporting }) => !reporting);
    for (const run of stopped) run.stop('shutdown');
    const reports = held.filter(({ reporting }) => reporting);
    return { stopped: stopped.map(({ job }) => job), reports: reports.map(({ ended }) => ended) };
  }

  async #work(run: RunningJob): Promise<void> {
    const { members } = run;
    try {
      const outcomes = await this.#run(run);
      await Promise.all(members.map((member, at) => this.#report(member, outcomes[at] as DeliveryOutcome)));
    } finally {
      for (const member of members) this.#forget(member);
    }
  }

  /** Runs a job, or the jobs of a chunk in one call. @returns their outcomes, in order */
  async #run(run: RunningJob): Promise<DeliveryOutcome[]> {
    const { registry, threads, env, sink } = this.options;
    const { members, job, draining } = run;
    const isChunk = members.length > 1;
    const call = isChunk ? { signal: run.chunkSignal } : run;
    const voice = isChunk
      ? undefined
      : pullVoice(this.reporting, this.reports, job, () => run.stop('cancelled'), this.complain);
    const deliveries = members.map((member) => this.#deliveryOf(member.job));
    const begun = performance.now();
    try {
      const registration = registry.find(job.type);
      if (!registration) return members.map((member) => unhandledBy(member.job.type));
      const limits = PULLED;
      if (threads) {
        const { signal } = call;
        return await threads.run({ deliveries, registration, limits, voice, signal, draining: draining.signal });
      }
      const executionCtx = { waitUntil: (promise: Promise<unknown>) => this.#waitUntil(promise) };
      const host: Host = { env, executionCtx, call, draining, sink, limits, deadlines: this.#deadlines };
      if (voice) host.voice = () => voice;
      return await Promise.all(runAll(deliveries, registry, host));
    } finally {
      this.ran(run);
      this.#noteTime(performance.now() - begun);
      this.#startNext(run);
    }
  }

  #deliveryOf(job: JobEnvelope): HandlerDelivery {
    const { attempt, deliveryId = `pull_${job.id}_${attempt}` } = job;
    return { kind: 'job', job, attempt, deliveryId, workerId: this.reporting.id };
  }

  #noteTime(took: number): void {
    this.#typicalMs = this.#typicalMs === undefined ? took : this.#typicalMs + (took - this.#typicalMs) * LAST_COUNTS;
  }

  /** Reports until there is an answer, or no one waits for the report any more. */
  async #report(run: RunningJob, answer: DeliveryOutcome): Promise<void> {
    let backoff: Backoff | undefined;
    run.reporting = true;
    const report = run.notes.length === 0 ? answer : { ...answer, log: [...(answer.log ?? []), ...run.notes] };
    while (!run.isStopped) {
      try {
        await this.reports.settle(run.job, report);
        return;
      } catch (error) {
        if (run.isStopped || wasCancelled(error)) return;
        this.complain(error);
        if (!(error instanceof TocsinError) || !error.retryable) return;
        backoff ??= new Backoff(FIRST_PAUSE_MS, LONGEST_PAUSE_MS);
        await wait(pauseAfter(error, backoff), run.signal);
      }
    }
  }

  #waitUntil(promise: Promise<unknown>): void {
    const ended = Promise.resolve(promise)
      .catch(this.complain)
      .finally(() => {
        this.#background.delete(ended);
        this.changes.notify();
      });
    this.#background.add(ended);
  }
}

/** The end of a job that no handler is for, where such jobs become dead letters. */
function unhandledBy(type: string): DeliveryOutcome {
  const message = `No handler registered for job type ${JSON.stringify(type)}.`;
  return { status: 'failed', error: { code: 'handler_not_found', type: 'tocsin.no_handler', message, kill: true } };
}

/** How long to wait before the next try, in ms: not less than the server asks for. */
export const pauseAfter = (error: unknown, backoff: Backoff): number =>
  Math.max(backoff.next(), error instanceof TocsinError ? (error.retryAfterMs ?? 0) : 0);

/** @param cancelled called when the job was cancelled @param complain receives errors that no one awaits */
export const pullVoice = (
  puller: Puller,
  reports: Reports,
  job: Held,
  cancelled: () => void,
  complain: (error: unknown) => void,
): Voice => ({
  ...{ durable: 'now', logAfterMs: LOG_AFTER_MS },
  log: (lines) => void puller.log(job, lines).catch(complain),
  progress: async (report) => {
    const answer = await reports.progress(job, report);
    if (answer.cancelled) cancelled();
  },
  checkpoint: (state) => reports.checkpoint(job, state),
  record: (name, record) => reports.step(job, name, record),
  recall: (name) => puller.recall(job, name),
  signalUrl: (asked) => puller.signalUrl(job, asked),
  keepsOrder: () => reports.keepsOrder(job),
  stream: (message) => reports.stream(job, message),
  enqueue: async (jobs) => {
    const [job] = jobs;
    return jobs.length === 1 && job ? [await puller.enqueue(job)] : await puller.enqueueMany(jobs);
  },
});
