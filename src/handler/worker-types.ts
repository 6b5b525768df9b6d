/** A handler Worker as its author writes it: all handlers, what is around them, and the types that follow from them. */
import type { LogSink } from './log';
import type { StandardSchema } from './schema';
import type {
  BatchedHandler,
  ExecutionContextLike,
  HandlerContext,
  HandlerDefinition,
  HandlerEntry,
  Job,
} from './types';

/** Handlers by job type. Every type of `Jobs` needs one; `"*"` takes the types that have none. */
export type Handlers<Jobs extends Record<keyof Jobs, readonly unknown[]>, Env = unknown> = {
  [Type in keyof Jobs]: HandlerEntry<Jobs[Type], Env>;
} & Partial<Record<Exclude<'*', keyof Jobs>, HandlerEntry<unknown[], Env>>>;

/** The job of a handler whose type is written nowhere else: its arguments are those of the schema, if there is one. */
export interface InferredJob<Args> extends Omit<Job, 'args'> {
  args: Args & readonly unknown[];
}

type InferredFunction<Args> = { run(job: InferredJob<Args>, ctx: HandlerContext): unknown }['run'];

/** A handler whose types are found by looking at it. */
export type InferredEntry<Args> =
  | InferredFunction<Args>
  | BatchedHandler
  | (Omit<HandlerDefinition, 'handler' | 'args'> & {
      handler: InferredFunction<Args> | BatchedHandler;
      // biome-ignore lint/suspicious/noExplicitAny: what the producer writes may be of any type
      args?: StandardSchema<any, Args> | undefined;
    });

/** Refuses settings that there are not; what is inferred would have any. */
export type KnownSettings<Entry> = Entry extends ((...args: never[]) => unknown) | BatchedHandler
  ? unknown
  : { [Name in Exclude<keyof Entry, keyof HandlerDefinition>]?: never };

/**
 * Runs around every handler: call `next` for what is inside, and return its result, or another. Of an error of `next`,
 * `isSuspended` says whether the run only ends until later.
 * @example
 * const timed: Middleware = async (job, ctx, next) => {
 *   const start = Date.now();
 *   try {
 *     return await next();
 *   } finally {
 *     ctx.log.info('ran', { ms: Date.now() - start });
 *   }
 * };
 */
export type Middleware<Env = unknown> = {
  around(job: Job, ctx: HandlerContext<Env>, next: () => Promise<unknown>): unknown;
}['around'];

/** Called after a failed attempt. What it throws is logged and changes nothing. */
export type FailureHook<Env = unknown> = {
  hook(job: Job, ctx: HandlerContext<Env>, error: unknown): unknown;
}['hook'];

/** Settings of the whole handler Worker. */
export interface WorkerOptions<Env = unknown> {
  /** Run around every handler, the first one outermost. */
  use?: readonly Middleware<Env>[] | undefined;
  /** Called after each failed attempt, before the queue is notified. */
  onFailed?: FailureHook<Env> | undefined;
  /**
   * Called after `onFailed` when the failure ends the job, as far as this side knows: attempts used up, an error that
   * is not retried, or a verdict such as `discard`. A run that takes its Worker down calls no hook.
   */
  onDiscarded?: FailureHook<Env> | undefined;
  /** Serves requests that are not deliveries. Without it such requests are answered 404 or 405. */
  fetch?(request: Request, env: Env, executionCtx: ExecutionContextLike): Response | Promise<Response>;
  /** The path at which deliveries arrive. Default: any, or `/` when there is a `fetch` of your own. */
  path?: string | undefined;
  /** Receives log lines. Default: the console, one JSON line each. */
  log?: LogSink | undefined;
}

/** Under this name the type of a handler Worker holds those of its handlers; it does not exist at run time. */
declare const HANDLERS: unique symbol;

/** The default export of a handler Worker. */
// biome-ignore lint/suspicious/noExplicitAny: of any handlers, unless it is said
export interface HandlerWorker<Env = unknown, Map = any> {
  fetch(request: Request, env: Env, executionCtx?: ExecutionContextLike): Promise<Response>;
  readonly [HANDLERS]: Map;
}

/** The handlers by type, of a Worker or as they are. */
type MapOf<T> = T extends { readonly [HANDLERS]: infer Map } ? Map : T;

/** What a producer writes as the arguments of a job that this handler runs. */
type ArgsOf<Entry> = Entry extends { args: StandardSchema<infer Input, infer _Output> }
  ? Extract<Input, readonly unknown[]>
  : FunctionOf<Entry> extends BatchedHandler<infer Args>
    ? Args
    : FunctionOf<Entry> extends (job: infer J, ...rest: never[]) => unknown
      ? J extends { args: infer Args extends readonly unknown[] }
        ? Args
        : unknown[]
      : unknown[];

type FunctionOf<Entry> = Entry extends { handler: infer Run } ? Run : Entry;

/**
 * The arguments of jobs by type, from their handlers: of the schema, else of the `job` that a handler declares.
 * @example
 * const tocsin = new TocsinClient<JobsOf<typeof handlers>>({ service: env.TOCSIN });
 */
export type JobsOf<T> = { [Type in Exclude<keyof MapOf<T>, '*'>]: ArgsOf<MapOf<T>[Type]> };

/** The results of jobs by type, from their handlers. */
export type ResultsOf<T> = {
  [Type in Exclude<keyof MapOf<T>, '*'>]: FunctionOf<MapOf<T>[Type]> extends BatchedHandler<
    readonly unknown[],
    infer Result
  >
    ? Result
    : FunctionOf<MapOf<T>[Type]> extends (...args: never[]) => infer Result
      ? Awaited<Result>
      : unknown;
};
