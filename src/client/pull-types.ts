import type * as progress from '../contract/progress';
import type * as contract from '../contract/pull';
import type * as steps from '../contract/steps';
import type { LogSink } from '../handler/log';
import type { HandlerEntry, HandlerFunction } from '../handler/types';
import type { HandlerWorker } from '../handler/worker-types';
import type { Named } from '../producer/names';
import type { JobProgress } from './jobs';

type Heartbeat = Named<
  Pick<contract.HeartbeatRequest, 'visibility_timeout_ms' | 'hostname' | 'pid' | 'concurrency' | 'version' | 'labels'>
>;
type Described = { [Name in keyof Heartbeat]?: Heartbeat[Name] | undefined };

export type HeartbeatAnswer = Omit<Named<contract.HeartbeatAnswer>, 'acknowledged'>;

/** How a worker describes itself. */
export interface WorkerOptions extends Omit<Described, 'visibilityTimeoutMs' | 'labels'> {
  /** Jobs are taken from these, the first ones first. */
  queues: readonly string[];
  /** Lease length, in ms. Default: the job's, else the queue's, else 60000 for `run`, and 30 minutes for others. */
  visibilityTimeoutMs?: Described['visibilityTimeoutMs'] | undefined;
  labels?: Readonly<NonNullable<Described['labels']>> | undefined;
}

type Progress = Named<progress.ProgressReport>;

export interface ProgressReport extends Pick<Progress, 'message' | 'data'> {
  /** 0 … 1. */
  progress: NonNullable<Progress['progress']>;
  /** Saved together with the progress, both or neither. */
  checkpoint?: unknown;
}

export type ProgressAnswer = JobProgress;

/** The answer to a step: what is on record of it, when that was there before. */
export type RecordedStep = Pick<
  Named<steps.StepRecorded>,
  'result' | 'error' | 'signal' | 'timedOut' | 'until' | 'run'
>;

type Handler = Named<contract.HandlerSettings>;

/** Retry settings of the handler of a type, or of all others (`*`); the job's own settings override them. */
export interface HandlerSettings extends Pick<Handler, 'type'> {
  retry?: NonNullable<Handler['retry']> | undefined;
  maxAttempts?: NonNullable<Handler['maxAttempts']> | undefined;
  /** It takes many jobs in one call: those that are fetched for one have the same `chunk`, and count as one. */
  batch?: NonNullable<Handler['batch']> | undefined;
}

export interface Wanted {
  /** Only jobs of these types, at most 1000. Default: of any. */
  types?: readonly string[] | undefined;
  /** Settings of its handlers. Default: unchanged. */
  handlers?: readonly HandlerSettings[] | undefined;
}

/** Handlers by job type: functions of `(job, ctx)`, as in a handler Worker. `'*'` takes all other types. */
export type WorkerHandlers<Job extends { type: string; args: readonly unknown[] }, Env = unknown> = {
  [Type in Job['type']]?: HandlerEntry<(Job & { type: Type })['args'], Env>;
} & { '*'?: HandlerEntry<unknown[], Env> };

/**
 * Whatever can run jobs: handlers by type, one function for all types, what `defineHandlers` returned, or the address
 * of a module that exports this, as `default` or `handlers`: `new URL('./handlers.js', import.meta.url)`.
 */
export type RunnableHandlers<Job extends { type: string; args: readonly unknown[] }, Env = unknown> =
  | WorkerHandlers<Job, Env>
  | HandlerFunction<unknown[], unknown, Env>
  | HandlerWorker<Env>
  | URL;

export interface RunOptions<Env = unknown> {
  /** Ends the worker: it takes no more jobs and finishes those that it began. */
  signal: AbortSignal;
  /** Jobs at once, 1 … 100. Default 10; where each queue has a number of its own, their sum. */
  concurrency?: number | undefined;
  /** Jobs at once of some of the queues, 1 … 100: `{ video: 1 }`. The others have what `concurrency` leaves them. */
  queueConcurrency?: Readonly<Record<string, number>> | undefined;
  /**
   * Run the handlers in this many Node threads, 1 … 100, one job at a time in each; `concurrency` is then this
   * number. They come from a module, which each thread loads.
   */
  threads?: number | undefined;
  /** How long a fetch waits for work, in ms. Default 5000. */
  waitMs?: number | undefined;
  /**
   * Take jobs over a WebSocket to each queue, where the runtime has one and there are at most ten queues and no pool:
   * they come at once, and so do cancellations. Over HTTP otherwise, and while no connection holds. Default true.
   */
  socket?: boolean | undefined;
  /** Longest time between two heartbeats, in ms; at most half of the lease. Default 5000; 15000 over a socket. */
  heartbeatMs?: number | undefined;
  /** While a handler blocks the event loop, keep leases by heartbeats from a thread (Node, by `url`). Default true. */
  heartbeatThread?: boolean | undefined;
  /** How long begun jobs may take once it ends, in ms; then they are aborted and given back. Default 30000. */
  shutdownTimeoutMs?: number | undefined;
  /**
   * What becomes of jobs of types that no handler has: `leave` leaves them to other workers, as is the default.
   * `deadLetter` takes them too, and makes dead letters of them: for a worker that is the only one of its queues.
   */
  unhandled?: 'leave' | 'deadLetter' | undefined;
  /** `ctx.env` of the handlers. Default: an empty object. */
  env?: Env | undefined;
  /** Receives the log lines of `ctx.log`. Default: that of `defineHandlers`, else the console, one JSON line each. */
  log?: LogSink | undefined;
  /** Receives errors of fetches, reports and heartbeats; the worker continues. Default: the console. */
  onError?: ((error: unknown) => void) | undefined;
}

/** How long leases are, in ms. */
export interface Leases {
  /** Set by the worker for all of its jobs. */
  chosenMs: number | undefined;
  /** Where neither worker, job nor queue set one. */
  defaultMs: number;
}
