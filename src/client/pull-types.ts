/** What a worker that pulls says of itself and of its jobs, and what it is answered. */
import type { RetryPolicy } from '../producer/envelope';
import type { JobProgress } from './results';

/** How a worker describes itself. */
export interface WorkerOptions {
  /** Jobs are taken from these, the first ones first. */
  queues: readonly string[];
  /**
   * Length of its leases, in ms, whatever the jobs say. Default: that of the job, else of its queue, else 60000 for
   * jobs that `run` fetches, and 30 minutes for others.
   */
  visibilityTimeoutMs?: number;
  /** Shown to operators. */
  hostname?: string;
  pid?: number;
  concurrency?: number;
  version?: string;
  labels?: Record<string, unknown> | readonly unknown[];
}

/** How far a job is. */
export interface ProgressReport {
  /** 0 … 1. */
  progress: number;
  message?: string;
  data?: Record<string, unknown>;
  /** Saved together with the progress, both or neither. */
  checkpoint?: unknown;
}

/** The answer to a progress report. */
export type ProgressAnswer = JobProgress;

/** The answer to a step: what is on record of it, when that was there before. */
export interface RecordedStep {
  result?: unknown;
  signal?: { payload?: unknown; at: number };
  timedOut?: true;
  until?: number;
}

/** What the handler of a type, or of all others (`*`), says about retries; the job's own settings go before. */
export interface HandlerSettings {
  type: string;
  retry?: RetryPolicy | undefined;
  maxAttempts?: number | undefined;
}

/** Which jobs a worker takes. */
export interface Wanted {
  /** Only jobs of these types, at most 1000. Default: of any. */
  types?: readonly string[] | undefined;
  /** What its handlers of these types say. Default: what was said before holds. */
  handlers?: readonly HandlerSettings[] | undefined;
}
