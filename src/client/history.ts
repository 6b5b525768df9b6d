/** The history of a job, from its own record. */
import type { HistoryEventType, RetryPolicy } from '../job/wire';

/** One thing that happened. */
export interface JobHistoryEvent {
  id: string;
  job_id: string;
  event_type: HistoryEventType;
  timestamp: string;
  /** A worker that is known by name, or the queue itself. */
  actor: { type: 'worker' | 'system'; id: string };
  data: Record<string, unknown>;
}

/** An attempt that failed. */
export interface FailedAttempt {
  attempt: number;
  /** The state after the attempt: waiting for another one, or ended. */
  state: 'retryable' | 'discarded';
  error: string;
  /** Null: the queue does not know. */
  started_at: string | null;
  failed_at: string;
  next_retry_at: string | null;
}

/** The failed attempts of a job, oldest first, and the policy by which it is retried. */
export interface JobRetries {
  job_id: string;
  retries: FailedAttempt[];
  policy: RetryPolicy;
}
