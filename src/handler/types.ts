/** The inputs of a handler, and the settings that its author may give. */

import type { JobToUndo } from '../job/undo';
import type { EnqueueDefaults } from '../producer/defaults';
import type { Duration, JobEnvelope, RetryPolicy } from '../producer/envelope';
import type { JobOptions, NewJob } from '../producer/job';
import type { Logger } from './log';
import type { ChildError } from './outcomes';
import type { StandardSchema } from './schema';

/** The job to run, typed by its arguments. */
export type Job<Args extends readonly unknown[] = unknown[]> = JobEnvelope<Args>;

/** The part of a Worker's execution context that is used here. */
export interface ExecutionContextLike {
  waitUntil(promise: Promise<unknown>): void;
}

/** What the function of a step gets. */
export interface StepContext {
  /** Aborts as {@link HandlerContext.signal} does, and when the `timeout` of the step is over. */
  readonly signal: AbortSignal;
}

/** The retry policy of a step. */
export interface StepRetry
  extends Pick<RetryPolicy, 'maxAttempts' | 'initialInterval' | 'backoffCoefficient' | 'maxInterval'> {
  backoffStrategy?: 'exponential' | 'linear' | 'constant' | 'polynomial' | undefined;
  /** Default true: times 0.5 … 1.5. */
  jitter?: boolean | undefined;
  nonRetryableErrors?: readonly string[] | undefined;
}

/** How a step is done. */
export interface StepOptions {
  /**
   * Tries in all, or a policy over the built-in default: 3 tries, 1 s doubling up to 5 min. A failed try then uses no
   * attempt of the job. Without it the attempt fails, and the job's own policy decides.
   */
  retry?: number | StepRetry | undefined;
  /** How long one try may take; what it did not finish may continue beside the next one. */
  timeout?: Duration | undefined;
}

/** What the page of a signal URL asks. */
export interface SignalUrlOptions {
  /** `waitFor` returns `{ choice }` with the chosen one: at most 10, of 64 characters each. Without: `null`. */
  choices?: readonly string[] | undefined;
  /** The question, at most 200 characters. Default: the name of the signal. */
  title?: string | undefined;
  /** At most 90 days. */
  expires: Duration;
}

/** An output stream of a job: append-only, and kept with the job. Made by `ctx.stream`. */
export interface OutputStream {
  /**
   * Appends a text or other JSON, up to 256 KiB. Readers get it at once. Resolves immediately, but waits while 1 MiB is
   * not confirmed yet.
   * @throws {StreamFullError} beyond 16 streams, or 10 MiB of all streams of the job
   */
  write(chunk: unknown): Promise<void>;
  /** Resolves once everything is written, which may take a second. At the end of a step or run that happens anyway. */
  flush(): Promise<void>;
}

