/** How far jobs are. */
import type { JobState } from '../job/states';
import type { AttemptName, Time } from './common';
import { get, JOB_REPORTS, post, put, WORK_REPORTS } from './route';

/** How far an attempt is. One of `progress` and `percentage` is required. */
export interface ProgressReport extends AttemptName {
  /** 0 … 1. */
  progress?: number;
  /** 0 … 100. */
  percentage?: number;
  message?: string;
  data?: Record<string, unknown>;
  /** The state of a checkpoint that is saved with it. */
  checkpoint?: unknown;
}

/** The progress of a job. */
export interface JobProgress {
  job_id: string;
  state: JobState;
  /** The job need not continue. */
  cancelled: boolean;
  /** 0 … 1; null: never reported. */
  progress: number | null;
  message: string | null;
  data: Record<string, unknown> | null;
  updated_at: Time | null;
  /** The checkpoint that the report has saved. */
  checkpoint?: { sequence: number; created_at: Time };
}

/** How far a job is: a message of its stream. */
export interface ProgressStep {
  job_id: string;
  /** 0 … 1. */
  progress: number;
  message: string | null;
  data: unknown;
  updated_at: Time;
}

/** The job has ended: the last message of its stream. */
export interface ProgressEnd {
  job_id: string;
  state: JobState;
  /** Of a job that had ended before it was followed. */
  progress?: number | null;
  updated_at?: Time;
}

export type ProgressMessage = ProgressStep | ProgressEnd;

/** Below `/ojs/v1`. */
export const progress = {
  /** Reports the progress of an attempt. */
  report: put<{ body: ProgressReport; 200: JobProgress; errors: 404 | 409 }>('/jobs/:id/progress', JOB_REPORTS),
  /** Reports the progress of an attempt, like PUT. */
  post: post<{ body: ProgressReport; 200: JobProgress; errors: 404 | 409 }>('/jobs/:id/progress', JOB_REPORTS),
  /** Reports the progress of the job in `job_id`. */
  ofWorker: post<{ body: ProgressReport; 200: JobProgress; errors: 404 | 409 }>('/workers/progress', WORK_REPORTS),
  /** Shows the progress of a job. */
  show: get<{ 200: JobProgress; errors: 404 }>('/jobs/:id/progress', { token: 'read', bound: 'job' }),
};
