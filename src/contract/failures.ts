/** Failed jobs in groups: what failed in the same way, and another life or an end for all of it. */
import type { Operation } from './bulk';
import type { CursorQuery, Extent, OperationPreview, Pagination, Time } from './common';
import { get, onMany, post, removesMany } from './route';

/** How a failed job stands: a dead letter, discarded otherwise, waiting for its next attempt. */
export type FailureState = 'dead' | 'discarded' | 'retrying';

/** How many jobs a group has, in all and in each state. */
export interface FailureCounts extends Record<FailureState, number> {
  fingerprint: string;
  count: number;
}

/** Jobs that failed in the same way. */
export interface FailureGroup extends FailureCounts {
  /** Of the jobs. */
  type: string;
  /** Of the error; in its message what differs from job to job is left out. */
  error: { type: string; code: string; message: string };
  /** The queues that have some, those with most first. */
  queues: string[];
  first_seen_at: Time;
  last_seen_at: Time;
  /** The job that failed last. */
  sample: { job_id: string; message: string };
}

/** How far was looked. */
export interface FailureSearch {
  /** Jobs looked at, those of the answers before included. For keys bound by types or groups: those found. */
  searched: number;
  /** There are failures that were not looked at; `cursor` leads to them, unless types or groups alone bind the key. */
  more: boolean;
  cursor: string | null;
  /** Queues that were not asked, because there are too many: those that change least. */
  queues_left_out?: number;
}

export interface FailureGroups extends Pick<Extent, 'total_is_exact'>, FailureSearch {
  items: FailureGroup[];
  /** Groups found. */
  total: number;
  pagination: Pagination;
}

/** One group; one that has no jobs among those looked at has no more than its counts. */
export interface FailureGroupFound extends FailureCounts, Partial<FailureGroup>, FailureSearch {
  fingerprint: string;
  count: number;
  dead: number;
  discarded: number;
  retrying: number;
}

/** Which jobs of a group: of these queues and types, in these states. */
export interface FailureGroupPart {
  queue?: string | string[];
  /** `*` stands for anything. */
  type?: string | string[];
  state?: FailureState | FailureState[];
  /** Only says how many there are. */
  dry_run?: boolean;
  /** What cannot be undone must be confirmed. */
  confirm?: true;
  /** Names the operation, so that it is begun once. */
  idempotency_key?: string;
}

interface FailuresQuery {
  /** Separated by commas, as the two below. */
  queue?: string;
  /** `*` stands for anything. */
  type?: string;
  state?: string;
  /** When they failed last: a time, or how long ago that was. */
  since?: string;
  until?: string;
}

interface ListQuery extends CursorQuery, FailuresQuery {
  /** Default `count`. */
  sort?: 'count' | 'last_seen' | 'first_seen';
}

interface OneQuery extends FailuresQuery {
  /** Of an answer that has looked at a part only. */
  cursor?: string;
}

interface WaitQuery {
  /** Seconds to wait for the end, 0 … 20. Default 20. */
  wait?: number;
}

type Acting = {
  query: WaitQuery;
  body: FailureGroupPart;
  200: Operation | OperationPreview;
  202: Operation;
  errors: 409;
};

/** Below `/ojs/v1/admin`. */
export const failures = {
  /** Lists the groups of the newest failures, largest first. */
  list: get<{ query: ListQuery; 200: FailureGroups }>('/failures', { bound: 'list' }),
  /** Shows one group of failures. */
  show: get<{ query: OneQuery; 200: FailureGroupFound; errors: 404 }>('/failures/:fingerprint', {
    bound: 'list',
  }),
  /** Retries the jobs of a group. A longer operation continues by itself. */
  redrive: post<Acting>('/failures/:fingerprint/redrive', onMany('failure.redrive')),
  /** Deletes the jobs of a group permanently, including waiting ones. */
  discard: post<Acting>('/failures/:fingerprint/discard', removesMany('failure.discard')),
};
