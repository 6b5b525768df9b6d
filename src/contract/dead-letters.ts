/** Discarded jobs that wait for a human. */
import type { JobEnvelope, RetryPolicy } from '../job/wire';
import type { Operation, WaitQuery } from './bulk';
import type { Continued, CursorQuery, Extent, IsoDuration, OperationPreview, Pagination, Time } from './common';
import type { JobAnswer, JobList, RetriedJobAnswer } from './jobs';
import { del, get, onJob, onMany, post, removesMany } from './route';

/** Which dead letters: all conditions must hold. Times are those of the discard, inclusive. */
export interface DeadLetterQuery {
  queue?: string;
  type?: string;
  /** Type of the last error. */
  error_type?: string;
  /** The job's group, exactly. */
  group?: string;
  /** A time, or a duration before now. */
  since?: string;
  until?: string;
}

/** A page of dead letters, the one discarded last first. */
export interface DeadLetterList extends JobList {}

/** A page of dead letters, for operators. */
export interface DeadLetterItems extends Extent {
  items: JobEnvelope[];
  total: number;
  pagination: Pagination;
}

/** How long dead letters are kept, and how many; null: there is no bound. */
export interface DeadLettersKept {
  max_age: IsoDuration | 'forever';
  max_count: number | null;
}

/** How long dead letters are kept, with the queues that differ. */
export interface DeadLettersKeptByQueue extends DeadLettersKept {
  by_queue: Record<string, DeadLettersKept>;
}

/** How many dead letters there are, and of what kind. */
export interface DeadLetterStats {
  total: number;
  by_queue: Record<string, number>;
  by_type: Record<string, number>;
  by_error_type: Record<string, number>;
  /** Present where the numbers are lower bounds. */
  counts_are_exact?: false;
  /** Times of the discard; null: there is none. */
  oldest_at: Time | null;
  newest_at: Time | null;
  /** The defaults, and what single queues say. */
  retention: DeadLettersKeptByQueue;
}

/** What is changed about a job before it runs again. */
export interface RetryOverride {
  /** Moves it to this queue. */
  queue?: string;
  /** Members to add or replace. */
  meta?: Record<string, unknown>;
  /** Members replace those of the job's own policy. */
  retry?: RetryPolicy;
}

/** Which dead letters to act on; without a filter all. */
export interface DeadLetterOperation {
  filter?: Record<string, unknown>;
  confirm?: true;
  /** Refused: what is changed about a job is changed about one at a time. */
  override?: unknown;
  /** Only says what it would act on. */
  dry_run?: boolean;
  idempotency_key?: string;
}

/** What a purge has removed. */
export interface DeadLettersPurged extends Continued {
  deleted: number;
}

type Acting = {
  query: WaitQuery;
  body: DeadLetterOperation;
  200: Operation | OperationPreview;
  202: Operation;
  errors: 409;
};

const shared = {
  /** Counts the dead letters by queue, type and error. */
  stats: get<{ 200: DeadLetterStats }>('/dead-letter/stats', { bound: 'queues' }),
  /** Retries many dead letters. */
  retryMany: post<Acting>('/dead-letter/retry', onMany('dead_letters.retry')),
  /** Removes many dead letters. */
  deleteMany: del<Acting>('/dead-letter', removesMany('dead_letters.delete')),
  /** Retries a dead letter, in its queue or another one. */
  retry: post<{ body: { override?: RetryOverride }; 200: RetriedJobAnswer; errors: 404 | 409 | 422 }>(
    '/dead-letter/:id/retry',
    onJob('dead_letter.retry'),
  ),
};

const DELETE = { ...onJob('dead_letter.delete'), scope: 'admin:purge' } as const;

/** Below `/ojs/v1`. */
export const deadLetters = {
  /** Lists dead letters. */
  list: get<{ query: CursorQuery & DeadLetterQuery; 200: DeadLetterList }>('/dead-letter', { bound: 'list' }),
  ...shared,
  /** Shows a dead letter. */
  show: get<{ 200: JobAnswer; errors: 404 }>('/dead-letter/:id', { bound: 'job' }),
  /** Deletes the dead letters above an age. */
  purge: post<{
    query: WaitQuery & { queue?: string; older_than?: string };
    body: { older_than?: string; idempotency_key?: string };
    200: DeadLettersPurged;
    202: DeadLettersPurged;
    207: DeadLettersPurged;
    errors: 409;
  }>('/dead-letter/purge', removesMany('dead_letters.purge')),
  /** Removes a dead letter. */
  delete: del<{ 200: { deleted: true; job_id: string }; errors: 404 | 409 }>('/dead-letter/:id', DELETE),
};

/** Below `/ojs/v1/admin`. */
export const adminDeadLetters = {
  /** Lists dead letters. */
  list: get<{ query: CursorQuery & DeadLetterQuery; 200: DeadLetterItems }>('/dead-letter', { bound: 'list' }),
  ...shared,
  /** Removes a dead letter. */
  delete: del<{ 204: null; errors: 404 | 409 }>('/dead-letter/:id', DELETE),
};
