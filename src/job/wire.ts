/**
 * A job and a retry policy as JSON on the wire. Types only: the handler and the client library share them, and nothing
 * here exists at run time.
 */
import type { JobState } from './states';
import type { Waiting } from './waiting';

/**
 * A length of time: an integer counts milliseconds, a string is `"500ms"`, `"12.5s"`, `"5m"`, `"1h"`, `"7d"`, `"2w"`
 * or ISO 8601 (`"PT1M30S"`). At most 36500 days. Any other text, such as `"10 seconds"`, does not compile.
 */
export type Duration = number | `${number}` | `${number}${'ms' | 's' | 'm' | 'h' | 'd' | 'w'}` | `P${string}`;

/** The length of a rate's window: a duration, or the word for one. */
export type Period = Duration | 'second' | 'minute' | 'hour' | 'day';

/** How long an ended job is kept. `0`: not at all. `forever`: until an operator removes it. */
export type Kept = Duration | 'forever';

/** How long a job is kept after each end; the queue decides about members left out. */
export interface RetentionOptions {
  completed?: Kept;
  discarded?: Kept;
  cancelled?: Kept;
  dead_letter?: Kept;
}

interface JitterBase {
  /** Derive the random number from job id and attempt, so that it is the same after a restart. */
  deterministic?: boolean;
}

/** Randomness added to a retry's delay; `true` multiplies it by 0.5 … 1.5. */
export type RetryJitter =
  | boolean
  | (JitterBase & { kind: 'multiply'; min?: number; max?: number })
  | (JitterBase & { kind: 'symmetric' | 'additive'; amount: Duration })
  | (JitterBase & { kind: 'per_attempt'; amount: Duration; step?: Duration })
  | (JitterBase & { kind: 'fraction'; of?: number });

/** When and how often a failed job runs again. Each field left out comes from the layer below (queue, deployment). */
export interface RetryPolicy {
  /** A whole policy to start from; fields beside it override it. */
  preset?: 'ojs' | 'zzz' | 'chasqui' | 'zizq' | 'sidekiq';
  /** Runs in all, the first included. Default 3. */
  max_attempts?: number;
  backoff_strategy?: 'exponential' | 'linear' | 'constant' | 'none' | 'fixed' | 'polynomial' | 'table' | 'custom';
  /** Default one second. */
  initial_interval?: Duration;
  /** Default 2. */
  backoff_coefficient?: number;
  /** Default five minutes; `null`: no cap. */
  max_interval?: Duration | null;
  /** Added before the cap. Default 0. */
  offset?: Duration;
  /** Where the counter of `linear` and `polynomial` starts. Default 1. */
  first_index?: 0 | 1;
  /** The delays of strategy `table`; the last one repeats. */
  table?: Duration[];
  jitter?: RetryJitter;
  /** Error types or codes that end the job at once; an entry may end in `.*`. */
  non_retryable_errors?: string[];
  /** What happens when no run is left. Default `discard`. */
  on_exhaustion?: 'discard' | 'dead_letter';
  /** What happens when the handler Worker dies without an answer. Default `retry`. */
  on_crash?: 'retry' | 'dead_letter';
}

/** One failed attempt, as an envelope shows it. */
export interface EnvelopeError {
  code: string;
  type: string;
  message: string;
  attempt: number;
  /** RFC 3339. */
  occurred_at: string;
  retryable?: boolean;
  details?: unknown;
  /** Where it was thrown, the first 4096 characters. */
  stack?: string;
  duration_ms?: number | null;
  backoff_ms?: number | null;
  reason?: string | null;
  /** Who ran the attempt: the worker that pulled it, or the target that it was pushed to. */
  worker_id?: string;
  target?: string;
}

/** How an attempt failed. */
export interface FailureReport {
  code?: string;
  /** Class of the error. */
  type?: string;
  message?: string;
  /** Names of its class and those above it. */
  classes?: string[];
  details?: unknown;
  stack?: string;
  retryable?: boolean;
  /** A dead letter at once. */
  kill?: boolean;
  /** When to run again, in place of the policy's own delay. One of the two at most. */
  retry_in?: Duration;
  retry_at?: string | number;
}

/** Why a job that has not ended does not run. Times are RFC 3339. */
export interface EnvelopeWaiting extends Waiting<string> {}

