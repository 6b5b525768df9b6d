/** A job as a producer writes it, and its JSON. */
import type { JobState } from '../job/record';
import type { Duration, RetryPolicy } from '../job/wire';
import { InvalidJobError } from './errors';

/** A moment: a Date, epoch milliseconds, or RFC 3339 with a zone. */
export type Moment = Date | number | string;

/** Avoids a second job that does the same. */
export interface UniqueOptions {
  /** What makes two jobs the same; `type` always does. Without `queue`, jobs of all queues count. Default `["type"]`. */
  keys?: ('type' | 'queue' | 'args' | 'meta')[];
  /** Your own key in place of arguments; 1 … 255 characters. */
  key?: string;
  /** Members of the objects in `args` that count; the others may differ. */
  args_keys?: string[];
  /** Members of `meta` that count. */
  meta_keys?: string[];
  /** For how long, from the existing job's creation. Default: as long as its state counts. */
  period?: Duration;
  /** States in which an existing job counts. Default: the non-terminal ones. */
  states?: JobState[];
  /** In place of `states`: not yet running; not yet ended; until it is removed. */
  unique_while?: 'queued' | 'active' | 'exists';
  /** Default `reject`: {@link DuplicateJobError}. With `ignore` the existing job is returned, `deduplicated`. */
  on_conflict?: 'reject' | 'ignore' | 'ignore_new' | 'replace' | 'cancel_existing' | 'replace_except_schedule';
}

/** What may be said about a job beside its type and arguments. All optional. */
export interface EnqueueOptions {
  /** Default `default`. */
  queue?: string;
  /** −100 … 100, higher first. Default 0. */
  priority?: number;
  /** Start not before so long from now, by the server's clock: ms, or `"10s"`, `"PT10S"`. */
  delay?: Duration;
  /** Start not before this moment. A moment in the past means now. */
  delayUntil?: Moment;
  /** Must not start at or after this moment. */
  expiresAt?: Moment;
  /** The job's own retry policy; fields left out come from its type, its queue, the deployment. */
  retry?: RetryPolicy;
  /** Runs in all. Not together with `retry.max_attempts`. */
  maxAttempts?: number;
  /** How long a run may take, in ms. */
  timeoutMs?: number;
  /** Length of a lease, in ms. */
  visibilityTimeoutMs?: number;
  tags?: string[];
  /** At most 64 KiB of JSON, handed to the handler and kept with the job. */
  meta?: Record<string, unknown>;
  /** Your own UUIDv7. The job is then enqueued at most once, and an enqueue without an answer is repeated. */
  id?: string;
  /** Wait in state `pending` until activated. */
  pending?: boolean;
  unique?: UniqueOptions;
  rateLimit?: Record<string, unknown>;
  schema?: string;
  version?: number | string;
}

/** A job for `enqueueMany`. */
export interface NewJob<Type extends string = string, Args extends readonly unknown[] = readonly unknown[]> {
  type: Type;
  args: Args;
  options?: EnqueueOptions;
}

/** A job ready to be sent. */
export interface PreparedJob {
  type: string;
  queue: string;
  /** Present when the client knows the id beforehand, so that sending it twice makes one job. */
  id: string | undefined;
  /** JSON text, taken when the job was handed over: later changes of its arguments do not matter. */
  json: string;
}

/** A job as the server reads it. @throws {InvalidJobError} when its options contradict each other */
export function wireJob(type: string, args: readonly unknown[], options: EnqueueOptions): Record<string, unknown> {
  const { meta, schema, version } = options;
  return { type, args, meta, schema, version, options: wireOptions(options) };
}

/** JSON text. @throws {InvalidJobError} when there is none, as of what holds itself */
export function jsonOf(wire: unknown, what = 'The job'): string {
  try {
    return JSON.stringify(wire);
  } catch (cause) {
    throw invalid(`${what} is not JSON: ${cause instanceof Error ? cause.message : String(cause)}`, 'args', cause);
  }
}

/**
 * Writes a job as the server reads it.
 * @param id an id chosen by the client, used when the options name none
 * @throws {InvalidJobError} when it cannot be JSON, or its options contradict each other
 */
export function prepare(type: string, args: readonly unknown[], options: EnqueueOptions, id?: string): PreparedJob {
  const chosenId = options.id ?? id;
  const json = jsonOf({ id: chosenId, ...wireJob(type, args, options) });
  return { type, queue: options.queue ?? 'default', id: chosenId, json };
}

function wireOptions(options: EnqueueOptions): Record<string, unknown> {
  if (options.delay !== undefined && options.delayUntil !== undefined) {
    throw invalid('Say delay or delayUntil, not both.', 'options.delay');
  }
  return {
    queue: options.queue,
    priority: options.priority,
    delay_until:
      options.delay === undefined ? momentText(options.delayUntil, 'delayUntil') : relativeText(options.delay),
    expires_at: momentText(options.expiresAt, 'expiresAt'),
    retry: options.retry,
    max_attempts: options.maxAttempts,
    timeout_ms: options.timeoutMs,
    visibility_timeout_ms: options.visibilityTimeoutMs,
    tags: options.tags,
    pending: options.pending,
    unique: options.unique,
    rate_limit: options.rateLimit,
  };
}

/** Strings go as they are: the server reads RFC 3339 and says what is wrong with anything else. */
export function momentText(value: Moment | undefined, name: string): string | undefined {
  if (value === undefined || typeof value === 'string') return value;
  const date = new Date(value);
  if (Number.isNaN(date.getTime())) throw invalid(`${name} is not a valid date.`, `options.${name}`);
  return date.toISOString();
}

/** A duration in a field that wants a time. A bare number there would be read as something else. */
export function relativeText(delay: Duration): string {
  const ms = typeof delay === 'string' && /^\d+$/.test(delay) ? Number(delay) : delay;
  if (typeof ms === 'string') return ms;
  if (!Number.isFinite(ms) || ms < 0) throw invalid('delay must not be negative.', 'options.delay');
  return `+PT${(Math.round(ms) / 1000).toFixed(3)}S`;
}

/** The error about something that was not sent at all. */
export function invalid(message: string, field: string, cause?: unknown): InvalidJobError {
  return new InvalidJobError(message, {
    status: 0,
    code: 'unserialisable',
    retryable: false,
    details: { field },
    cause,
  });
}
