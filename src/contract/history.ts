/** What happened to a job, from its own record. */
import type { HistoryEventType, RetryPolicy } from '../job/wire';
import type { Also } from '../ojs/names';
import type { CursorQuery, Pagination, Time } from './common';
import { del, get, JOB_DATA } from './route';

interface HistoryMembers {
  id: string;
  job_id: string;
  event_type: HistoryEventType;
  /** The state of the job after it. */
  state: string;
  timestamp: Time;
  /** A worker that is known by name, or the queue itself. */
  actor: { type: 'worker' | 'system'; id: string };
  data: Record<string, unknown>;
}

/** One thing that happened. */
export interface JobHistoryEvent extends Also<'JobHistoryEvent', HistoryMembers> {}

/** The history of a job, oldest first. */
export interface JobHistory {
  events: JobHistoryEvent[];
  /** Events in all. */
  total: number;
  /** Names the next page; null: there is none. */
  next_cursor: string | null;
  pagination: Pagination;
}

/** An attempt that failed. */
export interface FailedAttempt {
  attempt: number;
  /** The state after the attempt: waiting for another one, or ended. */
  state: 'retryable' | 'discarded';
  error: string;
  /** Null: the queue does not know. */
  started_at: Time | null;
  failed_at: Time;
  next_retry_at: Time | null;
}

/** The failed attempts of a job, oldest first, and the policy by which it is retried. */
export interface JobRetries {
  job_id: string;
  retries: FailedAttempt[];
  policy: RetryPolicy;
}

/** Below `/ojs/v1`. */
export const history = {
  /** Lists the failed attempts of a job, and the time of the next one. */
  retries: get<{ 200: JobRetries; errors: 404 }>('/jobs/:id/retries', { bound: 'job' }),
  /** Lists the history of a job, oldest first. */
  show: get<{ query: CursorQuery; 200: JobHistory; errors: 404 }>('/jobs/:id/history', { bound: 'job' }),
  /** Rejected: the history of a job is deleted with the job. */
  forget: del<{ 204: null; errors: 404 | 422 }>('/jobs/:id/history', JOB_DATA),
  /** Lists the history of a job, oldest first. */
  showOfEvents: get<{ query: CursorQuery; 200: JobHistory; errors: 404 }>('/events/:id/history', { bound: 'job' }),
  /** Rejected: the history of a job is deleted with the job. */
  forgetOfEvents: del<{ 204: null; errors: 404 | 422 }>('/events/:id/history', JOB_DATA),
};
