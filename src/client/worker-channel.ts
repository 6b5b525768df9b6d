/** The socket of a worker to its queue, subprotocol `tocsin.worker.v1`: the messages of both sides. */
import type { QueueMessage } from '../contract/worker-socket';
import type { JobEnvelope } from '../producer/envelope';
import { type TocsinError, unanswered } from '../producer/errors';
import { type Named, named } from '../producer/names';
import { shaped } from './answers';
import type { SocketLike } from './dial';
import type { HeartbeatAnswer } from './pull-types';
import { outcomesOf, type ReportOutcome, refusalOf, type SentReport } from './report';
import type { Directive } from './workers';

export const PROTOCOL = 'tocsin.worker.v1';

/** Longest text that is sent in one message, in characters: the platform takes messages of 1 MiB everywhere. */
export const LONGEST_MESSAGE = 256 * 1024;

/** Acknowledges after this many characters, unless another message does so. */
const READ_EVERY = 256 * 1024;

/** What a socket between a worker and its queue reports, and asks of the worker. */
export interface QueueSocketEvents {
  jobs(jobs: JobEnvelope[]): void;
  /** An attempt was ended by others. */
  taken(jobId: string, why: 'cancelled' | 'lost'): void;
  directive(state: Directive): void;
  /** The queue could not hand out jobs: it must be notified again what the worker is ready for. */
  refused(error: TocsinError): void;
  /** The connection is over, unless it was closed from here. */
  lost(): void;
}

/** A connection as its users see it. */
export type QueueSocket = Pick<WorkerChannel, keyof WorkerChannel>;

interface Question<T> {
  resolve: (answer: T) => void;
  reject: (error: unknown) => void;
}

/** The worker's end. What waits for an answer gets an {@link UnavailableError} when the connection breaks off. */
export class WorkerChannel {
  isOpen = true;
  /** What waits for an answer that names it. */
  readonly #questions = new Map<number, Question<Record<string, unknown>>>();
  /** The ids of heartbeats: servers of earlier releases answer them in their order, without an id. */
  #heartbeats: number[] = [];
  #pings: Question<void>[] = [];
  #pauses: (() => void)[] = [];
  #lastId = 0;
  #got = 0;
  #isAcknowledged = true;
  #read = 0;

