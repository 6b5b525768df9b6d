import type { JobState } from '../../../job/states';

/** Of a minute of a queue. */
export interface Minute {
  timestamp: string;
  processed: number;
  failed: number;
  enqueued: number;
}

export interface Percentiles {
  p50: number | null;
  p95: number | null;
  p99: number | null;
}

export interface Rates {
  processed_per_minute: number;
  failed_per_minute: number;
  enqueued_per_minute: number;
}

/** A queue as `GET /admin/queues` lists it. */
export interface QueueItem {
  name: string;
  status: string;
  paused: boolean;
  counts: Record<JobState, number>;
  throughput: Rates;
  latency_ms: Percentiles;
  queue_time_ms: Percentiles;
  oldest_available_at: string | null;
  /** 0…1, of the last five minutes. */
  error_rate: number;
  concurrency: { limit: number | null; active: number };
  suspended_targets: readonly string[];
  /** One-minute points, with `include=recent`. */
  recent: readonly Minute[];
}

export interface QueueList {
  items: readonly QueueItem[];
  total: number;
}
