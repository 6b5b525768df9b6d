import type { JobState } from '../../../job/states';

/** A queue as `GET /admin/queues` lists it. */
export interface QueueItem {
  name: string;
  status: string;
  paused: boolean;
  counts: Partial<Record<JobState, number>>;
  throughput?: number | { processed_per_minute: number };
  oldest_available_at: string | null;
  /** One-minute points, with `include=recent`. */
  recent?: readonly { timestamp: string; processed: number; failed: number }[];
}

export interface QueueList {
  items: readonly QueueItem[];
  total: number;
}
