import type { JobState } from '../../../job/states';

/** A job as `GET /admin/jobs` lists it: all but what it carries. */
export interface JobItem {
  id: string;
  type: string;
  queue: string;
  state: JobState;
  priority: number;
  attempt: number;
  max_attempts: number;
  created_at: string;
  scheduled_at?: string;
  next_attempt_at?: string;
  started_at?: string;
  completed_at?: string;
  cancelled_at?: string;
  discarded_at?: string;
  discard_reason?: string;
  dead_letter?: boolean;
  error?: { type?: string; code?: string; message?: string };
  progress?: number;
  tags?: readonly string[];
  workflow_id?: string;
}

export interface JobList {
  items: readonly JobItem[];
  total: number;
  /** Absent: it is. */
  total_is_exact?: boolean;
  /** How many jobs are in each state, for the filter without its states. */
  counts?: Partial<Record<JobState, number>>;
  counts_exact?: boolean;
  /** Of a search: jobs looked at, whether there are others, and where to go on. */
  searched?: number;
  more?: boolean;
  cursor?: string | null;
  pagination: { has_more: boolean; next_cursor: string | null };
}