/** Jobs that a handler waits for under a name. A name with a record starts nothing: it only waits. */
export interface RunRequest {
  name: string;
  /** As {@link JobOptions} has them, without id, pending and unique. Needed unless they were started before. */
  jobs?: { type: string; args: unknown[]; options?: JobOptions }[];
  /** How long to wait. Default 7 days. */
  timeout_ms?: number;
  /** Up to 1,000 jobs, whose ends become one list. Without it there is one job. */
  all?: boolean;
  /** With `all`: the first job that fails cancels the others. */
  stop?: boolean;
  /** The jobs continue when their handler stops waiting for them. */
  detached?: boolean;
  /** The jobs are undone like a step if the one that waits for them ends otherwise than completed. */
  undo?: boolean;
}

/** The jobs that a record stands for. */
export interface StepRun {
  /** The job, once its queue has it. */
  id?: string;
  /** Queue and type of the first one. */
  queue: string;
  type: string;
  /** With `all`: the jobs in order, those that their queues have; and how many there are, have ended, have failed. */
  ids?: (string | null)[];
  jobs?: number;
  ended?: number;
  failed?: number;
  /** The queue of each, where they differ. */
  queues?: string[];
  /** While others run: those that have ended, by their places. */
  ends?: [place: number, end: RunEnd][];
  stop?: true;
  detached?: true;
  /** The claim of the handler that has started them. */
  claim?: number;
}

/** Why a job that a handler waited for has not completed. */
export interface RunError {
  code: string;
  type?: string;
  message: string;
  details?: unknown;
  /** How it ended: `discarded`, `cancelled`; absent: it was never started. */
  state?: 'discarded' | 'cancelled';
}

/** How a job of several has ended, in the list that is the result of all. */
export interface RunEnd {
  id?: string;
  result?: unknown;
  /** Bytes of a result that is too large for the list: read the job by its id. */
  omitted?: number;
  error?: RunError;
}

/**
 * The record of a step, a sleep, a signal or a run under its name: one of these members. Times in epoch ms. The runner
 * of the job finds them by name in the member `steps` of its envelope.
 */
export interface JobStep {
  /** The step is done. */
  result?: unknown;
  /** In the place of a large `result`: its bytes. `GET /jobs/:id/steps/:name` has the result. */
  result_bytes?: number;
  error?: unknown;
  /** It sleeps, or waits for a signal or for jobs, until then. With `tries` it is a step that is tried again then. */
  until?: number;
  /** How often the step was tried. */
  tries?: number;
  /** Why its last try failed. */
  failed?: unknown;
  signal?: { payload: unknown; at: number };
  /** The signal has not come in time, or the jobs have not ended. */
  timed_out?: true;
  /**
   * It waits for jobs, or has: beside `until` while they run; then beside `result`, beside an `error` of the form
   * {@link RunError}, or beside `timed_out`. Of several jobs the result is a list of {@link RunEnd}.
   */
  run?: StepRun;
  /** The step has begun and has no result yet: its effect may have come about. Recorded where it can be undone. */
  begun?: true;
  /** The step is undone if the job ends otherwise than completed. */
  undo?: true;
  /** Its place in the order in which the job's records began: 1, 2, …; absent in those of earlier versions. */
  seq?: number;
  /** When it was recorded, epoch ms. */
  at?: number;
}

/** A job that undoes the steps of another one. */
export interface JobUndo {
  job_id: string;
  /** Only where one job is read, and only as long as the undo job is kept. */
  state?: JobState;
}

/** One line that a handler has logged about a job. */
export interface JobLogLine {
  /** Epoch ms. */
  at: number;
  level: 'debug' | 'info' | 'warn' | 'error';
  message: string;
  fields?: Record<string, unknown>;
}

/** Enqueues that one job stands for: its own, and those that were merged into it or that it has replaced. */
export interface Coalesced {
  calls: number;
  /** When the first of them came, RFC 3339. */
  since: string;
}

/** The options that a job has and shows as they were given. */
export interface ShownOptions {
  /** Where the job is sent, whatever its type is mapped to. */
  target_url?: string;
  /** How long a run may take, in ms. */
  timeout_ms?: number;
  /** Length of a lease, in ms. */
  visibility_timeout_ms?: number;
  /** The job's own policy, as written. */
  retry?: RetryPolicy;
  tags?: string[];
  unique?: unknown;
  rate_limit?: unknown;
  /** Whose job it is: 1 to 255 characters. Without it, the `key` of `rate_limit` says so, if it names one. */
  group?: string;
  /** How long the job is kept after its end; its queue says the rest. */
  retention?: RetentionOptions;
  schema?: unknown;
  version?: number | string;
  /** Kept beside the envelope. */
  metadata?: Record<string, unknown>;
}