/** What a handler gets beside the job's arguments. */
export interface HandlerContext<Env = unknown> {
  /** The whole job record. */
  job: Job;
  /** Which run of the job this is, from 1. */
  attempt: number;
  /** New for each attempt; undefined when the caller named none. */
  deliveryId: string | undefined;
  /** Bindings and variables of this Worker, or what a worker that pulls was given. */
  env: Env;
  /** Aborts at the job's timeout, when the job is cancelled, and when the worker is stopped. Pass it to `fetch`. */
  signal: AbortSignal;
  /**
   * Aborts when the worker that pulled the job takes no more jobs because it ends, well before
   * {@link HandlerContext.signal} does: save what you have, and return or throw. Never for pushed jobs, whose Workers
   * are not notified.
   */
  draining: AbortSignal;
  /** Writes JSON lines that carry the job's id, type and attempt. The last 100 lines are kept with the job. */
  log: Logger;
  /** Keeps the Worker alive for work that outlives the answer. Its failure does not fail the job. */
  waitUntil(promise: Promise<unknown>): void;
  /** Reports how far the job is, 0 … 1; it need not be awaited. */
  progress(fraction: number, message?: string, data?: Record<string, unknown>): Promise<void>;
  /** Saves JSON for the next attempt, which reads it as `job.checkpoint?.state`. Resolves once it is durable. */
  checkpoint(state: unknown): Promise<void>;
  /**
   * Opens an output stream, which browsers and others can follow while the job runs, and read later. It has one writer:
   * the step that calls this, or the handler outside of steps. When that executes again, the stream starts over.
   * @param name 1 … 128 characters
   * @throws {TypeError} when another step writes it, or the target of the job cannot stream
   */
  stream(name: string): OutputStream;
  /** Writes everything that is read to an output stream: texts, bytes as UTF-8, or other JSON. */
  pipe(name: string, chunks: AsyncIterable<unknown> | ReadableStream<unknown>): Promise<void>;
  /**
   * Enqueues a job; its `meta.parent_id` is the id of this one. In a run that is repeated it is enqueued again, except
   * inside of a {@link HandlerContext.step}.
   */
  enqueue(type: string, args: readonly unknown[], options?: JobOptions): Promise<JobEnvelope>;
  /**
   * Enqueues several jobs at once, all or none: at most 1,000, and 1 MiB of JSON. Otherwise like
   * {@link HandlerContext.enqueue}.
   */
  enqueueMany(jobs: readonly NewJob[]): Promise<JobEnvelope[]>;
  /**
   * Does something once per job: its result is recorded, and later runs get it from there. The result is JSON, and
   * comes back as JSON does. When `run` throws nothing is recorded, and the attempt fails unless the handler catches
   * it.
   * @param name 1 … 128 characters, each once in a run, and the same in every run
   * @throws {StepError} when it has failed for good, by the `retry` of its options
   */
  step<T>(name: string, run: (step: StepContext) => T | Promise<T>, options?: StepOptions): Promise<T>;
  /**
   * Waits for `duration`, counted from when it was first reached. The run ends as soon as the handler waits for nothing
   * but sleeps and signals; a later run comes back to this place. In a run that ends here the call does not return, and
   * no `finally` around it is entered. Not inside of a step.
   */
  sleep(name: string, duration: Duration): Promise<void>;
  /**
   * Waits until `time`, as `sleep` does. Later runs keep the time of the first run that came here, whatever they pass.
   * A time in the past does not wait.
   */
  sleepUntil(name: string, time: Date | number | string): Promise<void>;
  /**
   * Waits until a signal of this name is sent to the job, and returns what came with it. It ends the run as `sleep`
   * does.
   * @param options.timeout default 7 days
   * @throws {SignalTimeoutError} when it did not come in time
   */
  waitFor<T = unknown>(name: string, options?: { timeout?: Duration | undefined }): Promise<T>;
  /**
   * Makes a URL that lets a person send the signal `name` to this job from a browser, and records it as the step
   * `url:` and the name: later runs get the same one. The queue needs `TOKEN_SECRET` and `PUBLIC_URL`.
   * @param name at most 124 characters
   * @throws {TypeError} where the target of the job cannot ask the queue while it runs
   */
  signalUrl(name: string, options: SignalUrlOptions): Promise<string>;
  /**
   * Enqueues a job and waits until it has ended: its result is returned, in later runs too. It begins when this run
   * has ended, which happens as with `sleep`, and this job takes no slot while it waits. Not inside of a step.
   * @param name 1 … 128 characters, each once in a run, and the same in every run
   * @throws {ChildError} when the job did not complete @throws {RunTimeoutError} when it did not end in time
   */
  run<T = unknown>(name: string, type: string, args: readonly unknown[], options?: RunChildOptions): Promise<T>;
  /**
   * Enqueues up to 1,000 jobs, 1 MiB of JSON, and waits until all of them have ended. Otherwise like
   * {@link HandlerContext.run}.
   * @returns how each has ended, in order
   * @throws {ChildrenFailedError} when some did not complete @throws {RunTimeoutError} when some did not end in time
   */
  runAll<T = unknown>(
    name: string,
    jobs: readonly NewJob<string, readonly unknown[], ChildOptions>[],
    options: RunAllOptions & { onFailure: 'return' },
  ): Promise<ChildOutcome<T>[]>;
  runAll<T = unknown>(
    name: string,
    jobs: readonly NewJob<string, readonly unknown[], ChildOptions>[],
    options?: RunAllOptions,
  ): Promise<ChildResult<T>[]>;
}

