/** What operators ask of a queue object: changes of jobs, operations on many, the life of the queue. Epoch ms. */

import type { OperationCounts } from '../contract/bulk';
import type { QueueDeletion, QueueRemoval } from '../contract/queues';
import type { StoredJob } from '../export/stored-job';
import type { ErrorData } from '../job/errors';
import type { JobFilter } from '../job/filter';
import type { OptionsThat } from '../job/options';
import type { JobBody, JobView, RetryInput } from '../job/record';
import type { RetentionChange } from '../job/retention';
import { type JobState, MOVES } from '../job/states';
import type { IdempotencyKey } from './receipts';
import type { StoredCheckpoint } from './workers';

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

export interface BulkItem {
  job_id: string;
  status: 'done' | 'skipped' | 'failed';
  /** Why not: `not_found`, the state it is in, or an error code. */
  reason?: string;
}

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

export interface OperationView extends OperationCounts {
  id: string;
  done: boolean;
  /** In the order in which the jobs were handled; only where they were noted, and are asked for. */
  items?: BulkItem[];
  started_at: number;
  /** It was stopped before its end; what was done stays done. */
  aborted?: true;
}

export type { RemovalStrategy } from '../contract/queues';

export type RemovalView = Omit<QueueDeletion, 'queue'>;

export type RemovalRequest = Pick<QueueRemoval, 'target_queue'> & Pick<QueueDeletion, 'strategy'>;

type Carried = 'id' | 'type' | 'priority' | 'attempt' | 'claims' | 'created_at' | 'enqueued_at' | 'holds' | 'body';

/** A job on its way from a queue that is being deleted. */
export interface MovedJob extends Pick<StoredJob, Carried> {
  pending: boolean;
  due_at: number;
  expires_at: number | null;
  history: string | null;
  checkpoint?: StoredCheckpoint;
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