/** What a job may say beside its type and arguments. What becomes of each is in `options.ts`. */
export interface JobOptions extends ShownOptions {
  /** Default `default`. */
  queue?: string;
  /** −100 … 100, higher first. Default 0. */
  priority?: number;
  /** Wait in state `pending` until activated. */
  pending?: boolean;
  /** The job does not start before: RFC 3339 with a zone, or a duration from now such as `+PT10S`. */
  delay_until?: string;
  /** Another name of `delay_until`. */
  scheduled_at?: string;
  /** No attempt starts at or after this time, retries included. It must be later than `delay_until`. */
  expires_at?: string;
  /** Runs in all; in the place of the same member of `retry`. */
  max_attempts?: number;
  /** At most 64 KiB of JSON, handed to the handler and kept with the job. */
  meta?: Record<string, unknown>;
}

/** The chunk that a job was fetched in: its worker runs all of its jobs in one call. */
export interface JobChunk {
  id: string;
  /** How many jobs it has. */
  jobs: number;
}

/** A job as clients and handlers see it. Times are RFC 3339 in UTC; absent members do not apply. */
export interface JobEnvelope<Args extends readonly unknown[] = unknown[]> extends ShownOptions {
  specversion: string;
  /** UUIDv7; the same in every attempt, so it is the key for making effects idempotent. */
  id: string;
  type: string;
  queue: string;
  args: Args;
  meta: Record<string, unknown>;
  priority: number;
  state: JobState;
  /** Attempts begun: 1 in the first run. */
  attempt: number;
  max_attempts: number;
  /** The merged policy, durations in ISO 8601. */
  retry_effective?: RetryPolicy;
  scheduled_at?: string;
  expires_at?: string;
  /** Only in answers to an enqueue: the job existed already, and the unique policy kept it. */
  deduplicated?: boolean;
  /** Only in answers to an enqueue: it has become a part of this job, which has its arguments now. */
  accumulated?: boolean;
  /** The enqueues that it stands for, when a unique policy has made one job of several. */
  coalesced?: Coalesced;
  created_at: string;
  enqueued_at: string;
  /** When its last run began: a handler that sleeps begins a run each time it wakes. */
  started_at?: string;
  /** When its first run began, where that is known and is not the last one. */
  first_started_at?: string;
  completed_at?: string;
  cancelled_at?: string;
  discarded_at?: string;
  /** Why it was discarded. */
  discard_reason?: string;
  /** Is it kept for a human? */
  dead_letter?: boolean;
  /** The last one. */
  error?: EnvelopeError;
  errors?: EnvelopeError[];
  /** How often workers have given the job back without calling a handler. */
  unused_claims?: { count: number; last_at: string; worker_id?: string };
  result?: unknown;
  retry_delay_ms?: number;
  next_attempt_at?: string;
  worker_id?: string;
  /**
   * Only where one job is read, and while a worker has it that pulled it: when that worker last said that it works at
   * it.
   */
  last_heartbeat_at?: string;
  /** Only where `last_heartbeat_at` is: other workers may get the job then, unless a heartbeat comes before. */
  lease_expires_at?: string;
  /**
   * Only in the answer to a fetch: names this claim. A report that names it is about no other one of the same attempt.
   */
  delivery_id?: string;
  /** How long its lease is, where that is not what its worker asked for. */
  lease_ms?: number;
  /** Only in the answer to a fetch: it was fetched by the chunk, with the other jobs that have the same `id` here. */
  chunk?: JobChunk;
  progress?: number;
  progress_data?: unknown;
  checkpoint?: { state: unknown; sequence: number };
  /** What is on record, by the names that the handler gave. */
  steps?: Record<string, JobStep>;
  /** Only where one job is read, and only while it waits. */
  waiting_for?: EnvelopeWaiting;
  /** The job that undoes the steps of this one, which ended otherwise than completed. */
  undo?: JobUndo;
  workflow_id?: string;
  parent_results?: unknown[];
}

/** What happened to a job, as its history names it. */
export type HistoryEventType =
  | 'job.created'
  | 'job.state_changed'
  | 'job.attempt_started'
  | 'job.attempt_completed'
  | 'job.attempt_failed'
  | 'job.snoozed'
  | 'job.cancelled'
  | 'job.discarded';
