/** The inputs of a handler, and the settings that its author may give. */
import type { Duration, JobEnvelope, RetryPolicy } from '../producer/envelope';
import type { Logger, LogSink } from './log';

/** The job to run, typed by its arguments. */
export type Job<Args extends readonly unknown[] = unknown[]> = JobEnvelope<Args>;

/** The part of a Worker's execution context that is used here. */
export interface ExecutionContextLike {
  waitUntil(promise: Promise<unknown>): void;
}

/** What a handler gets beside the job's arguments. */
export interface HandlerContext<Env = unknown> {
  /** The whole job record. */
  job: Job;
  /** Which run of the job this is, from 1. */
  attempt: number;
  /** New for each attempt; undefined when the caller named none. */
  deliveryId: string | undefined;
  /** Bindings and variables of this Worker. */
  env: Env;
  /** Aborts when the job's timeout is over, or when the queue ends the call. Pass it to `fetch`. */
  signal: AbortSignal;
  /** Writes JSON lines that carry the job's id, type and attempt. */
  log: Logger;
  /** Keeps the Worker alive for work that outlives the answer. Its failure does not fail the job. */
  waitUntil(promise: Promise<unknown>): void;
}

/**
 * Runs one job. Its return value (or resolved value) is the job's result and must be JSON of at most 1 MiB. A thrown
 * error is the attempt's error, and the retry policy decides what follows. Declared through a method so that parameters
 * compare bivariantly: a handler typed for `[Email]` fits in a map whose jobs are not typed.
 */
export type HandlerFunction<Args extends readonly unknown[] = unknown[], Result = unknown, Env = unknown> = {
  run(job: Job<Args>, ctx: HandlerContext<Env>): Result | Promise<Result>;
}['run'];

/**
 * Computes the delay before the next run of a failed job. `attempt` counts from 0: it is 0 before the first retry, that
 * is `ctx.attempt - 1` of the run that failed. The result is a duration: a number of milliseconds, or a string such as
 * `"90s"`. It is used without jitter or cap, and never buys a run beyond the job's `maxAttempts`. If the function
 * throws, or returns no duration, the queue's own policy decides.
 * @example
 * const fibonacci: RetryFunction = (attempt) => `${[1, 2, 3, 5, 8, 13][Math.min(attempt, 5)]}m`;
 */
export type RetryFunction = (attempt: number, error: unknown) => Duration;

/** A handler with settings. Settings are the job-type layer: the job's own take precedence. */
export interface HandlerDefinition<Args extends readonly unknown[] = unknown[], Result = unknown, Env = unknown> {
  handler: HandlerFunction<Args, Result, Env>;
  /** A policy, announced to the queue; or a function that is called after each failure. */
  retry?: RetryPolicy | RetryFunction;
  /** How long a run may take, in ms, 1 … 900000. Default 30000. */
  timeoutMs?: number;
  /** Runs in all, the first included; 0 acts as 1. */
  maxAttempts?: number;
  /** How many jobs of this type may run at once in one isolate, from 1. The wait counts towards the timeout. */
  concurrency?: number;
}

/** A handler, with or without settings. */
export type HandlerEntry<Args extends readonly unknown[] = unknown[], Env = unknown> =
  | HandlerFunction<Args, unknown, Env>
  | HandlerDefinition<Args, unknown, Env>;

/** Handlers by job type. Every type of `Jobs` needs one; `"*"` takes the types that have none. */
export type Handlers<Jobs extends Record<keyof Jobs, readonly unknown[]>, Env = unknown> = {
  [Type in keyof Jobs]: HandlerEntry<Jobs[Type], Env>;
} & Partial<Record<Exclude<'*', keyof Jobs>, HandlerEntry<unknown[], Env>>>;

/** Settings of the whole handler Worker. */
export interface WorkerOptions<Env = unknown> {
  /** Serves requests that are not deliveries. Without it such requests are answered 404 or 405. */
  fetch?(request: Request, env: Env, executionCtx: ExecutionContextLike): Response | Promise<Response>;
  /** The path at which deliveries arrive. Default: any, or `/` when there is a `fetch` of your own. */
  path?: string;
  /** Receives log lines. Default: the console, one JSON line each. */
  log?: LogSink;
}

/** The default export of a handler Worker. */
export interface HandlerWorker<Env = unknown> {
  fetch(request: Request, env: Env, executionCtx?: ExecutionContextLike): Promise<Response>;
}
