import type { Failure } from '../handler/failure';
import type { LogEntry } from '../handler/journal';
import type { Progress } from '../handler/protocol';
import type { StepRecord } from '../handler/step-rules';
import type { HandlerWorker, JobsOf, ResultsOf } from '../handler/worker-types';
import type { RunRequest } from '../job/wire';
import type { JobEnvelope } from '../producer/envelope';
import type { Named } from '../producer/names';
import type { PlayedRuns } from './runs';

export interface RunOptions<Env = unknown> {
  /** Which run of the job this is. Default 1. */
  attempt?: number | undefined;
  /** Runs in all. Default: the handler's, else 3. */
  maxAttempts?: number | undefined;
  meta?: Record<string, unknown> | undefined;
  /** `ctx.env`: bindings and variables, or fakes. Default: none. */
  env?: Env | undefined;
  /** The state that an earlier run saved by `ctx.checkpoint`. */
  checkpoint?: unknown;
  /** What earlier runs recorded: the `steps` of their outcome, or `{ charge: { result: 7 } }`. */
  steps?: Readonly<Record<string, StepRecord>> | undefined;
  /** Signals that have come, with their payloads: `{ approved: { by: 'Ada' } }`. */
  signals?: Readonly<Record<string, unknown>> | undefined;
  /** How jobs ended that the handler waits for: `{ cover: { result: 7 } }`. Others have not ended. */
  runs?: PlayedRuns | undefined;
  /** The job's own limit of the run, in ms. Default: the handler's, else 30 s. */
  timeoutMs?: number | undefined;
  /** Aborts `ctx.signal`, as when a worker is stopped. */
  signal?: AbortSignal | undefined;
  /** When the run begins: epoch ms. Sleeps are counted from it. Default: now. */
  now?: number | undefined;
  /** Other members of the job: `{ queue: 'mail', tags: ['vip'], parentResults: […] }`. */
  job?: Partial<JobEnvelope> | undefined;
}

export interface HandlerRun<Result = unknown> {
  /** `snoozed`: it continues later, and no attempt was used. */
  status: 'completed' | 'failed' | 'snoozed';
  /** As the queue keeps it: what JSON makes of it. */
  result: Result | undefined;
  /** What the queue is notified of the failure. */
  error: RunError | undefined;
  /** Is it the job's last run? Not after a snooze, nor after a failure that is tried again. */
  isLast: boolean;
  /** After a snooze: when the job continues, epoch ms, and the signal that it waits for. */
  wakes: { at: number; signal?: string } | undefined;
  /** The lines of `ctx.log`, as they are kept with the job. */
  log: LogEntry[];
  /** Every report of `ctx.progress`. */
  progress: Progress[];
  /** The last state of `ctx.checkpoint`; that of an earlier run when it saved none. */
  checkpoint: unknown;
  /** What is recorded now of steps, sleeps and signals: for the next run, give it as `steps`. */
  steps: Record<string, StepRecord>;
  /** The chunks of the output streams that it wrote, by name. */
  streams: Record<string, unknown[]>;
  enqueued: EnqueuedJob[];
  /** After a snooze: the jobs that it waits for, by the names of the calls. */
  waitsFor: AwaitedRun[];
}

/** Jobs that a handler waits for. */
export interface AwaitedRun extends Omit<Named<RunRequest>, 'jobs'> {
  /** Absent: they had begun before. */
  jobs?: Omit<EnqueuedJob, 'id'>[];
}

export interface RunError extends Named<Failure> {}

export interface EnqueuedJob {
  id: string;
  type: string;
  args: readonly unknown[];
  /** With `parent_id`: the id of the job that enqueued it. */
  meta: Record<string, unknown>;
  /** Those that were given; times are as they are sent: `delay: '10s'` is `delayUntil: '+10s'` or the like. */
  options: Record<string, unknown>;
}

// biome-ignore lint/suspicious/noExplicitAny: of any environment
type MapOf<H> = H extends HandlerWorker<any, infer Map> ? Map : H;

export type TypesOf<H> = '*' extends keyof MapOf<H>
  ? string
  : [keyof JobsOf<H>] extends [never]
    ? string
    : keyof JobsOf<H> & string;

export type ArgsOf<H, Type> = Type extends keyof JobsOf<H> ? JobsOf<H>[Type] : readonly unknown[];

export type ResultOf<H, Type> = Type extends keyof ResultsOf<H> ? ResultsOf<H>[Type] : unknown;

/** The environment of handlers. */
// biome-ignore lint/suspicious/noExplicitAny: of any handlers
export type EnvOf<H> = H extends HandlerWorker<infer Env, any> ? Env : unknown;
