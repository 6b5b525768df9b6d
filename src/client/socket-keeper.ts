/**
 * Keeps a socket between a running worker and one queue; without it the worker uses HTTP. Both sides count how many
 * jobs the worker is ready for: each job or chunk uses up one, and a new connection restarts the count.
 */
import { atMost, wait } from '../handler/timing';
import type { JobEnvelope } from '../producer/envelope';
import type { TocsinError } from '../producer/errors';
import { Arriving, byCall } from './arriving';
import type { Puller } from './pull';
import type { HeartbeatAnswer, Wanted } from './pull-types';
import { Redial } from './redial';
import type { ReportOutcome, SentReport } from './report';
import { LONGEST_MESSAGE, type QueueSocket, type QueueSocketEvents } from './worker-channel';

/** How long the answer to a heartbeat may take, in ms: a connection may be gone without a word. */
const SILENT_MS = 10_000;

/** What sockets need of the running worker. */
export interface QueueSocketHost extends Pick<QueueSocketEvents, 'directive' | 'taken'> {
  wanted(): Wanted;
  /** How many jobs more of a queue may run, whatever else runs. */
  roomIn(queue: string): number;
  jobs(jobs: JobEnvelope[]): void;
  complain(error: unknown): void;
  /** Something has changed: there may be room, or no connection any more. */
  changed(): void;
}

export class SocketKeeper {
  #channel: QueueSocket | undefined;
  /** Jobs that the queue may still send, and since when it has sent none of them, epoch ms. */
  #ready = 0;
  #quietSince = 0;
  readonly #closed = new AbortController();
  readonly #redial = new Redial();
  readonly #arriving = new Arriving((jobs) => {
    this.#ready = Math.max(0, this.#ready - byCall(jobs).length);
    this.#quietSince = Date.now();
    this.host.jobs(jobs);
  });

  constructor(
    private readonly worker: Puller,
    readonly queue: string,
    private readonly host: QueueSocketHost,
  ) {}

  get isOpen(): boolean {
    return this.#channel?.isOpen === true;
  }

  /** Jobs that the queue may still send. */
  get ready(): number {
    return this.#ready;
  }

  /** Has it sent none of the jobs that it may send for this time, ms? */
  isQuiet(ms: number): boolean {
    return this.#ready > 0 && Date.now() - this.#quietSince >= ms;
  }

  async connect(): Promise<void> {
    if (this.isOpen || this.#closed.signal.aborted) return;
    const events: QueueSocketEvents = {
      jobs: (jobs) => this.#arriving.take(jobs),
      taken: (jobId, why) => this.host.taken(jobId, why),
      directive: (state) => this.host.directive(state),
      refused: (error) => void this.#refused(error),
      lost: () => {
        this.#arriving.flush();
        this.#redial.lost();
        this.host.changed();
      },
    };
    const channel = await this.#redial.open(() => this.worker.openLine(this.queue, this.host.wanted(), events));
    if (this.#closed.signal.aborted) channel?.close();
    this.#channel = channel;
    this.#ready = 0;
  }

  take(more: number): void {
    if (more <= 0 || !this.isOpen) return;
    this.#promise(more);
    this.#channel?.ready(more);
  }

  #promise(more: number): void {
    if (this.#ready === 0) this.#quietSince = Date.now();
    this.#ready += more;
  }

  canSend(reports: readonly SentReport[]): boolean {
    return this.isOpen && reports.reduce((sum, { text }) => sum + text.length, 0) <= LONGEST_MESSAGE;
  }

  /** Sends reports, and asks for this many more jobs; over HTTP when the connection breaks off. */
  async report(worker: Puller, reports: readonly SentReport[], more: number): Promise<ReportOutcome[]> {
    const channel = this.#channel as QueueSocket;
    const taken = this.#closed.signal.aborted ? 0 : more;
    this.#promise(taken);
    try {
      return await channel.report(reports, taken);
    } catch (error) {
      if (channel.isOpen) {
        // It was refused whole, and the queue does not take the worker to be ready for these.
        this.#ready = Math.max(0, this.#ready - taken);
        throw error;
      }
      return await worker.sendReports(reports);
    }
  }

  /** @param members of the message, as JSON. @returns undefined: it must go over HTTP */
  stream(members: string): Promise<unknown> | undefined {
    return this.isOpen && members.length <= LONGEST_MESSAGE ? this.#channel?.stream(members) : undefined;
  }

  /** Sends a heartbeat over the socket. @param body as over HTTP @returns undefined: it did not come through */
  async heartbeat(body: string): Promise<HeartbeatAnswer | undefined> {
    const channel = this.#channel;
    if (!channel?.isOpen || body.length > LONGEST_MESSAGE) return undefined;
    return await this.#inTime(channel, channel.heartbeat(body));
  }

  /** Gives the connection up unless the other side answers. */
  async makeSure(): Promise<void> {
    const channel = this.#channel;
    if (channel) await this.#inTime(channel, channel.ping());
  }

  async #inTime<T>(channel: QueueSocket, answer: Promise<T>): Promise<T | undefined> {
    if (await atMost(SILENT_MS, answer)) return await answer.catch(() => undefined);
    channel.abandon();
    return undefined;
  }

  async pause(): Promise<void> {
    this.#closed.abort();
    await this.#channel?.pause();
  }

  close(): void {
    this.#closed.abort();
    this.#channel?.close();
  }

  /** The queue may have forgotten what the worker is ready for, or not: after a pause both restart. */
  async #refused(error: TocsinError): Promise<void> {
    this.host.complain(error);
    const channel = this.#channel;
    if (this.#ready === Number.POSITIVE_INFINITY) return;
    // Nothing is asked for until then.
    this.#ready = Number.POSITIVE_INFINITY;
    await wait(Math.max(this.#redial.pause(), error.retryAfterMs ?? 0), this.#closed.signal);
    if (this.#closed.signal.aborted || !channel || channel !== this.#channel) return;
    await this.#inTime(channel, channel.pause());
    this.#ready = 0;
    this.host.changed();
  }
}
