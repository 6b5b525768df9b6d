/**
 * The part of a queue object's RPC interface that operators use: changing jobs that wait, operations on many jobs, the
 * life of the queue itself, and answers that are remembered. Times in epoch ms.
 */

import type { ErrorData, Outcome } from '../job/errors';
import type { JobFilter } from '../job/filter';
import type { SentJobs } from '../job/message';
import type { OptionsThat } from '../job/options';
import type { JobBody, JobView, RetryInput } from '../job/record';
import type { RetentionChange } from '../job/retention';
import { type JobState, MOVES } from '../job/states';
import type { EnqueueReceipt, IdempotencyKey, QueueStatus, SentEachReceipt } from './receipts';

/** How many jobs match. `next`: an intermediate count; the next call continues below this position. */
export interface CountResult {
  count: number;
  next?: number;
}

/** The options in the body that a change replaces, or merges with what is written. */
type Changed = Pick<JobBody, Extract<OptionsThat<'patch'>, keyof JobBody>>;

/** What to change about a job that waits. Absent members stay; null goes back to the default. Times in epoch ms. */
export type PatchRequest = { [Name in Exclude<keyof Changed, 'retention'>]?: Changed[Name] | null } & {
  id: string;
  /** −100 … 100. */
  priority?: number | null;
  /** Members replace those of the job's own retention; null goes back to the queue's. */
  retention?: RetentionChange | null;
  /** False: 403 when the job would be kept for less time than now. */
  mayPurge?: boolean;
};

/** What to do with each job. `purge` deletes waiting jobs too. */
export type BulkAction = 'cancel' | 'retry' | 'delete' | 'purge';

/** States of the jobs that an operation by filter may act on. Jobs that run are never among them. */
export const ACTS_ON: Record<BulkAction, readonly JobState[]> = {
  cancel: MOVES.patch.from,
  retry: MOVES.redrive.from,
  delete: MOVES.remove.from,
  purge: [...MOVES.patch.from, ...MOVES.remove.from],
};

/** What became of one job. */
export interface BulkItem {
  job_id: string;
  status: 'done' | 'skipped' | 'failed';
  /** Why not: `not_found`, the state it is in, or an error code. */
  reason?: string;
}

/** What lists can be sorted by. */
export const SORT_KEYS = ['created_at', 'scheduled_at', 'priority'] as const;
export type SortKey = (typeof SORT_KEYS)[number];

/** Asks for the first ones of the jobs that match. */
export interface SortedRequest {
  filter: JobFilter;
  sort: SortKey;
  descending: boolean;
  /** How many to give of those that this call looks at. */
  limit: number;
  /** Where the call before ended. */
  before?: number;
}

export interface SortedEntry {
  id: string;
  /** What it is sorted by; null for a job that has none. */
  value: number | null;
  /** Epoch ms. */
  created_at: number;
  /** Its place among the jobs of its queue, in the order of their making. */
  position: number;
}

/** What one step of sorting has found. */
export interface SortedPart {
  /** In order. */
  entries: SortedEntry[];
  /** How many of the jobs that were looked at match. */
  matched: number;
  looked: number;
  /** Where the next call continues; absent when all were looked at. */
  next?: number;
}

/** An operation on jobs named by their ids, each once. */
export interface BulkRequest {
  action: BulkAction;
  ids: string[];
  /** When one job cannot be acted on, none is. */
  atomic: boolean;
  /** Done once under this key; later the same answer is given. */
  once?: IdempotencyKey;
  /** Jobs created after this time (epoch ms) do not count: the operation began before. */
  createdUntil?: number;
}

/** What to do with which jobs. */
export type BulkCheck = Pick<BulkRequest, 'action' | 'ids'>;

/** What became of the jobs. Not applied: nothing was changed, and the items say what would have been. */
export interface BulkAnswer {
  items: BulkItem[];
  applied: boolean;
}

/** An operation on all jobs of a queue that match a filter. */
export interface OperationRequest {
  /** Chosen by the caller; one that is known already is not begun again. */
  id: string;
  action: BulkAction;
  filter: JobFilter;
  /** Jobs created after this time (epoch ms) are skipped: the operation began elsewhere before. */
  createdUntil?: number;
  /** Note what became of each job, of the first {@link MAX_ITEMS} and of some failures after these. */
  items?: boolean;
}

/** Items in the answer about an operation by filter, and how many failures beyond these. */
export const MAX_ITEMS = 1000;
export const MAX_ERRORS = 100;

/** All jobs of a queue that match a filter, to be acted on all or none. */
export type MatchingRequest = Pick<OperationRequest, 'action' | 'filter'> & Pick<BulkRequest, 'once'>;

/** How far an operation is. */
export interface OperationView {
  id: string;
  action: BulkAction;
  done: boolean;
  matched: number;
  succeeded: number;
  skipped: number;
  failed: number;
  /** The first ones. */
  errors: { job_id: string; error: string }[];
  /** In the order in which the jobs were handled; only where they were noted, and are asked for. */
  items?: BulkItem[];
  started_at: number;
  /** It was stopped before its end; what was done stays done. */
  aborted?: true;
}

/** What happens to jobs that have not ended when their queue is deleted. */
export type RemovalStrategy = 'reject' | 'discard' | 'move';

