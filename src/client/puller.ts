/** What a worker that pulls can ask the queue for: all that running it needs. */

import type { LogEntry } from '../handler/journal';
import type { DeliveryOutcome, Progress } from '../handler/protocol';
import type { StepRecord } from '../handler/step-rules';
import type { SignalUrlAsked, StreamMessage } from '../handler/voice';
import type { JobEnvelope } from '../producer/envelope';
import type { ClientOptions } from './options';
import type { HeartbeatAnswer, Wanted } from './pull-types';
import type { Address } from './pulse';
import type { Held, Note, ReportOutcome, SentReport } from './report';
import type { QueueSocket, QueueSocketEvents } from './worker-channel';

export type { Held };

export interface FetchOptions extends Wanted {
  /** Maximum number, 1 … 100. Default 1. */
  count?: number | undefined;
  /** How long to wait for the first, in ms, 0 … 20000, at most half of the client's timeout. Default 0. */
  waitMs?: number | undefined;
  /** Only from these of its queues. Default: from all. */
  queues?: readonly string[] | undefined;
  /** Maximum number from some of these. */
  counts?: Readonly<Record<string, number>> | undefined;
}

export interface ReleaseOptions {
  /** `false`: it was never begun, so the attempt does not count. Default true. */
  attemptUsed?: boolean | undefined;
  message?: string | undefined;
}

/** Settings of the client that a worker may have otherwise. */
export type WorkerConnection = Pick<ClientOptions, 'signal' | 'timeoutMs' | 'retry'>;

export interface Exchanged<Job> {
  jobs: Job[];
  outcomes?: ReportOutcome[];
}

/** What a run needs of its worker: a `PullWorker`. */
export interface Puller {
  readonly id: string;
  readonly address: Address | undefined;
  /** What it works on, the most urgent first. */
  readonly queues: readonly string[];
  /** The longest that a fetch of its client waits, in ms. */
  readonly longestWaitMs: number;
  fetch(options: FetchOptions): Promise<JobEnvelope[]>;
  settle(job: Held, answer: DeliveryOutcome): Promise<unknown>;
  writeReport(job: Held, answer: DeliveryOutcome): SentReport;
  writeNote(job: Held, note: Note): SentReport;
  /** Sends reports together. @throws {NotFoundError} about the route when the server is of an earlier release */
  sendReports(reports: readonly SentReport[]): Promise<ReportOutcome[]>;
  /** Sends reports, and fetches without waiting. `outcomes` is absent with a server of an earlier release. */
  exchange(reports: readonly SentReport[], options: FetchOptions): Promise<Exchanged<JobEnvelope>>;
  release(job: Held, options: ReleaseOptions): Promise<unknown>;
  progress(job: Held, report: Progress): Promise<{ cancelled?: boolean }>;
  saveCheckpoint(job: Held, state: unknown): Promise<unknown>;
  recordStep(job: Held, name: string, record: StepRecord): Promise<StepRecord | undefined>;
  recall(job: Held, name: string): Promise<StepRecord | undefined>;
  signalUrl(job: Held, asked: SignalUrlAsked): Promise<string>;
  /** JSON of a message of `POST /jobs/:id/streams/:name`. */
  streamText(job: Held, message: StreamMessage): string;
  writeStream(job: Held, message: StreamMessage): Promise<unknown>;
  log(job: Held, lines: readonly LogEntry[]): Promise<void>;
  enqueue(child: Record<string, unknown>): Promise<JobEnvelope>;
  enqueueMany(children: readonly Record<string, unknown>[]): Promise<JobEnvelope[]>;
  heartbeat(held: readonly Held[], state?: 'drain' | 'stopped'): Promise<HeartbeatAnswer>;
  heartbeatText(held?: readonly Held[], state?: 'drain' | 'stopped'): string;
  /** Opens a socket to a queue. Undefined: there can be none. @throws {UnavailableError} when none came about */
  openLine(queue: string, wanted: Wanted, events: QueueSocketEvents): Promise<QueueSocket | undefined>;
  with(settings: WorkerConnection): Puller;
  onCancelled(listener: (job: Held) => void): () => void;
}
