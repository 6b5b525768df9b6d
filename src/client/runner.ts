/**
 * A running pull worker.
 *
 * | phase | fetches | begins when | state in heartbeats |
 * |---|---|---|---|
 * | running | while there is room | the first heartbeat has ended | running |
 * | quiet | no | an operator directs it, until they direct otherwise | running |
 * | ending | no | the signal fires, an operator directs `terminate`, or no request can succeed | drain |
 * | over | no | its jobs have ended, or `shutdownTimeoutMs` later, when the rest is given back | stopped |
 *
 * Draining ends a waiting fetch at the server, so no job is leased in vain; jobs that arrive anyway, or that have no
 * handler, go back unused.
 */
import { atMost, Backoff, Changes, wait } from '../handler/timing';
import { isA } from '../job/thrown';
import type { JobEnvelope } from '../producer/envelope';
import { AbortedError, UnauthorizedError } from '../producer/errors';
import { byCall } from './arriving';
import { blockedError, blockedLine, LoopWatch } from './loop-watch';
import type { Puller } from './pull';
import type { Wanted } from './pull-types';
import type { Held, ReleaseOptions } from './puller';
import { Pulse } from './pulse';
import { QueueSockets } from './queue-sockets';
import { ReportGatherer } from './report-gatherer';
import type { RunningJob } from './running-job';
import { type JobsOptions, pauseAfter, RunningJobs } from './running-jobs';
import { type Source, sourceOf, wantedBy } from './wanted';
import type { Directive } from './workers';

export interface RunnerOptions extends JobsOptions {
  signal: AbortSignal;
  waitMs: number;
  heartbeatMs: number;
  socketHeartbeatMs: number;
  /** Use a socket where one can be had? */
  socket: boolean;
  shutdownTimeoutMs: number;
  /** Send heartbeats from a thread while the loop is blocked? */
  heartbeatThread: boolean;
  unhandled: 'leave' | 'deadLetter';
  /** Must not throw. */
  onError: (error: unknown) => void;
}

/** Pauses after a fetch that failed, or whose answer would be the same again, in ms. */
const FIRST_PAUSE_MS = 200;
const LONGEST_PAUSE_MS = 5000;

/** How long a waiting fetch may take to be answered once the worker ends, in ms. */
const FETCH_GRACE_MS = 2000;

/** How long the last requests may take once no job runs, in ms. */
const LAST_REQUESTS_MS = 5000;

/** How long a fetch waits while it leaves out queues, at most, in ms. */
const MIXED_WAIT_MS = 500;

/** Heartbeats in a lease, so that some may be lost, and how short the time between two may get for that, in ms. */
export const HEARTBEATS_IN_A_LEASE = 4;
const SHORTEST_BEAT_MS = 250;

const STOPPED = 'The worker was stopped before the job had ended.';

