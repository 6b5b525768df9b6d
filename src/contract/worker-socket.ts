/** The messages of the socket of a worker, subprotocol `tocsin.worker.v1`: JSON objects as text. */
import type { JobEnvelope } from '../job/wire';
import type { BatchAnswer, NewJob } from './jobs';
import type { HeartbeatAnswer, HeartbeatRequest, Report, ReportOutcomes, ReportRefusal } from './pull';
import { get } from './route';
import type { StreamWrite, StreamWritten } from './streams';
import type { Directive } from './workers';

/** What any message of a worker may have. */
interface Confirmed {
  /** Sent by workers of earlier releases; without effect. */
  got?: number;
}

/** The worker takes more jobs. */
export interface Ready extends Confirmed {
  type: 'ready';
  /** How many more; 1000 at once at most. */
  count: number;
}

/** Reports of attempts, up to 1000. */
export interface ReportMessage extends Confirmed {
  type: 'report';
  /** The answer has the same. */
  id: number;
  reports: Report[];
  /** How many more jobs it takes. */
  ready?: number;
}

/** Jobs to enqueue, all of them or none. */
export interface EnqueueMessage extends Confirmed {
  type: 'enqueue';
  /** The answer has the same. */
  id: number;
  jobs: NewJob[];
  /** The same jobs under the same key are enqueued once. */
  idempotency_key?: string;
  traceparent?: string;
  tracestate?: string;
}

/** Chunks of an output stream. */
export interface ChunksMessage extends Confirmed, StreamWrite {
  type: 'stream';
  /** The answer has the same. */
  id: number;
  job_id: string;
  /** Of the stream. */
  name: string;
}

/** A sign of life, which extends leases. */
export interface HeartbeatMessage extends Confirmed, Omit<HeartbeatRequest, 'worker_id'> {
  type: 'heartbeat';
  /** The answer has the same. */
  id?: number;
}

/** The worker takes no more jobs until it is ready again. */
export interface Pause {
  type: 'pause';
}

/** Says that everything before that ping was read. */
export interface Pong {
  type: 'pong';
  /** That of the ping. */
  n: number;
}

/** Sent by workers of earlier releases; without effect. */
export interface Read extends Confirmed {
  type: 'read';
}

/** What a worker says. */
export type WorkerRequest =
  | Ready
  | ReportMessage
  | EnqueueMessage
  | ChunksMessage
  | HeartbeatMessage
  | Pause
  | Pong
  | Read;

/** Jobs, each leased to the worker. */
export interface JobsMessage {
  type: 'jobs';
  /** Counts these messages. */
  seq: number;
  jobs: JobEnvelope[];
}

/** Asks what the worker has read. */
export interface Ping {
  type: 'ping';
  /** The answer has the same. */
  n: number;
}

/** What each report came to, in order. */
export interface ReportedMessage extends ReportOutcomes {
  type: 'reported';
  id: number;
}

/** Jobs that were enqueued. */
export interface SocketEnqueued extends BatchAnswer {
  /** The queue is nearly full. */
  pressure?: { depth: number; bound: number };
  /** The same message was answered before. */
  replayed?: true;
}

/** The jobs are enqueued. */
export interface EnqueuedMessage extends SocketEnqueued {
  type: 'enqueued';
  id: number;
}

/** The chunks are written. */
export interface StreamedMessage extends Pick<StreamWritten, 'run' | 'next'> {
  type: 'streamed';
  id: number;
}

/** The answer to a heartbeat. */
export interface HeartbeatTaken extends HeartbeatAnswer {
  type: 'heartbeat';
  id?: number;
}

/** No more jobs come. */
export interface Paused {
  type: 'paused';
}

/** Attempts that the worker has not reported are over. */
export interface AttemptsTaken {
  type: 'taken';
  jobs: { job_id: string; why: 'cancelled' | 'lost' }[];
}

/** An operator sent this. */
export interface DirectiveMessage {
  type: 'directive';
  state: Directive;
}

/** A message was refused, and has changed nothing. */
export interface RefusedMessage {
  type: 'error';
  /** That of the message. Without it the queue could not give out jobs, or could not read the message. */
  id?: number;
  error: ReportRefusal & { hint?: string };
}

/** What the queue says. */
export type QueueMessage =
  | JobsMessage
  | Ping
  | ReportedMessage
  | EnqueuedMessage
  | StreamedMessage
  | HeartbeatTaken
  | Paused
  | AttemptsTaken
  | DirectiveMessage
  | RefusedMessage;

interface SocketQuery {
  queue: string;
  worker_id?: string;
  /** Separated by commas. */
  types?: string;
  /** JSON of what its handlers say. */
  handlers?: string;
  visibility_timeout_ms?: number;
  default_visibility_timeout_ms?: number;
}

/** Below `/ojs/v1`. */
export const workerSocket = {
  /** Opens the WebSocket of a worker, for jobs, reports and directives. */
  open: get<{
    query: SocketQuery;
    fromClient: WorkerRequest;
    fromServer: QueueMessage;
    101: null;
    errors: 413 | 426;
  }>('/workers/socket', { scope: 'data:write', toWorker: true, bound: 'work' }),
};
