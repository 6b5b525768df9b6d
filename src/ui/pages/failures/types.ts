/** Jobs of one type that failed with the same error: `GET /admin/failures`. */
export interface Group {
  fingerprint: string;
  type: string;
  error: { type?: string; code?: string; message: string };
  count: number;
  dead: number;
  discarded: number;
  retrying: number;
  queues: readonly string[];
  first_seen_at: string;
  last_seen_at: string;
  sample: { job_id: string; message: string };
}

export interface GroupList {
  items: readonly Group[];
  total: number;
  /** Failed jobs that were looked at. */
  searched: number;
  /** There are others. */
  more: boolean;
  cursor: string | null;
  pagination: { has_more: boolean };
}

/** One group; one that has no jobs among those looked at has no more than its counts. */
export type OneGroup = Pick<Group, 'fingerprint' | 'count' | 'dead' | 'discarded' | 'retrying'> &
  Partial<Group> &
  Pick<GroupList, 'searched' | 'more'>;
