/** Operations on many jobs. */
import type { JobEnvelope } from '../job/wire';
import type { BulkAction, Continued, CursorQuery, Extent, OperationPreview, Pagination, Time, Warned } from './common';
import type { ErrorAnswer, ErrorBody } from './errors';
import type { JobReceipt, NewJob } from './jobs';
import { del, ENQUEUE, get, onMany, post, removesMany } from './route';

/** The outcome for one job. */
export interface OperationItem {
  /** Its place in the request, or among those that matched. */
  index: number;
  job_id: string;
  status: 'cancelled' | 'retried' | 'deleted' | 'skipped' | 'failed';
  /** Why it was skipped or failed. */
  reason?: string;
}

/** How far an operation is. */
export interface OperationCounts {
  action: BulkAction;
  /** Jobs that were looked at because they match. */
  matched: number;
  /** Jobs that were changed. */
  succeeded: number;
  /** Jobs that were in the wanted state, or in one that the operation leaves as it is. */
  skipped: number;
  failed: number;
  /** The first that failed. */
  errors: { job_id: string; error?: string }[];
}

/** An operation. */
export interface Operation extends OperationCounts, Continued {}

/** An operation, with what became of the first jobs where that was asked for. */
export interface OperationProgress extends Operation {
  items?: OperationItem[];
}

/** All or none: what would have been done where it was none, and why. */
export interface AllOrNone extends OperationCounts {
  completed: true;
  error?: ErrorBody;
}

/** What became of jobs that were named, or of the first of those that matched. */
export interface OperationAnswer extends Partial<Continued> {
  total_matched: number;
  cancelled?: number;
  retried?: number;
  deleted?: number;
  skipped: number;
  failed: number;
  items: OperationItem[];
  /** Why nothing was done, where all were to be changed or none. */
  error?: ErrorBody;
}

export interface OperationList extends Extent {
  items: (Operation & { started_at: Time })[];
  total: number;
  pagination: Pagination;
}

/** Which jobs to act on: by ids, or by a filter. */
export interface OperationRequest {
  /** At most 1000. */
  job_ids?: string[];
  /** Conditions that must all hold. */
  filter?: Record<string, unknown>;
  /** All or none; by a filter at most 1000 may match. Default `partial`. */
  atomicity?: 'atomic' | 'partial';
  /** Only says what it would act on. */
  dry_run?: boolean;
  /** Names the operation, so that it is begun once. */
  idempotency_key?: string;
  /** Operators confirm what cannot be undone. */
  confirm?: true;
}

/** What operators send: it must be confirmed. */
export interface ConfirmedOperation extends Omit<OperationRequest, 'job_ids'> {}

export interface WaitQuery {
  /** How long the answer waits for the end of the operation, in seconds: 0 … 20. Default 20. */
  wait?: number;
}

/** Jobs to enqueue, each on its own or all or none. */
export interface BulkEnqueue {
  /** At most 1000. */
  jobs: NewJob[];
  /** Default `partial`. */
  atomicity?: 'atomic' | 'partial';
  idempotency_key?: string;
}

/** What became of one entry. */
export interface BulkEntry {
  index: number;
  status: string;
  job?: JobEnvelope | JobReceipt;
  error?: { code: string; message: string; [member: string]: unknown };
}

export interface BulkEnqueued extends Warned {
  total: number;
  succeeded: number;
  failed: number;
  items: BulkEntry[];
  /** Why none was enqueued. */
  error?: ErrorBody;
}

type Acting = {
  query: WaitQuery;
  body: OperationRequest;
  200: OperationAnswer | OperationPreview;
  202: OperationAnswer;
  207: OperationAnswer;
  422: OperationAnswer | ErrorAnswer;
  errors: 409;
};

type ActingByFilter = {
  query: WaitQuery;
  body: ConfirmedOperation;
  200: Operation | AllOrNone | OperationPreview;
  202: Operation;
  422: AllOrNone | ErrorAnswer;
  errors: 409;
};

/** Below `/ojs/v1`. */
export const bulk = {
  /** Enqueues jobs and returns the outcome of each; or all or none. */
  enqueue: post<{
    body: BulkEnqueue;
    201: BulkEnqueued;
    207: BulkEnqueued;
    422: BulkEnqueued | ErrorAnswer;
    errors: 409;
  }>('/jobs/bulk', ENQUEUE),
  /** Cancels many jobs. */
  cancel: post<Acting>('/jobs/bulk/cancel', onMany('jobs.cancel')),
  /** Retries many jobs. */
  retry: post<Acting>('/jobs/bulk/retry', onMany('jobs.retry')),
  /** Removes many jobs that have ended. */
  delete: post<Acting>('/jobs/bulk/delete', removesMany('jobs.delete')),
  /** Shows the progress of an operation. */
  progress: get<{ query: WaitQuery; 200: OperationProgress; errors: 404 }>('/jobs/bulk/:id'),
  /** Stops an operation; finished changes are kept. */
  abort: del<{ 200: OperationProgress; errors: 404 }>('/jobs/bulk/:id', { audit: 'operation.abort' }),
};

/** Below `/ojs/v1/admin`. */
export const operations = {
  /** Lists running operations, and those that ended within a day. */
  list: get<{ query: CursorQuery & { queue?: string }; 200: OperationList }>('/operations'),
  /** Shows the progress of an operation. */
  progress: get<{ query: WaitQuery; 200: OperationProgress; errors: 404 }>('/operations/:id'),
  /** Stops an operation; finished changes are kept. */
  abort: post<{ 200: OperationProgress; errors: 404 }>('/operations/:id/abort', { audit: 'operation.abort' }),
  /** Shows the progress of an operation. */
  progressOfBulk: get<{ query: WaitQuery; 200: OperationProgress; errors: 404 }>('/jobs/bulk/:id'),
  /** Stops an operation; finished changes are kept. */
  abortOfBulk: del<{ 200: OperationProgress; errors: 404 }>('/jobs/bulk/:id', { audit: 'operation.abort' }),
};

/** Below `/ojs/v1/admin`, by filter alone. */
export const operateByFilter = {
  /** Retries many jobs. */
  retry: post<ActingByFilter>('/jobs/bulk/retry', onMany('jobs.retry')),
  /** Cancels many jobs. */
  cancel: post<ActingByFilter>('/jobs/bulk/cancel', onMany('jobs.cancel')),
  /** Removes many jobs that have ended. */
  delete: post<ActingByFilter>('/jobs/bulk/delete', removesMany('jobs.delete')),
};
