/** Numbers through the client: how queues get on now, over time and by type, and what they cost. */
import type { Moment } from '../producer/job';
import { momentText } from '../producer/job';
import { parametersFrom } from './pages';
import type { Requests } from './requests';

/** Jobs of the last minute. */
export interface Throughput {
  enqueuedPerMinute: number;
  processedPerMinute: number;
  failedPerMinute: number;
}

/** In ms; null: nothing was measured. */
export interface Percentiles {
  p50: number | null;
  p95: number | null;
  p99: number | null;
}

/** How the queues get on, or the one that was asked about. */
export interface Stats {
  queuesTotal: number;
  /** Workers that pull and are not stale. */
  workers: number;
  /** Jobs by state. */
  jobs: Record<string, number>;
  throughput: Throughput;
  latencyMs: Percentiles;
  /** From when they could run to when they did. */
  queueTimeMs: Percentiles;
  /** Part of the attempts of the last five minutes that failed. */
  errorRate: number;
  oldestAvailableAt: string | null;
  suspendedTargets: { queue: string; target: string }[];
  computedAt: string;
  /** False: there are more queues than are asked at once. */
  complete?: false;
}

/** What happened in a period. */
export interface StatsPoint {
  timestamp: string;
  enqueued: number;
  processed: number;
  failed: number;
  [count: string]: number | string | null;
}

/** What was counted of a job type in a queue. */
export interface TypeStats {
  queue: string;
  type: string;
  enqueued: number;
  completed: number;
  failed: number;
  retried: number;
  cancelled: number;
  discarded: number;
  expired: number;
  durationMs: Percentiles;
  queueTimeMs: Percentiles;
}

/** What a job type in a queue has cost; `type` null: what the queue wrote for itself. */
export interface CostItem {
  queue: string;
  type: string | null;
  jobs: number;
  rowsWritten: number;
  rowsPerJob: number | null;
  dollars: number;
  dollarsPerMillionJobs: number | null;
}

export interface Cost {
  items: CostItem[];
  total: { rowsWritten: number; dollars: number };
  since: string | null;
  /** What else is paid for. */
  notCounted: string[];
}

/** What of the past. */
export interface HistoryQuery {
  /** How long a point is. Default `5m`. */
  period?: '1m' | '5m' | '1h' | '1d';
  /** A bare duration counts back from now. */
  since?: Moment;
  until?: Moment;
  queue?: string;
  type?: string;
}

/** Numbers, as `tocsin.stats`. Needs `admin:read`. */
export class Statistics {
  constructor(private readonly requests: Requests) {}

  /**
   * How all queues get on, or one.
   * @throws {NotFoundError} when there is no queue of that name
   * @example
   * const { errorRate, oldestAvailableAt } = await tocsin.stats.get('mail');
   */
  async get(queue?: string): Promise<Stats> {
    return await this.requests.read<Stats>(`/admin/stats?${parametersFrom({ queue })}`, 'jobs', 'the numbers');
  }

  /** What happened, period by period, the oldest first: minutes for a day, hours for a month. */
  async history({ since, until, ...query }: HistoryQuery = {}): Promise<StatsPoint[]> {
    const times = { since: momentText(since, 'since'), until: momentText(until, 'until') };
    const path = `/admin/stats/history?${parametersFrom({ ...query, ...times })}`;
    return (await this.requests.read<{ dataPoints: StatsPoint[] }>(path, 'dataPoints', 'the history')).dataPoints;
  }

  /** What was counted of each job type, those with most jobs first. */
  async types(queue?: string): Promise<TypeStats[]> {
    const path = `/admin/stats/types?${parametersFrom({ queue })}`;
    return (await this.requests.read<{ items: TypeStats[] }>(path, 'items', 'the types')).items;
  }

  /** What each job type has cost, in rows written and their price. */
  async cost(queue?: string): Promise<Cost> {
    return await this.requests.read<Cost>(`/admin/stats/cost?${parametersFrom({ queue })}`, 'items', 'the cost');
  }
}
