/** A job as data that crosses RPC: its producer's part ({@link JobBody}), the stored columns, its history. Epoch ms. */

import type { ChunkSettings } from './chunk';
import type { LimitPolicy } from './limits/policy';
import type { LogLine } from './log';
import type { OptionsThat } from './options';
import type { JobState } from './states';
import type { StepPart } from './steps';
import type { WaitingFor } from './waiting';
import type { EnvelopeError, FailureReport, JobEnvelope, JobOptions } from './wire';

/** Where a job does not match the schema of its type. */
export interface Misfit {
  /** As a client writes it: `args[0].customer.name`. */
  path: string;
  message: string;
}

/** `<line>.<number>`: the number rises with each change; a deployment that was emptied begins another line. */
export type SchemaStamp = `${number}.${number}`;

/** A retry policy as a user wrote it; its fields are those of the reference (`docs/guides/retries.md`). */
export type RetryInput = Record<string, unknown>;

/** What the server has decided, or read, of a job that it accepts. */
export type Receipt = Pick<
  JobEnvelope,
  OptionsThat<'receipt'> | 'id' | 'state' | 'max_attempts' | 'created_at' | 'coalesced'
>;

type KeptOptions = Omit<Pick<JobOptions, OptionsThat<'stored'>>, OptionsThat<'moment'> | 'retry'>;

/** The part of a job that its producer wrote. Stored once, as JSON. */
export interface JobBody extends KeptOptions {
  type: string;
  args: unknown[];
  meta: Record<string, unknown>;
  /** The job layer of the retry policy, as written. */
  retry?: RetryInput;
  /** Epoch ms, when the job was delayed. */
  scheduled_at?: number;
  /** Epoch ms; the job must not start at or after it. */
  expires_at?: number;
  /** `expires_at` as written, if it is a UTC time in another precision. */
  expires_at_written?: string;
  /** Fingerprint of the unique policy; kept with the job, never shown. */
  fingerprint?: string;
  /** The enqueues that it stands for, when a unique policy has made one of several. Never written by producers. */
  coalesced?: Coalesced;
  /** The workflow that this job belongs to, and its node there. */
  workflow?: { id: string; step: number };
  /** Results of the jobs before it, when it belongs to a workflow and there are any. */
  parent_results?: unknown[];
  /** The handler that waits for it. Never written by producers. */
  awaited?: Awaited;
  /** Unknown top-level members (`x_*`, `ext_*`, …), echoed in every envelope. */
  extra?: Record<string, unknown>;
}

/** Whose handler waits for a job: the job, its queue, its claim, and the name (of several jobs: the place). */
export interface Awaited {
  by: string;
  queue: string;
  name: string;
  claim: number;
  index?: number;
  /** How many jobs above it wait for one another. */
  depth: number;
  /** Groups of queues of strict order that these hold: no job of them could start. */
  holds?: [queue: string, group: string][];
}

/** Enqueues that a job stands for: its own, and those that were merged into it or that it has replaced. */
export interface Coalesced {
  /** When the first of them came, epoch ms. */
  since: number;
  calls: number;
}

/** What makes a job unique, as a queue object applies it. Read by `job/unique`. */
export interface UniquePolicy {
  /** 64 hexadecimal digits. Jobs with the same one are the same job. */
  fingerprint: string;
  /** `queue`: the fingerprint names its queue, which decides alone. `global`: jobs in all queues count. */
  scope: 'queue' | 'global';
  /** States in which an existing job stands in the way. */
  states: JobState[];
  /** Only within this time after the existing job's creation, ms. */
  period_ms?: number;
  on_conflict: 'reject' | 'ignore' | 'replace' | 'replace_except_schedule' | 'accumulate';
  /** Newcomers put the start off no longer than this after the first of them, ms. */
  max_wait_ms?: number;
  /** Enqueues that accumulate in one job, at most. */
  max_count?: number;
  /** A newcomer that finds no other starts when this time is over, ms. */
  window_ms?: number;
}

/** A validated job on its way into a queue object. */
export interface NewJob {
  /** Client-chosen id (UUIDv7), if any. */
  id?: string;
  type: string;
  /** −100 … 100; higher first. */
  priority: number;
  /** Epoch ms; absent or not in the future: at once. */
  scheduledAt?: number;
  /** Epoch ms. */
  expiresAt?: number;
  /** Start in `pending` and wait for `activate`. */
  pending?: boolean;
  /** The job layer of the retry policy including `max_attempts`, to be checked over the queue's own layers. */
  retry?: RetryInput;
  unique?: UniquePolicy;
  limit?: LimitPolicy;
  group?: string;
  /** What its body says of it. */
  coalesced?: Coalesced;
  /** A handler waits for it, as its body says: no queue is too full for it. */
  awaited?: true;
  /** Cancelled at once, because a later entry of its batch, in another queue, replaces it. */
  superseded?: boolean;
  /** JSON text of the steps that it begins with: those of the job that it was forked from. */
  steps?: string;
  /** Their large results. */
  parts?: StepPart[];
  /** What it was validated by: the stamp of the schemas, and what does not fit them. Absent: by none. */
  validated?: { stamp: SchemaStamp; misfits?: Misfit[] };
  /** JSON of a {@link JobBody}. */
  body: string;
}

