/** The history of a job, from its own record. */
import type { HistoryEventType, RetryPolicy } from '../producer/envelope';

/** One thing that happened. */
export interface JobHistoryEvent {
  id: string;
  jobId: string;
  eventType: HistoryEventType;
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
  startedAt: string | null;
  failedAt: string;
  nextRetryAt: string | null;
}

/** The failed attempts of a job, oldest first, and the policy by which it is retried. */
export interface JobRetries {
  jobId: string;
  retries: FailedAttempt[];
  policy: RetryPolicy;
}
