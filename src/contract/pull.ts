/** What workers that pull send, and what they are answered: fetches, reports, heartbeats. */
import type { ChunkSettings } from '../job/chunk';
import type { ErrorCode } from '../job/errors';
import type { JobState } from '../job/states';
import type { Duration, FailureReport, JobEnvelope, JobLogLine, JobStep, RetryPolicy, RunRequest } from '../job/wire';
import type { CheckpointReport } from './checkpoints';
import type { AttemptName, Time } from './common';
import type { JobAnswer } from './jobs';
import type { ProgressReport } from './progress';
import { DATA, JOB_REPORTS, post, WORK_REPORTS } from './route';
import type { StepReport } from './steps';
import type { Directive } from './workers';

/** What the handler of a type, or of all others (`*`), says about retries; the job's own settings go before. */
export interface HandlerSettings {
  type: string;
  retry?: RetryPolicy | null;
  max_attempts?: number | null;
  /** It takes many jobs in one call. Jobs that are fetched for one have the same `chunk`, and count as one. */
  batch?: ChunkSettings | null;
}

/** Asks for jobs. */
export interface FetchRequest {
  /** Jobs are taken from these, the first ones first; `pool:` and a name names a pool. */
  queues?: string[];
  /** The pool to take jobs from, in the place of `queues`. */
  pool?: string;
  worker_id?: string;
  /** 1 … 100; the jobs of a chunk count as one. Default 1. */
  count?: number;
  /** Jobs of these queues at most, by their names. */
  counts?: Record<string, number>;
  /** How long to wait for work, in ms, up to 20000. Default: not at all. */
  wait_ms?: number;
  /** Length of the leases in ms, whatever the jobs say. */
  visibility_timeout_ms?: number;
  /** Length of the leases in ms, where neither the job nor its queue says anything. */
  default_visibility_timeout_ms?: number;
  /** Only jobs of these types, at most 1000. Default: of any. */
  types?: string[];
  /** What its handlers of these types say. Default: what was said before holds. */
  handlers?: HandlerSettings[];
  /** Reports that are taken first: such a fetch does not wait. */
  reports?: Report[];
  /** Refused: it is not supported. */
  runtime?: unknown;
}

/** Jobs, each leased to the worker. */
export interface Fetched {
  jobs: JobEnvelope[];
  /** What became of the reports, where there were some. */
  reports?: ReportOutcomes;
}

/** The attempt has succeeded. */
export interface Ack extends AttemptName {
  /** Up to 1 MiB. */
  result?: unknown;
  log?: (Partial<JobLogLine> | string)[];
}

/** The attempt has failed, or gives its job back. */
export interface Nack extends AttemptName {
  /** An object, or a message. */
  error?: FailureReport | string;
  /** The job goes back into its queue. */
  requeue?: boolean;
  /** With `requeue`: false if the attempt does not count. */
  attempt_used?: boolean;
  /** With `requeue` and without use of the attempt: when the job continues. */
  snooze?: {
    in?: Duration;
    until?: string | number;
    signal?: string;
    /** Jobs that it waits for: those of a name without a record are started. */
    runs?: RunRequest[];
    steps?: Record<string, JobStep>;
  };
  log?: (Partial<JobLogLine> | string)[];
}

/** A report among others. */
export type Report =
  | (Ack & { action: 'ack' })
  | (Nack & { action: 'nack' })
  | (ProgressReport & { action: 'progress' })
  | (CheckpointReport & { action: 'checkpoint' })
  | (StepReport & { action: 'step'; name: string });

/** Many reports, up to 1000. */
export interface ReportRequest {
  reports: Report[];
  /** Of reports that name none. */
  worker_id?: string;
}

/** Why a report was refused, with the status and the pause of an answer of its own. */
export interface ReportRefusal {
  status: number;
  code: ErrorCode;
  type: string;
  message: string;
  retryable: boolean;
  details?: Record<string, unknown>;
  retry_after_ms?: number;
}

