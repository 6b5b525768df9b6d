/** What surrounds runs, and how long they may take. */
import type { Control } from './control';
import type { LogSink } from './log';
import type { HandlerDelivery } from './protocol';
import { MAX_TIMEOUT_MS, type Registration } from './registry';
import type { Deadlines } from './time-limit';
import type { ExecutionContextLike } from './types';
import type { Notes, Voice } from './voice';

/** The limits of a run, in ms. */
export interface TimeLimits {
  /** When neither job nor handler sets one. */
  default: number;
  longest: number;
}

export const PUSHED: TimeLimits = { default: 30_000, longest: MAX_TIMEOUT_MS };

/** What surrounds a run: the request that brought the delivery, or the worker that fetched the job. */
export interface Host {
  env: unknown;
  executionCtx: ExecutionContextLike | undefined;
  /** Aborts when the caller disconnects, or the worker gives the job up. */
  call: { readonly signal: AbortSignal } | undefined;
  /** Aborts when the worker that pulled the job ends. Default: never. */
  draining?: { readonly signal: AbortSignal } | undefined;
  /** Hears which jobs are cancelled, where the caller says so. */
  control?: Control | undefined;
  /** How a run speaks before its end. Default: with its answer. */
  voice?: ((delivery: HandlerDelivery, notes: Notes) => Voice) | undefined;
  sink: LogSink;
  /** The queue's time, epoch ms. Default: counted from the job's claim. */
  queueNow?: () => number;
  /** Default: those of a pushed job. */
  limits?: TimeLimits;
  deadlines?: Deadlines;
}

/** The job's limit, else the handler's, else the default; counted from the arrival of the delivery. */
export function timeoutOf({ job }: HandlerDelivery, registration: Registration, limits: TimeLimits): number {
  const own: unknown = job.timeoutMs;
  const limit = typeof own === 'number' && own > 0 ? own : (registration.timeoutMs ?? limits.default);
  return Math.min(limit, limits.longest);
}
