/** What the answers and requests of many resources have. */
import type { JobState } from '../job/states';
import type { Also } from '../ojs/names';

/** A time: RFC 3339, in UTC. @format date-time */
export type Time = string;

/** A duration: ISO 8601, such as `PT30S`. */
export type IsoDuration = string;

/** Which part of a list is read: from an offset, or by the page. */
export interface PageQuery {
  /** Entries at most, 1 … 200. Default 50. */
  limit?: number;
  /** Entries to leave out first. */
  offset?: number;
  /** The page, from 1 on, for those who read by the page. */
  page?: number;
  /** Entries of a page, 1 … 100. Default 20. */
  per_page?: number;
}

/** Which part of a list is read: from an offset, by the page, or from the cursor of the page before. */
export interface CursorQuery extends PageQuery {
  /** `next_cursor` of the page before. */
  cursor?: string;
}

interface PagePlace {
  /** Entries in all. */
  total: number;
  /** Entries of this page at most. */
  limit: number;
  /** Entries before it. */
  offset: number;
  /** The number of this page, from 1 on. */
  page: number;
  /** Are there entries behind it? */
  has_more: boolean;
  /** Names the next page; null: there is none, or it is read by its offset. */
  next_cursor: string | null;
}

/** Where a page of a list stands. */
export interface Pagination extends Also<'Pagination', PagePlace> {}

/** A page of a list. */
export interface Page<Item> {
  items: Item[];
  /** Entries in all. */
  total: number;
  pagination: Pagination;
}

/** What the sender should know of a request that was taken. */
export interface Warned {
  /** Such as members that are not known and have no effect. The header `Warning` says the same. */
  warnings?: string[];
}

/** Names an attempt: a report for one that is over changes nothing. */
export interface AttemptName {
  /** Where the path does not name it. */
  job_id?: string;
  worker_id?: string;
  /** Default: the one that runs. */
  attempt?: number;
  /** The name of the claim, from the fetch. */
  delivery_id?: string;
}

/** How far a list was counted, and searched. */
export interface Extent {
  /** Present where `total` is a lower bound. */
  total_is_exact?: false;
  /** Jobs that a search has looked at. */
  searched?: number;
  /** Has the search not come to the end? */
  more?: boolean;
  /** Where the search continues; null: it has reached the end. */
  cursor?: string | null;
}

/** A change that every queue must hear of. */
export interface Spreading {
  /** Queues and the like that have not confirmed the change yet; absent: all have. */
  pending_queues?: number;
}

/** An operation on many jobs, which continues by itself. */
export interface Continued {
  /** By which it can be followed. */
  operation_id: string;
  /** False: it continues. */
  completed: boolean;
  /** It was stopped before its end. */
  aborted?: true;
}

/** What an operation would do, and has not done. */
export interface OperationPreview {
  dry_run: true;
  action: BulkAction;
  /** Jobs that it would act on. */
  matched: number;
  /** False: there are more. */
  matched_is_exact: boolean;
  by_state: Partial<Record<JobState, number>>;
  by_queue: Record<string, number>;
  /** Jobs that were looked at. */
  searched: number;
}

/** What is done to many jobs. */
export type BulkAction = 'cancel' | 'retry' | 'delete' | 'purge';