/** Options of a job that a handler waits for. */
export type ChildOptions = JobOptions & {
  id?: undefined;
  pending?: undefined;
  unique?: undefined;
};

/** How a handler waits for jobs. */
interface WaitOptions {
  /** How long to wait, from when the jobs were enqueued. What has not ended then is cancelled. Default 7 days. */
  timeout?: Duration | undefined;
  /** Jobs that continue when this one ends, or waits no more, instead of being cancelled. Default false. */
  detached?: boolean | undefined;
}

/** Options of `ctx.run`: those of the job, and of the wait. */
export type RunChildOptions = ChildOptions & WaitOptions;

/** Options of `ctx.runAll`. */
export interface RunAllOptions extends WaitOptions {
  /**
   * What follows from a job that does not complete. `throw` waits for the others before it throws, `stop` cancels them,
   * `return` throws nothing: the list says it. Default `throw`.
   */
  onFailure?: 'throw' | 'stop' | 'return' | undefined;
}

/** A job that has completed. */
export type ChildResult<T = unknown> =
  | { id: string; result: T; omitted?: undefined; error?: undefined }
  /** Its result has that many bytes, more than are kept with the list: read the job by its id. */
  | { id: string; omitted: number; result?: undefined; error?: undefined };

/** How a job of several has ended. */
export type ChildOutcome<T = unknown> =
  | ChildResult<T>
  | { id: string | undefined; error: ChildError; result?: undefined; omitted?: undefined };

/**
 * Runs one job. Its return value (or resolved value) is the job's result and must be JSON of at most 1 MiB. A thrown
 * error is the attempt's error, and the retry policy decides what follows. Declared through a method so that parameters
 * compare bivariantly: a handler typed for `[Email]` fits in a map whose jobs are not typed.
 */
export type HandlerFunction<Args extends readonly unknown[] = unknown[], Result = unknown, Env = unknown> = {
  run(job: Job<Args>, ctx: HandlerContext<Env>): Result | Promise<Result>;
}['run'];

/** What a chunked handler gets beside its jobs. It has no steps, sleeps or signals: those belong to a single job. */
export interface BatchContext<Env = unknown>
  extends Pick<HandlerContext<Env>, 'env' | 'signal' | 'draining' | 'log' | 'waitUntil'> {
  /**
   * One of the jobs has failed, with what would be thrown otherwise: an error, `discard(…)`, `retryIn(…)`. The others
   * end as the handler does.
   */
  fail(job: Pick<Job, 'id'>, error: unknown): void;
}

/**
 * Runs the jobs of a call. It returns a list with a result for each job, in their order, or nothing. What it throws
 * fails all jobs that it has not failed by itself.
 */
export type BatchFunction<Args extends readonly unknown[] = unknown[], Result = unknown, Env = unknown> = {
  run(
    jobs: readonly Job<Args>[],
    ctx: BatchContext<Env>,
    // biome-ignore lint/suspicious/noConfusingVoidType: a handler without results returns nothing
  ): readonly Result[] | void | undefined | Promise<readonly Result[] | void | undefined>;
}['run'];

/** Under this name the type of a chunked handler holds those of its jobs; it does not exist at run time. */
declare const OF: unique symbol;

/** A handler that takes many jobs in one call, made by `batched`. */
export interface BatchedHandler<Args extends readonly unknown[] = readonly unknown[], Result = unknown, Env = unknown> {
  readonly [OF]: { args: Args; result: Result; takes(env: Env): void };
}

/**
 * Computes the delay before the next run of a failed job. `attempt` counts from 0: it is 0 before the first retry, that
 * is `ctx.attempt - 1` of the run that failed. The result is a duration: a number of milliseconds, or a string such as
 * `"90s"`. It is used without jitter or cap, and never buys a run beyond the job's `maxAttempts`. If the function
 * throws, or returns no duration, the queue's own policy decides.
 * @example
 * const fibonacci: RetryFunction = (attempt) => `${[1, 2, 3, 5, 8, 13][Math.min(attempt, 5)]}m`;
 */