export class Runner {
  readonly #jobs: RunningJobs;
  readonly #reports: ReportGatherer;
  readonly #sockets: QueueSockets;
  readonly #wanted: Wanted;
  readonly #changes = new Changes();
  readonly #backoff = new Backoff(FIRST_PAUSE_MS, LONGEST_PAUSE_MS);
  /** It takes no more jobs. */
  readonly #ending = new AbortController();
  readonly #fetchEnd = new AbortController();
  /** It sends nothing more. */
  readonly #over = new AbortController();
  readonly #fetching: Puller;
  readonly #heartbeatWorker: Puller;
  readonly #reporting: Puller;
  readonly #watch = new LoopWatch<RunningJob>(
    (ms, ended) => this.#reportBlocked(ms, ended),
    () => this.#pulse?.turn(),
  );
  #pulse: Pulse | undefined;
  readonly #unknown = new Set<string>();
  #directive: Directive = 'running';
  /** Will a fetch take pending reports along? `free`: one made for them; `soon`: the next one. */
  #reportFetch: 'free' | 'soon' | undefined;
  #accepted = false;
  /** Why no request can succeed. */
  #broken: { error: unknown } | undefined;
  /** Ends the time until the next heartbeat, and how long it is at most, in ms. */
  #untilHeartbeat = new AbortController();
  #interval = Number.POSITIVE_INFINITY;
  /** All heartbeats so far: they are sent one after the other. */
  #heartbeats: Promise<void> = Promise.resolve();

  constructor(
    private readonly worker: Puller,
    private readonly options: RunnerOptions,
  ) {
    const { chosenMs: leaseMs = options.leases.defaultMs } = options.leases;
    this.#fetching = worker.with({ signal: this.#fetchEnd.signal });
    this.#wanted = wantedBy(options.registry, options.unhandled === 'leave', options.onError);
    // The next heartbeat is the repetition of a lost one, and comes well before the end of the leases.
    this.#heartbeatWorker = worker.with({
      signal: this.#over.signal,
      retry: false,
      timeoutMs: leaseMs / HEARTBEATS_IN_A_LEASE,
    });
    this.#reporting = worker.with({ signal: this.#over.signal });
    const host = {
      wanted: () => this.#wanted,
      roomIn: (queue: string) => this.#jobs.roomIn(queue),
      jobs: (jobs: JobEnvelope[]) => void this.#take(jobs).then(() => this.#changes.notify()),
      taken: (jobId: string, why: 'cancelled' | 'lost') => this.#jobs.taken(jobId, why),
      directive: (state: Directive) => this.#obey(state),
      complain: (error: unknown) => this.#complain(error),
      changed: () => this.#changes.notify(),
    };
    this.#sockets = new QueueSockets(worker, host, options.socket);
    this.#reports = new ReportGatherer(
      this.#reporting,
      (reports) =>
        this.#sockets.report(this.#reporting, reports, this.#directive === 'running' ? this.#socketRoom : undefined),
      () => this.#fetchTakes(),
      (queue) => this.#sockets.isOpenTo(queue),
      (queue, members) => this.#sockets.stream(queue, members),
    );
    this.#jobs = new RunningJobs(
      this.#reporting,
      this.#reports,
      options,
      this.#changes,
      (error) => this.#complain(error),
      (run) => this.#watch.look(run),
    );
  }

  /** @throws {UnauthorizedError} the key is refused before any fetch {@link AbortedError} the client's signal fires */
  async run(): Promise<void> {
    const { signal } = this.options;
    if (signal.aborted) return;
    const end = (): void => this.#end();
    signal.addEventListener('abort', end, { once: true });
    const unsubscribe = this.worker.onCancelled((job) => this.#jobs.cancelled(job));
    const { address } = this.worker;
    if (address && this.options.heartbeatThread) this.#pulse = new Pulse(address, this.worker.heartbeatText());
    this.#watch.start();
    try {
      await Promise.race([this.#heartbeat(), this.#changes.next()]);
      void this.#keepHeartbeats();
      while (!this.#ending.signal.aborted) await this.#next();
      this.#reports.flush();
      await this.#drain();
    } finally {
      signal.removeEventListener('abort', end);
      unsubscribe();
      this.#watch.stop();
      this.#pulse?.stop();
      this.#sockets.close();
      this.#over.abort();
    }
    if (this.#broken) throw this.#broken.error;
  }

  // ---- fetching --------------------------------------------------------------------------------

  async #next(): Promise<void> {
    await this.#sockets.connect();
    if (this.#ending.signal.aborted) return;
    if (this.#sockets.isOpen && (await this.#waitOnSockets())) return;
    const source = this.#source();
    if (this.#directive !== 'running' || source === undefined) return await this.#waitForRoom();
    try {
      if (await this.#fetch(source)) this.#backoff.reset();
      else await this.#pause(this.#backoff.next());
    } catch (error) {
      if (this.#ending.signal.aborted) return;
      this.#complain(error);
      await this.#pause(pauseAfter(error, this.#backoff));
    }
  }

  async #pause(ms: number): Promise<void> {
    this.#reports.flush();
    await wait(ms, this.#ending.signal);
  }

  get #room(): number {
    return this.options.concurrency - this.#jobs.size;
  }

  /** {@link #room} over sockets, which bring the next jobs beforehand. */
  get #socketRoom(): number {
    return this.#room + this.#jobs.ahead;
  }

  /** Asks for as many jobs as there is room for. @returns false: there are queues without a socket */
  async #waitOnSockets(): Promise<boolean> {
    this.#reports.flush();
    this.#accepted = true;
    if (this.#directive === 'running') this.#sockets.fill(this.#socketRoom);
    if (this.#sockets.unconnected.length > 0) return false;
    await this.#changes.next();
    return true;
  }

  async #waitForRoom(): Promise<void> {
    this.#reports.flush();
    if (this.#directive === 'running') this.#reportFetch = 'free';
    await this.#changes.next();
    this.#reportFetch = undefined;
  }

  #fetchTakes(): boolean {
    if (this.#ending.signal.aborted || this.#directive !== 'running' || this.#sockets.isOpen) return false;
    if (this.#reportFetch === 'free') this.#changes.notify();
    return this.#reportFetch !== undefined;
  }

  #source(): Source | undefined {
    const all = this.#sockets.isOpen ? this.#sockets.unconnected : this.worker.queues;
    // A job whose report travels with the fetch has ended before any is claimed.
    return sourceOf(this.worker.queues, all, this.#room + this.#reports.waiting, (queue) => this.#jobs.roomIn(queue));
  }

  /** Fetches and begins jobs. @returns may the next fetch follow at once, or would it be answered the same? */
  async #fetch(source: Source): Promise<boolean> {
    // While others send jobs, or have as many as may run, none is waited for long.
    const longest = source.queues ? Math.min(this.options.waitMs, MIXED_WAIT_MS) : this.options.waitMs;
    const waitMs = Math.min(longest, this.worker.longestWaitMs);
    const asked = Date.now();
    // One that takes reports along does not wait: what ends meanwhile is left to the next.
    if (this.#reports.waiting > 0) this.#reportFetch = 'soon';
    const request = this.#reports.fetch(this.#fetching, {
      ...source,
      waitMs,
      ...this.#wanted,
    });
    const { jobs, reported } = await request.finally(() => {
      this.#reportFetch = undefined;
    });
    this.#accepted = true;
    if (jobs.length === 0 && reported > 0) return true;
    // An empty answer must have taken its time; clocks may differ a little.
    if (jobs.length === 0) return waitMs > 0 && Date.now() - asked >= waitMs * 0.9;
    return await this.#take(jobs);
  }

  /** Begins jobs, and gives back those that it cannot run. @returns could it deal with all of them? */
  async #take(jobs: readonly JobEnvelope[]): Promise<boolean> {
    const { registry, unhandled } = this.options;
    const unknown = unhandled === 'leave' ? jobs.filter(({ type }) => !registry.find(type)) : [];
    const unwanted = new Set(this.#ending.signal.aborted ? jobs : unknown);
    const within = Math.min(...jobs.map((job) => this.#heartbeatWithin(this.#jobs.leaseOf(job))));
    if (within < this.#interval) {
      // Before any of them may block the loop.
      this.#pulse?.every(within);
      this.#untilHeartbeat.abort();
    }
    for (const call of byCall(jobs.filter((job) => !unwanted.has(job)))) this.#jobs.begin(call);
    await Promise.all([...unwanted].map((job) => this.#giveBack(job, { attemptUsed: false })));
    for (const { type } of unknown) {
      if (this.#unknown.has(type)) continue;
      this.#unknown.add(type);
      this.#complain(new TypeError(`No handler for ${JSON.stringify(type)}: its jobs stay for other workers.`));
    }
    return unknown.length === 0;
  }

  async #giveBack(job: Held, how: ReleaseOptions): Promise<void> {
    await this.#reporting.release(job, how).catch((error) => this.#complain(error));
  }

  // ---- heartbeats ------------------------------------------------------------------------------

  async #keepHeartbeats(): Promise<void> {
    this.#over.signal.addEventListener('abort', () => this.#untilHeartbeat.abort(), { once: true });
    while (!this.#over.signal.aborted) {
      const untilHeartbeat = new AbortController();
      this.#untilHeartbeat = untilHeartbeat;
      this.#interval = this.#nextInterval();
      this.#pulse?.every(this.#interval);
      await wait(this.#interval * (0.75 + Math.random() / 4), untilHeartbeat.signal);
      if (!untilHeartbeat.signal.aborted) await this.#heartbeat();
    }
  }

  /** How long until the next heartbeat at most, in ms: some may be lost before the shortest lease ends. */
  #nextInterval(): number {
    const { heartbeatMs, socketHeartbeatMs } = this.options;
    const usual = this.#sockets.isOpen ? socketHeartbeatMs : heartbeatMs;
    return Math.min(usual, this.#heartbeatWithin(this.#jobs.shortestLeaseMs));
  }

  /** How long a lease allows until the next heartbeat, in ms. The usual time is for the usual lease. */
  #heartbeatWithin(leaseMs: number): number {
    const { chosenMs, defaultMs } = this.options.leases;
    const isShort = leaseMs < (chosenMs ?? defaultMs);
    return isShort ? Math.max(SHORTEST_BEAT_MS, leaseMs / HEARTBEATS_IN_A_LEASE) : Number.POSITIVE_INFINITY;
  }

  #heartbeat(): Promise<void> {
    this.#heartbeats = this.#heartbeats.then(() => this.#sendHeartbeat());
    return this.#heartbeats;
  }

  async #sendHeartbeat(): Promise<void> {
    const named = this.#jobs.held();
    const sentAt = Date.now();
    const held = named.map(({ job }) => job);
    try {
      const state = this.#ending.signal.aborted ? 'drain' : undefined;
      const overSocket =
        this.#sockets.isOpen && (await this.#sockets.heartbeat(this.worker.heartbeatText(held, state)));
      const answer = overSocket || (await this.#heartbeatWorker.heartbeat(held, state));
      this.#jobs.applyHeartbeat(answer, named, sentAt);
      this.#obey(answer.state);
    } catch (error) {
      if (!this.#over.signal.aborted) this.#complain(error);
    }
    this.#jobs.dropExpired();
  }

  #obey(state: Directive): void {
    this.#directive = state;
    if (state === 'terminate') this.#end();
    this.#changes.notify();
  }

  /** Names the jobs that run: one of them must have blocked the loop. */
  #reportBlocked(ms: number, ended?: RunningJob): void {
    if (this.#pulse) this.#jobs.extended(this.#pulse.lastBeatAt);
    const held = this.#jobs.held();
    if (held.length === 0) return;
    this.#complain(blockedError(ms, held, this.#pulse?.works === true));
    const line = blockedLine(ms);
    ended?.notes.push(line);
    for (const run of held) {
      if (!run.reporting && run !== ended) void this.#reporting.log(run.job, [line]).catch(() => undefined);
    }
    void this.#heartbeat();
  }

  // ---- ending ----------------------------------------------------------------------------------

  #end(): void {
    if (this.#ending.signal.aborted) return;
    this.#ending.abort();
    this.#jobs.drain();
    this.#pulse?.setBody(this.worker.heartbeatText(undefined, 'drain'));
    this.#changes.notify();
    if (!this.#broken) void this.#heartbeat();
    void wait(this.#broken ? 0 : FETCH_GRACE_MS, this.#over.signal).then(() => this.#fetchEnd.abort());
  }

  /** Waits for what it began, gives back what takes too long, and sends the last heartbeat. */
  async #drain(): Promise<void> {
    const deadline = Date.now() + (this.#broken ? 0 : this.options.shutdownTimeoutMs);
    this.#jobs.beginNoMore();
    await atMost(FETCH_GRACE_MS, this.#sockets.pause());
    while (this.#jobs.busy && Date.now() < deadline) await atMost(deadline - Date.now(), this.#changes.next());
    const { stopped, reports } = this.#jobs.stopAll();
    const given = stopped.map((job) => this.#giveBack(job, { message: STOPPED }));
    await atMost(
      LAST_REQUESTS_MS,
      Promise.all([...given, ...reports, this.#heartbeats]).then(() => this.#signOff()),
    );
  }

  async #signOff(): Promise<void> {
    this.#pulse?.stop();
    if (!this.#broken) await this.#heartbeatWorker.heartbeat([], 'stopped').catch(this.options.onError);
  }

  /** Passes an error on, or ends the run when no later request can succeed either. */
  #complain(error: unknown): void {
    const refused = isA(error, UnauthorizedError) && !this.#accepted;
    if (refused || isA(error, AbortedError)) {
      this.#broken ??= { error };
      this.#end();
    } else {
      this.options.onError(error);
    }
  }
}
