/** Numbers: how the queues get on now, over time and by job type, and what they cost. */

import type { JobState } from '../job/states';
import type { Percentiles } from '../metrics/histogram';
import type { HistoryPoint, Throughput } from '../metrics/series';
import type { Also } from '../ojs/names';
import type { Time } from './common';
import type { FlatEvent } from './event-messages';
import { get, type Media } from './route';

export type { Percentiles, Throughput };

/** How many jobs are in each state. */
export type StateCounts = Record<JobState, number>;

/** The rates of the last minute, and the mean time of an attempt, under names of other systems. */
export interface PerMinute {
  enqueued_per_min: number;
  completed_per_min: number;
  failed_per_min: number;
  avg_latency_ms: number;
}

/** Rates and times of recent attempts. */
export interface Pace {
  throughput: Throughput;
  /** How long attempts took. */
  latency_ms: Percentiles;
  /** How long jobs that could run waited for it. */
  queue_time_ms: Percentiles;
  /** Part of the attempts of the last five minutes that failed, 0 … 1. */
  error_rate: number;
}

/** A queue among the numbers of all. */
export interface QueuePace extends Pace {
  name: string;
  /** Jobs that have not ended. */
  depth: number;
  avg_duration_ms: number;
}

/** How the queues get on, or the one that was asked about. */
export interface Stats extends Pace, PerMinute {
  /** How many there are; with `detail`: those with most jobs one by one. */
  queues: number | QueuePace[];
  /** The one that was asked about. */
  queue?: string;
  queues_total: number;
  /** Workers that pull and are not stale. */
  workers: number;
  /** Jobs by state. */
  jobs: StateCounts;
  throughput: Throughput & PerMinute;
  /** When the job that waits longest became available; null: none waits. */
  oldest_available_at: Time | null;
  /** Targets that jobs are not sent to for now. */
  suspended_targets: { queue: string; target: string }[];
  uptime_seconds: number;
  computed_at: Time;
  /** False: there are more queues than are asked at once. */
  complete?: false;
}

/** What happened in a period. */
export interface StatsPoint extends Omit<HistoryPoint, 'at'> {
  /** When it began. */
  timestamp: Time;
}

/** A minute of the last half hour. */
export type Minute = Pick<StatsPoint, 'timestamp' | 'processed' | 'failed' | 'enqueued'>;

/** How long a point of a history is. */
export type StatsPeriod = '1m' | '5m' | '1h' | '1d';

interface HistoryOfStats {
  period: StatsPeriod;
  since: Time;
  until: Time;
  data: StatsPoint[];
}

/** What happened, the oldest first and without gaps. */
export interface StatsHistory extends Also<'StatsHistory', HistoryOfStats> {}

/** Says so when not all queues were asked. */
export interface OfSome {
  /** False: there are more queues than are asked at once. */
  complete?: false;
  /** Queues in all, where not all were asked. */
  queues_total?: number;
}

/** What was counted of a job type in a queue. */
export interface TypeStats {
  queue: string;
  type: string;
  /** Jobs accepted. */
  enqueued: number;
  completed: number;
  /** Failed attempts, whether retried or not. */
  failed: number;
  /** Failed attempts that are retried. */
  retried: number;
  cancelled: number;
  discarded: number;
  expired: number;
  /** How long attempts took. */
  duration_ms: Percentiles;
  /** How long jobs that could run waited for it. */
  queue_time_ms: Percentiles;
}

/** Those with most jobs first. */
export interface TypeStatsList extends OfSome {
  items: TypeStats[];
  total: number;
}

/** What a job type in a queue has cost. */
export interface CostItem {
  queue: string;
  /** Null: what the queue wrote for itself. */
  type: string | null;
  jobs: number;
  rows_written: number;
  /** Null: no jobs were counted. */
  rows_per_job: number | null;
  dollars: number;
  dollars_per_million_jobs: number | null;
}

/** What was written, and its price. */
export interface Cost extends OfSome {
  items: CostItem[];
  total: { rows_written: number; dollars: number };
  /** From when on it was counted; null: there are no queues. */
  since: Time | null;
  dollars_per_million_rows: number;
  /** What else is paid for. */
  not_counted: string[];
}

/** The numbers of the whole deployment, for monitoring without Prometheus. */
export interface Metrics {
  uptime_seconds: number;
  jobs_enqueued_total: number;
  jobs_completed_total: number;
  jobs_failed_total: number;
  jobs_retried_total: number;
  jobs_cancelled_total: number;
  jobs_discarded_total: number;
  jobs_expired_total: number;
  jobs_active: number;
  queues_active: number;
  workers_active: number;
  avg_latency_ms: number;
  throughput_per_second: number;
  /** False: there are more queues than are asked at once. */
  complete?: false;
}

/** A message of the live statistics. */
export interface LiveStats {
  queues: ({ queue: string } & Pick<StateCounts, 'available' | 'active' | 'scheduled' | 'retryable'>)[];
  throughput: { processed_per_second: number; failed_per_second: number; enqueued_per_second: number };
  workers: {
    total: number;
    active: { id: string; state: string; activeJobs: number; lastHeartbeatAt: Time }[];
  };
  error_rate: number;
  timestamp: Time;
}

interface QueueQuery {
  /** Only of this queue. */
  queue?: string;
}

interface StatsQuery extends QueueQuery {
  /** With the queues one by one. */
  detail?: boolean;
  /** The maximum number of them, 1 … 200. Default 50. */
  limit?: number;
}

interface HistoryQuery extends QueueQuery {
  /** How long a point is. Default `5m`. */
  period?: StatsPeriod;
  /** Only of this job type. */
  type?: string;
  /** A time, or how long ago that was. */
  since?: string;
  until?: string;
}

/** Below `/ojs/v1/admin`. */
export const stats = {
  /** Shows statistics of all queues, or of one. */
  show: get<{ query: StatsQuery; 200: Stats; errors: 404 }>('/stats'),
  /** Shows the counts by period: minutes for a day, hours for a month. */
  history: get<{ query: HistoryQuery; 200: StatsHistory; errors: 404 }>('/stats/history'),
  /** Shows the counts of each job type. */
  types: get<{ query: QueueQuery; 200: TypeStatsList; errors: 404 }>('/stats/types'),
  /** Shows the cost of each job type, in rows written and their price. */
  cost: get<{ query: QueueQuery; 200: Cost; errors: 404 }>('/stats/cost'),
  /** Streams the numbers: a message whenever they change, and the events of jobs. */
  stream: get<{ fromServer: LiveStats | FlatEvent; 200: Media<'text/event-stream'> }>('/stats/stream'),
};

interface FormatQuery {
  /** Default: by what the request accepts. */
  format?: 'json' | 'prometheus';
  /** With the text of Prometheus: queues whose groups are counted, too, up to 20; separated by commas. */
  groups?: string;
}

/** From the root on: where scrapers look, and where clients of the protocol do. */
export const metrics = {
  /** Shows the numbers of the deployment for Prometheus. */
  scrape: get<{ query: FormatQuery; 200: Metrics | Media<'text/plain'> }>('/metrics', { scope: 'metrics:read' }),
  /** Shows the numbers of the deployment. */
  show: get<{ query: FormatQuery; 200: Metrics | Media<'text/plain'> }>('/ojs/v1/metrics', { scope: 'metrics:read' }),
};