export type RetryFunction = (attempt: number, error: unknown) => Duration;

/** The job whose steps are undone: what it was, and how it ended. */
export interface UndoneJob extends JobToUndo {}

/** What a function that undoes a step gets beside the result of the step. */
export interface UndoContext<Env = unknown>
  extends Pick<HandlerContext<Env>, 'env' | 'log' | 'enqueue' | 'enqueueMany'>,
    StepContext {
  job: UndoneJob;
  /** The name of the step. */
  step: string;
  /**
   * Has the step a result on record, and have all its children completed? Otherwise it was cut off or has failed: its
   * effect may, or may not, have come about, and only `ctx.runAll` has a result.
   */
  isCertain: boolean;
  /** The children of a `ctx.run` or `ctx.runAll`, in order; null: not started, as far as is known. Empty for a step. */
  jobIds: readonly (string | null)[];
}

/**
 * Undoes a step. It must be idempotent: when it throws, or is cut off, it is called again. `result` is what the step
 * returned, as JSON; undefined where that is not known, or was too large to pass on.
 */
export type UndoFunction<Env = unknown> = {
  // biome-ignore lint/suspicious/noExplicitAny: what the step returned is known to the author of both
  undo(result: any, context: UndoContext<Env>): unknown;
}['undo'];

/** How to undo steps, by their names; a name may end in `*`, and the longest that fits counts. */
export type UndoTable<Env = unknown> = Readonly<Record<string, UndoFunction<Env>>>;

/** A handler with settings. Settings are the job-type layer: the job's own take precedence. */
export interface HandlerDefinition<Args extends readonly unknown[] = unknown[], Result = unknown, Env = unknown> {
  handler: HandlerFunction<Args, Result, Env> | BatchedHandler<Args, Result, Env>;
  /**
   * A schema of the arguments as a list, of any library that follows Standard Schema. What it makes of them is
   * `job.args`; a job whose arguments it refuses fails with the code `invalid_args` and is not retried.
   * @example args: z.tuple([z.object({ to: z.email() })])
   */
  args?: StandardSchema<unknown, Args> | undefined;
  /** A policy, announced to the queue; or a function that is called after each failure. */
  retry?: RetryPolicy | RetryFunction | undefined;
  /** How long a run may take, in ms, 1 … 900000. Default 30000. */
  timeoutMs?: number | undefined;
  /** Runs in all, the first included; 0 acts as 1. */
  maxAttempts?: number | undefined;
  /** How many jobs of this type may run at once in one isolate, from 1. The wait counts towards the timeout. */
  concurrency?: number | undefined;
  /**
   * Options of jobs of this type that producers who know these handlers enqueue, where these set none: a deployment's
   * own code, clients made with `handlers`, and `ctx.enqueue`. No one else knows them.
   */
  defaults?: EnqueueDefaults | undefined;
  /**
   * How to undo steps, by their names, when a job of this type ends otherwise than completed. It runs as a job of its
   * own, of the type with `.undo` added: the last step first, each as a step with tries of its own.
   * @example undo: { charge: (paid, { env, job }) => env.SHOP.refund(`${job.id}:charge`) }
   */
  undo?: UndoTable<Env> | undefined;
  /** What a run does that ends or pauses without reaching a recorded step: `warn` (default), or `fail` for good. */
  onDrift?: 'warn' | 'fail' | undefined;
  /** Tries of each entry of `undo`, or a policy. Default 5. */
  undoRetry?: number | StepRetry | undefined;
}

/** A handler, with or without settings. */
export type HandlerEntry<Args extends readonly unknown[] = unknown[], Env = unknown> =
  | HandlerFunction<Args, unknown, Env>
  | BatchedHandler<Args, unknown, Env>
  | HandlerDefinition<Args, unknown, Env>;