/** A failure as a handler or worker reports it (`error` of nack, or of a push answer). */
export interface ReportedError extends Omit<FailureReport, 'retry_in' | 'retry_at'> {
  /** A duration, see `job/duration`. */
  retry_in?: unknown;
  /** RFC 3339 or epoch ms. */
  retry_at?: unknown;
}

/** One failed attempt in a job's history, as an envelope shows it but for its time. */
export interface JobErrorEntry extends Omit<EnvelopeError, 'occurred_at'> {
  /** Epoch ms. */
  occurred_at: number;
  /** How long the attempt ran, when known. */
  duration_ms: number | null;
  /** Delay chosen before the next run; null when there is none. */
  backoff_ms: number | null;
  /** Why the job ended with this failure; null while runs remain. */
  reason: string | null;
}

/** The history of a job so far. Absent members did not happen. Times in epoch ms. */
export interface JobHistory {
  /** The last failure, until a success. */
  error?: JobErrorEntry;
  /** All failures, oldest first, the newest 1000. */
  errors?: JobErrorEntry[];
  started_at?: number;
  /** When the first of its runs began, once it has been put to sleep. Read by `firstStart`. */
  first_started_at?: number;
  completed_at?: number;
  cancelled_at?: number;
  discarded_at?: number;
  retry_delay_ms?: number;
  reason?: string;
  /** Until then (epoch ms) a nack without an attempt repeats the report of the pushed attempt that failed last. */
  told_until?: number;
  /** The queue itself recorded the last failure of a pulled attempt: a late report of it is refused. */
  unreported?: true;
  /** True when a human should look: the job is in the dead letter list. */
  dead_letter?: boolean;
  /** Its handler continues later. Shown while the job waits for that. */
  snoozed?: Snoozed;
  /** The attempt that has begun and continues in the next claim: limits have counted its start. Shown nowhere. */
  begun?: number;
  /** What its attempts have logged, the newest lines. Read by `GET /jobs/:id/log` and shown nowhere else. */
  log?: LogLine[];
  /** Workers took the job and gave it back without calling a handler, between the same two attempts. */
  unused?: UnusedClaims;
  /** The id of the job that undoes its steps. */
  undo_job?: string;
  /** It undoes an earlier life of its job, and must not run again. Shown nowhere. */
  outlived?: true;
}

export interface Snooze {
  /** After this many ms, at most 36500 days… */
  in?: number;
  /** …or at this moment, epoch ms. Neither: at the signal only. */
  until?: number;
  /** Before that, when this signal comes. */
  signal?: string;
}

/** An attempt that ended so that the job continues later. Times in epoch ms. */
export interface Snoozed {
  since: number;
  until: number;
  /** The job continues before that when this signal comes. */
  signal?: string;
  /** …or when these runs have ended, or the first of them has failed. */
  runs?: string[];
  /** The claim that ended so. */
  claim: number;
}

/** Claims that used up no attempt. */
export interface UnusedClaims {
  /** The attempts used up before. */
  attempt: number;
  /** The last such claim, and how many there were. */
  claim: number;
  count: number;
  /** When the last one was given back, epoch ms. */
  at: number;
  worker_id?: string;
}

type InEnvelope = 'id' | 'queue' | 'type' | 'state' | 'priority' | 'attempt' | 'delivery_id' | 'lease_ms';

export interface JobRecord
  extends Pick<JobEnvelope, InEnvelope | 'chunk' | 'progress' | 'progress_data' | 'checkpoint' | 'undo'> {
  created_at: number;
  enqueued_at: number;
  /** Epoch ms of the next run, in `retryable` and `scheduled`. */
  due_at?: number;
  /** JSON of a {@link JobBody}. */
  body: string;
  history: JobHistory;
  /** The worker with the lease, while active; of a completed job, the one that completed it. */
  worker_id?: string;
  /** As `worker_id`, of a pushed job: the target. */
  target?: string;
  /** JSON text of the result, when completed with one. */
  result?: string;
  /** Why it does not run; only where one job is read. */
  waiting_for?: WaitingFor;
  /** What its worker holds it by; only where one job is read that was pulled and runs. Epoch ms. */
  lease?: { renewed_at: number; expires_at: number };
  /** JSON text of its recorded steps, for its runner. */
  steps?: string;
}

/** The retry layers between a job and the deployment variables. Absent layers are empty. */
export interface LowerLayers {
  job_type?: RetryInput;
  queue?: RetryInput;
}

export interface JobView {
  record: JobRecord;
  layers: LowerLayers;
  /** It was redriven, and its steps were undone: none is on record any more. */
  starts_over?: true;
}

/** {@link JobView} for the runner of the job, with its body parsed. */
export interface RunnerView extends JobView {
  body: JobBody;
}

export interface AnnouncedType {
  type: string;
  retry?: RetryInput;
  timeout_ms?: number;
  max_attempts?: number;
  concurrency?: number;
  batch?: ChunkSettings;
}
