import { meterOf, type Reading } from '../../across/metrics';
import type { Metrics, QueuePace, StateCounts, Stats } from '../../contract/stats';
import { JOB_STATES } from '../../job/states';
import { formatInstant } from '../../job/time';
import { read, sum } from '../../metrics/meter';
import { errorRate, latencies, type Point, throughput } from '../../metrics/series';
import type { QueueReading } from '../../rpc/metrics';
import { uptime } from '../system/uptime';

/** Jobs in a state of any of the queues. */
export function countsOf(queues: readonly QueueReading[]): StateCounts {
  const countIn = (state: (typeof JOB_STATES)[number]) => queues.reduce((all, { counts }) => all + counts[state], 0);
  return Object.fromEntries(JOB_STATES.map((state) => [state, countIn(state)])) as StateCounts;
}

export const recentOf = (queues: readonly QueueReading[]): Point[] => queues.flatMap(({ recent }) => recent);

function depthOf({ counts }: QueueReading): number {
  const { completed, cancelled, discarded, ...open } = counts;
  return Object.values(open).reduce((all, count) => all + count, 0);
}

/** Since when the longest waiting job of any queue has waited, epoch ms. */
function oldestOf(queues: readonly QueueReading[]): number | null {
  const times = queues.flatMap(({ oldest_available_at: at }) => at ?? []);
  return times.length === 0 ? null : Math.min(...times);
}

/** @param shown number of queues shown, those with most jobs first @param queue the only one that was asked about */
export function renderStats({ queues, total, workers, at: read_at }: Reading, shown: number, queue?: string): Stats {
  const now = Math.max(read_at, Date.now());
  const recent = recentOf(queues);
  const rates = throughput(recent, now);
  const { latency_ms, queue_time_ms, avg_latency_ms } = latencies(recent, sum(queues.map(meterOf)), now);
  const oldest = oldestOf(queues);
  const mean = Math.round(avg_latency_ms ?? 0);
  const perMin = {
    enqueued_per_min: rates.enqueued_per_minute,
    completed_per_min: rates.processed_per_minute,
    failed_per_min: rates.failed_per_minute,
    avg_latency_ms: mean,
  };
  const suspended = queues.flatMap(({ queue: name, suspended_targets }) =>
    suspended_targets.map((target) => ({ queue: name, target })),
  );
  const count = queue === undefined ? total : 1;
  return {
    queues: shown > 0 ? detailsOf(queues, shown, now) : count,
    ...(queue !== undefined && { queue }),
    queues_total: count,
    workers: workers.total - workers.stale,
    jobs: countsOf(queues),
    throughput: { ...rates, ...perMin },
    ...perMin,
    ...{ latency_ms, queue_time_ms },
    error_rate: errorRate(recent, now),
    oldest_available_at: oldest === null ? null : formatInstant(oldest),
    suspended_targets: suspended,
    uptime_seconds: uptime(now),
    computed_at: formatInstant(now),
    ...(queue === undefined && queues.length < total && { complete: false }),
  };
}

const detailsOf = (queues: readonly QueueReading[], shown: number, now: number): QueuePace[] =>
  [...queues]
    .sort((a, b) => depthOf(b) - depthOf(a) || (a.queue < b.queue ? -1 : 1))
    .slice(0, shown)
    .map((queue) => {
      const { latency_ms, queue_time_ms, avg_latency_ms } = latencies(queue.recent, meterOf(queue), now);
      return {
        name: queue.queue,
        depth: depthOf(queue),
        avg_duration_ms: Math.round(avg_latency_ms ?? 0),
        error_rate: errorRate(queue.recent, now),
        throughput: throughput(queue.recent, now),
        ...{ latency_ms, queue_time_ms },
      };
    });

/** The numbers of the whole deployment, for monitoring without Prometheus. */
export function renderMetrics({ queues, total, workers, at: now }: Reading): Metrics {
  const meter = sum(queues.map(meterOf));
  const recent = recentOf(queues);
  return {
    uptime_seconds: uptime(now),
    jobs_enqueued_total: read(meter, 'enqueued'),
    jobs_completed_total: read(meter, 'completed'),
    jobs_failed_total: read(meter, 'discarded'),
    jobs_retried_total: read(meter, 'retried'),
    jobs_cancelled_total: read(meter, 'cancelled'),
    jobs_discarded_total: read(meter, 'discarded'),
    jobs_expired_total: read(meter, 'expired'),
    jobs_active: queues.reduce((all, { counts }) => all + counts.active, 0),
    queues_active: total,
    workers_active: workers.total - workers.stale,
    avg_latency_ms: Math.round(latencies(recent, meter, now).avg_latency_ms ?? 0),
    throughput_per_second: Math.round((throughput(recent, now).processed_per_minute / 60) * 100) / 100,
    ...(queues.length < total && { complete: false }),
  };
}

/** List price of a million rows written, US dollars. */
export const DOLLARS_PER_MILLION_ROWS = 1;

export const dollarsOf = (rows: number): number => (rows * DOLLARS_PER_MILLION_ROWS) / 1_000_000;
