/**
 * Keeps a socket between a worker that runs and its queue, where one can be had. Without it the worker fetches and reports over
 * HTTP, as it does in between when a connection breaks off.
 *
 * What the worker is ready for is counted on both sides: it says how many jobs more it takes, and each job that comes uses up
 * one. All of it begins anew with a new connection.
 */
import type { JobEnvelope } from '../producer/envelope';
import type { TocsinError } from '../producer/errors';
import type { HeartbeatAnswer } from './heartbeat';
import type { Line, LineEvents } from './line';
import type { Puller } from './puller';
import { Redial } from './redial';
import type { ReportOutcome, SentReport } from './report';
import { atMost, wait } from './timing';
import { LONGEST_MESSAGE } from './worker-line';

/** How long the answer to a heartbeat may take, in ms: a connection may be gone without a word. */
const SILENT_MS = 10_000;

/** Whom the keeper serves. */
export interface LineHost extends Pick<LineEvents, 'directive' | 'taken'> {
  /** The types of its handlers, if it has few enough. */
  types(): readonly string[] | undefined;
  /** Jobs have come. */
  jobs(jobs: JobEnvelope[]): void;
  /** Errors that nobody waits for. */
  complain(error: unknown): void;
  /** Something has changed: there may be room, or no connection any more. */
  changed(): void;
}

export class LineKeeper {
  #line: Line | undefined;
  /** Jobs that the queue may still send. */
  #ready = 0;
  /** Reports on their way over the line: their jobs run no more. */
  #reporting = 0;
  readonly #closed = new AbortController();
  readonly #redial = new Redial();

  /** @param isWanted may there be a socket at all? */
  constructor(
    private readonly worker: Puller,
    private readonly host: LineHost,
    private readonly isWanted: boolean,
  ) {}

  get isOpen(): boolean {
    return this.#line?.isOpen === true;
  }

  /** Connects, if that can be and it is time to try. */
  async connect(): Promise<void> {
    if (!this.isWanted || this.isOpen || this.#closed.signal.aborted || !this.#redial.mayTry) return;
    try {
      const line = await this.worker.openLine(this.host.types(), {
        jobs: (jobs) => {
          this.#ready = Math.max(0, this.#ready - jobs.length);
          this.host.jobs(jobs);
        },
        taken: (jobId, why) => this.host.taken(jobId, why),
        directive: (state) => this.host.directive(state),
        refused: (error) => this.#refused(error),
        lost: () => {
          this.#redial.lost();
          this.host.changed();
        },
      });
      if (this.#closed.signal.aborted) line?.close();
      this.#line = line;
      this.#ready = 0;
      if (line) this.#redial.opened();
      else this.#redial.never();
    } catch {
      // It goes on over HTTP, whose errors are told.
      this.#redial.failed();
    }
  }

  /** Takes as many jobs more as there is room for. @param room beside those that run */
  fill(room: number): void {
    const more = room + this.#reporting - this.#ready;
    if (more <= 0 || !this.isOpen) return;
    this.#ready += more;
    this.#line?.ready(more);
  }

  /**
   * Sends reports, over HTTP where the connection is gone or breaks off: each names its attempt, so it may come twice.
   * @param room beside the jobs that run; undefined: it takes no more
   */
  async report(worker: Puller, reports: readonly SentReport[], room: number | undefined): Promise<ReportOutcome[]> {
    const length = reports.reduce((sum, { text }) => sum + text.length, 0);
    const line = this.#line;
    if (!line?.isOpen || length > LONGEST_MESSAGE) return await worker.sendReports(reports);
    this.#reporting += reports.length;
    const isTaking = room !== undefined && !this.#closed.signal.aborted;
    const more = isTaking ? Math.max(0, room + this.#reporting - this.#ready) : 0;
    this.#ready += more;
    try {
      return await line.report(reports, more);
    } catch (error) {
      if (line.isOpen) throw error;
      return await worker.sendReports(reports);
    } finally {
      this.#reporting -= reports.length;
    }
  }

  /** Sends a heartbeat over the line. @param body as over HTTP. Undefined: it did not come through */
  async heartbeat(body: string): Promise<HeartbeatAnswer | undefined> {
    const line = this.#line;
    if (!line?.isOpen || body.length > LONGEST_MESSAGE) return undefined;
    let answer: HeartbeatAnswer | undefined;
    const heard = line.heartbeat(body).then((told) => {
      answer = told;
    });
    await atMost(SILENT_MS, heard);
    if (!answer) line.abandon();
    return answer;
  }

  /** Takes no more jobs; resolves when none comes any more. */
  async pause(): Promise<void> {
    this.#closed.abort();
    await this.#line?.pause();
  }

  close(): void {
    this.#closed.abort();
    this.#line?.close();
  }

  #refused(error: TocsinError): void {
    this.host.complain(error);
    const pause = Math.max(this.#redial.pause(), error.retryAfterMs ?? 0);
    void wait(pause, this.#closed.signal).then(() => {
      this.#ready = 0;
      this.host.changed();
    });
  }
}