  constructor(
    private readonly socket: SocketLike,
    private readonly events: QueueSocketEvents,
  ) {
    socket.addEventListener('message', ({ data }) => this.#receive(data));
    socket.addEventListener('close', () => this.#over());
    socket.addEventListener('error', () => this.#over());
  }

  ready(count: number): void {
    this.#send(`{"type":"ready","count":${count}${this.#acknowledgement()}}`);
  }

  /** Sends reports. @param ready asks for this many more jobs */
  async report(reports: readonly SentReport[], ready: number): Promise<ReportOutcome[]> {
    const texts = reports.map(({ text }) => text).join(',');
    const jobIds = reports.map(({ jobId }) => jobId);
    const more = ready > 0 ? `,"ready":${ready}` : '';
    return outcomesOf(await this.#ask('report', `${more},"reports":[${texts}]`), jobIds);
  }

  /** Enqueues jobs, all or none. @param jobs their texts, comma-separated */
  enqueue(jobs: string): Promise<unknown> {
    return this.#ask('enqueue', `,"jobs":[${jobs}]`);
  }

  /** Writes chunks of an output stream. @param members of the message, as JSON */
  stream(members: string): Promise<unknown> {
    return this.#ask('stream', `,${members}`);
  }

  #ask(type: string, members: string): Promise<Record<string, unknown>> {
    const id = ++this.#lastId;
    return new Promise((resolve, reject) => {
      if (!this.isOpen) return reject(lost());
      this.#questions.set(id, { resolve, reject });
      this.#send(`{"type":"${type}","id":${id}${this.#acknowledgement()}${members}}`);
    });
  }

  /** @param body of a heartbeat over HTTP */
  async heartbeat(body: string): Promise<HeartbeatAnswer> {
    const asked = this.#ask('heartbeat', `,${body.slice(1, -1)}`);
    const id = this.#lastId;
    this.#heartbeats.push(id);
    try {
      return shaped<HeartbeatAnswer>(await asked, 'state', 'the directive');
    } finally {
      this.#heartbeats = this.#heartbeats.filter((beat) => beat !== id);
    }
  }

  /** Resolves if the other side is there. */
  ping(): Promise<void> {
    return new Promise((resolve, reject) => {
      if (!this.isOpen) return reject(lost());
      this.#pings.push({ resolve, reject });
      this.#send('ping');
    });
  }

  /** Takes no more jobs. Resolves when none comes any more. */
  pause(): Promise<void> {
    return new Promise((resolve) => {
      if (!this.isOpen) return resolve();
      this.#pauses.push(resolve);
      this.#send('{"type":"pause"}');
    });
  }

  close(): void {
    if (!this.isOpen) return;
    this.isOpen = false;
    this.socket.close(1000);
    this.#giveUp();
  }

  /** Closes a connection whose other side does not answer any more. */
  abandon(): void {
    if (!this.isOpen) return;
    this.close();
    this.events.lost();
  }

  #send(text: string): void {
    try {
      this.socket.send(text);
    } catch {
      this.#over();
    }
  }

  #acknowledgement(): string {
    if (this.#isAcknowledged) return '';
    this.#isAcknowledged = true;
    this.#read = 0;
    return `,"got":${this.#got}`;
  }

  #receive(data: unknown): void {
    if (!this.isOpen || typeof data !== 'string') return;
    if (data === 'pong') this.#pings.shift()?.resolve();
    if (!data.startsWith('{')) return;
    const message = named(JSON.parse(data)) as Named<QueueMessage>;
    switch (message.type) {
      case 'jobs':
        this.#got = message.seq;
        this.#isAcknowledged = false;
        this.#read += data.length;
        this.events.jobs(message.jobs);
        if (this.#read > READ_EVERY) this.#send(`{"type":"read"${this.#acknowledgement()}}`);
        break;
      case 'ping':
        this.#send(JSON.stringify({ type: 'pong', n: message.n }));
        break;
      case 'reported':
      case 'enqueued':
      case 'streamed':
        this.#questionOf(message)?.resolve(message);
        break;
      case 'heartbeat':
        this.#questionOf({ id: message.id ?? this.#heartbeats[0] })?.resolve(message);
        break;
      case 'paused':
        this.#pauses.shift()?.();
        break;
      case 'taken':
        for (const { jobId, why } of message.jobs) this.events.taken(jobId, why === 'cancelled' ? why : 'lost');
        break;
      case 'directive':
        this.events.directive(message.state);
        break;
      case 'error':
        this.#refused(message);
        break;
    }
  }

  #refused(message: Record<string, unknown>): void {
    const refusal = refusalOf(message.error);
    const question = this.#questionOf(message);
    if (question) question.reject(refusal);
    else this.events.refused(refusal);
  }

  /** What the message answers, which then waits no more. */
  #questionOf({ id }: Record<string, unknown>): Question<Record<string, unknown>> | undefined {
    const question = this.#questions.get(Number(id));
    this.#questions.delete(Number(id));
    return question;
  }

  #over(): void {
    if (!this.isOpen) return;
    this.isOpen = false;
    this.#giveUp();
    this.events.lost();
  }

  #giveUp(): void {
    const questions = [...this.#questions.values(), ...this.#pings.splice(0)];
    this.#questions.clear();
    for (const { reject } of questions) reject(lost());
    const pauses = this.#pauses;
    this.#pauses = [];
    for (const resolve of pauses) resolve();
  }
}

const lost = () => unanswered('The connection to the queue was lost.', true);