/** A report that was taken, and where its job stands. */
export interface ReportTaken {
  /** Of the report in its request. */
  index: number;
  job_id?: string;
  status: 'done';
  state: JobState;
  attempt: number;
  /** 0 … 1, after a report of progress. */
  progress?: number;
  /** What was on record of a step already; that has won. */
  step?: JobStep;
  /** There was something on record, and no room for it in the answer. */
  step_omitted?: true;
  retry_delay_ms?: number;
  next_attempt_at?: Time;
  scheduled_at?: Time;
  completed_at?: Time;
  discarded_at?: Time;
}

/** A report that was refused. */
export interface ReportRefused {
  /** Of the report in its request. */
  index: number;
  job_id?: string;
  status: 'failed';
  error: ReportRefusal;
}

/** What each report came to, in order, and how many were taken. */
export interface ReportOutcomes {
  total: number;
  succeeded: number;
  failed: number;
  items: (ReportTaken | ReportRefused)[];
}

/** The job of an attempt that has succeeded. */
export interface Acked extends JobAnswer {
  acknowledged: true;
  job_id: string;
}

/** The job of an attempt that has failed. */
export interface Nacked extends JobAnswer {
  job_id: string;
}

/** A sign of life, which extends leases. */
export interface HeartbeatRequest {
  worker_id: string;
  /** The jobs that it holds, or their number. Default: all that it holds are extended. */
  active_jobs?: string[] | number;
  /** The jobs that it holds, ids alone. */
  active_job_ids?: string[];
  visibility_timeout_ms?: number;
  /** What it does: `running`, `quiet`, `draining`, `shutting_down`, `stopped` and other words for these. */
  state?: string;
  /** It ends once its jobs have. */
  shutdown?: boolean;
  /** The queues that it takes jobs from. */
  queues?: string[];
  /** Shown to operators, as the four below. */
  hostname?: string;
  pid?: number;
  concurrency?: number;
  version?: string;
  labels?: Record<string, unknown> | unknown[];
}

/** A heartbeat's answer. */
export interface HeartbeatAnswer {
  acknowledged: true;
  /** What the worker should do. */
  state: Directive;
  /** Jobs whose leases were extended. */
  jobs_extended: string[];
  /** Named jobs that were cancelled: the worker may stop them. */
  jobs_cancelled: string[];
  /** Named jobs that it no longer holds for another reason: their reports would be refused. */
  jobs_lost: string[];
  server_time: Time;
}

const FETCH = { ...DATA, toWorker: true, bound: 'work' } as const;

/** Below `/ojs/v1`. */
export const pull = {
  /** Leases jobs; waits for them if requested. */
  fetch: post<{ body: FetchRequest; 200: Fetched; errors: 404 }>('/workers/fetch', FETCH),
  /** Leases jobs, under another path. */
  fetchJobs: post<{ body: FetchRequest; 200: Fetched; errors: 404 }>('/jobs/fetch', FETCH),
  /** Accepts the heartbeat of a worker, and returns what it must do. */
  heartbeat: post<{ body: HeartbeatRequest; 200: HeartbeatAnswer }>('/workers/heartbeat', WORK_REPORTS),
  /** Accepts the heartbeat of a worker, under another path. */
  beat: post<{ body: HeartbeatRequest; 200: HeartbeatAnswer }>('/workers/beat', WORK_REPORTS),
  /** Reports that an attempt succeeded. */
  ack: post<{ body: Ack; 200: Acked; errors: 404 | 409 }>('/workers/ack', WORK_REPORTS),
  /** Reports that an attempt failed, or returns its job. */
  nack: post<{ body: Nack; 200: Nacked; errors: 404 | 409 }>('/workers/nack', WORK_REPORTS),
  /** Accepts many reports, each separately: 207 if some were rejected. */
  report: post<{ body: ReportRequest; 200: ReportOutcomes; 207: ReportOutcomes }>('/workers/report', WORK_REPORTS),
  /** Reports that an attempt of a job succeeded. */
  ackJob: post<{ body: Ack; 200: Acked; errors: 404 | 409 }>('/jobs/:id/ack', JOB_REPORTS),
  /** Reports that an attempt of a job failed, or returns the job. */
  nackJob: post<{ body: Nack; 200: Nacked; errors: 404 | 409 }>('/jobs/:id/nack', JOB_REPORTS),
};