export interface RemovalRequest {
  strategy: RemovalStrategy;
  /** Where `move` moves jobs to. */
  target_queue?: string;
}

export interface RemovalView {
  strategy: RemovalStrategy;
  jobs_affected: number;
  state: 'deleting' | 'deleted';
}

/** A job on its way from a queue that is being deleted. */
export interface MovedJob {
  id: string;
  pending: boolean;
  type: string;
  priority: number;
  due_at: number;
  attempt: number;
  claims: number;
  created_at: number;
  enqueued_at: number;
  expires_at: number | null;
  body: string;
  history: string | null;
  /** In a strict order: it has begun, and all others of its group wait for its end. */
  holds?: true;
  checkpoint?: { sequence: number; created_at: number; content: string };
}

/** What is to change about a job that lives again. */
export interface Override {
  /** Merged into its own, member by member. */
  meta?: Record<string, unknown>;
  /** Laid over its own policy. */
  retry?: RetryInput;
}

/** Where a dead letter is to go, and what is to change about it. */
export interface MoveRequest {
  target: string;
  override: Override;
}

/** What a queue answered to a dead letter that is to live again there: why not, or the job as it is there now. */
export type Adoption = { refused: ErrorData } | { job: JobView | null };

export interface OperationsApi {
  /** @returns 404; 409 for a job that runs or has ended; 422 for a retry policy that is none */
  patch(request: PatchRequest): Promise<Outcome<JobView>>;
  count(request: Pick<SortedRequest, 'filter' | 'before'>): Promise<Outcome<CountResult>>;
  /** The first jobs in another order than that of their making, a step of them. */
  sorted(request: SortedRequest): Promise<Outcome<SortedPart>>;
  /** One transaction for at most 1000 ids. */
  bulk(request: BulkRequest): Promise<Outcome<BulkAnswer>>;
  /** What {@link bulk} would do to each of these jobs. */
  checkBulk(request: BulkCheck): Promise<Outcome<BulkItem[]>>;
  /**
   * What {@link bulkMatching} would do to each of the jobs that match, in order.
   * @returns 422 when there are more than {@link MAX_ITEMS}, or too many to look through
   */
  checkMatching(request: MatchingRequest): Promise<Outcome<BulkItem[]>>;
  /** Acts on all jobs that match, or on none: one transaction. 422 as {@link checkMatching}; 503 when one is locked. */
  bulkMatching(request: MatchingRequest): Promise<Outcome<BulkAnswer>>;
  /** Locks this queue's share of an operation over several queues; decided, committed and aborted as a batch is. */
  prepareBulk(batch: string, coordinator: string, request: BulkCheck): Promise<Outcome<BulkAnswer>>;
  /** Begins an operation, which then continues by itself, whatever fails; waits up to `waitMs` for its end. */
  operate(request: OperationRequest, waitMs: number): Promise<Outcome<OperationView>>;
  /** An operation that runs, or ended within the last day; null when there is none. @param items tell the items too */
  operation(id: string, waitMs: number, items?: boolean): Promise<OperationView | null>;
  /**
   * Stops an operation before its next step; one that this queue has not begun yet will not begin here.
   * @returns how far it came; null when the queue does not exist
   */
  abortOperation(id: string, action: BulkAction): Promise<Outcome<OperationView | null>>;
  /** The operations that run, and the last ones that ended within a day. */
  operations(): Promise<OperationView[]>;
  /** Takes no more jobs, and gives out those it has, until `resume`. */
  drain(): Promise<Outcome<QueueStatus>>;
  /** Begins to delete the queue; waits a moment for the end. 404 when it does not exist, 409 while jobs prevent it. */
  remove(request: RemovalRequest, waitMs: number): Promise<Outcome<RemovalView>>;
  /**
   * Takes jobs over from a queue that is being deleted, once for each `move`.
   * @param ticket as in `enqueue`
   */
  adopt(move: string, jobs: MovedJob[], ticket?: string): Promise<Outcome<void>>;
  /**
   * Gives a dead letter its second life in another queue. Answers the job in its new queue. 404 unless it is a dead
   * letter; that queue's refusal, and then nothing has changed. 409 when something else has been decided about the job;
   * 503 when it is on its way and arrives automatically.
   */
  moveDeadLetter(id: string, request: MoveRequest): Promise<Outcome<JobView>>;
  /** Would this queue take the job? Writes nothing. */
  considerMoved(job: MovedJob): Promise<Outcome<void>>;
  /**
   * Takes a dead letter of another queue, or refuses it for good; once for each `move`.
   * @param ticket as in `enqueue`; 503 once it is given up, and that is not for good
   */
  adoptMoved(move: string, job: MovedJob, ticket?: string): Promise<Outcome<Adoption>>;
  priorities(): Promise<{ priority: number; count: number }[]>;
  /** Accepts each job on its own; what cannot be accepted says why. */
  enqueueEach(jobs: SentJobs, idempotency?: IdempotencyKey, divided?: boolean): Promise<Outcome<SentEachReceipt>>;
  /** What was answered under this key. @returns null: nothing; 409: to another request */
  recall<T = EnqueueReceipt>(idempotency: IdempotencyKey): Promise<Outcome<T | null>>;
}
