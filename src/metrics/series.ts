/** Meters over time: points of a minute or an hour, and what is read from them. */

import { meanOf, type Percentiles, percentile, percentiles } from './histogram';
import { add, durationsOf, histogramOf, type Meter, newMeter, read, sum } from './meter';

export const MINUTE_MS = 60_000;
export const HOUR_MS = 60 * MINUTE_MS;

/** Retention of points of a minute, and of those of an hour, ms. */
export const KEEP_MINUTES_MS = 24 * HOUR_MS;
export const KEEP_HOURS_MS = 31 * KEEP_MINUTES_MS;

/** What was counted of a type in the minute, or the hour, that begins at `at` (epoch ms). */
export interface Point {
  at: number;
  type: string;
  meter: Meter;
}

/** When the period that a moment lies in began, epoch ms. */
export const startOf = (time: number, periodMs: number): number => time - (time % periodMs);

/** Rates in a minute. */
export interface Throughput {
  processed_per_minute: number;
  failed_per_minute: number;
  enqueued_per_minute: number;
}

/** The rates of the last minute; of the minute before this one counts the share that lies in the last 60 s. */
export function throughput(points: readonly Point[], now: number): Throughput {
  const present = startOf(now, MINUTE_MS);
  const share = 1 - (now - present) / MINUTE_MS;
  const rate = (counter: 'completed' | 'failed' | 'enqueued') => {
    let count = 0;
    for (const { at, meter } of points) {
      if (at === present) count += read(meter, counter);
      else if (at === present - MINUTE_MS) count += share * read(meter, counter);
    }
    return Math.round(count);
  };
  return {
    processed_per_minute: rate('completed'),
    failed_per_minute: rate('failed'),
    enqueued_per_minute: rate('enqueued'),
  };
}

/** The minutes that {@link errorRate} looks at, and the ones that latencies are read from. */
const ERROR_WINDOW_MS = 5 * MINUTE_MS;
export const RECENT_MS = 30 * MINUTE_MS;

/** The failed share of attempts in the last five minutes, 0 … 1; undefined below `least` attempts. */
export function errorRate(points: readonly Point[], now: number, least = 1): number {
  const meter = sumSince(points, now - ERROR_WINDOW_MS);
  const [done, failed] = [read(meter, 'completed'), read(meter, 'failed')];
  return failed === 0 || done + failed < least ? 0 : Math.round((failed / (done + failed)) * 10_000) / 10_000;
}

/** From when on {@link errorRate} looks at points at all, epoch ms. */
export const errorWindowFrom = (now: number): number => now - ERROR_WINDOW_MS - MINUTE_MS;

/** When the error rate changes although nothing happens, epoch ms; undefined: it does not. */
export function errorRateChangesAt(points: readonly Point[], now: number): number | undefined {
  const seen = points.filter(({ at }) => at > errorWindowFrom(now));
  if (seen.every(({ meter }) => read(meter, 'failed') === 0)) return undefined;
  const counting = seen.filter(({ meter }) => read(meter, 'completed') + read(meter, 'failed') > 0);
  return Math.min(...counting.map(({ at }) => at + ERROR_WINDOW_MS + MINUTE_MS));
}

const sumSince = (points: readonly Point[], since: number): Meter =>
  sum(points.filter(({ at }) => at > since - MINUTE_MS).map(({ meter }) => meter));

/** How long attempts took, and how long jobs waited: recently, or since the beginning if nothing ran recently. */
export function latencies(
  points: readonly Point[],
  ever: Meter,
  now: number,
): { latency_ms: Percentiles; queue_time_ms: Percentiles; avg_latency_ms: number | null } {
  const lately = sumSince(points, now - RECENT_MS);
  const durations = durationsOf(lately);
  const used = meanOf(durations) === null ? durationsOf(ever) : durations;
  const waits = histogramOf(lately, 'queue_time');
  return {
    latency_ms: percentiles(used),
    queue_time_ms: percentiles(meanOf(waits) === null ? histogramOf(ever, 'queue_time') : waits),
    avg_latency_ms: meanOf(used),
  };
}

/** What happened in the last hour, as the protocol's clients read it: 0 where nothing was counted. */
export interface LastHour {
  completed_last_hour: number;
  failed_last_hour: number;
  avg_duration_ms: number;
  avg_wait_ms: number;
  throughput_per_second: number;
}

export function lastHour(points: readonly Point[], now: number): LastHour {
  const meter = sumSince(points, now - HOUR_MS);
  const completed = read(meter, 'completed');
  return {
    completed_last_hour: completed,
    failed_last_hour: read(meter, 'failed'),
    avg_duration_ms: meanOf(durationsOf(meter)) ?? 0,
    avg_wait_ms: meanOf(histogramOf(meter, 'queue_time')) ?? 0,
    throughput_per_second: Math.round((completed * 1e6) / HOUR_MS) / 1000,
  };
}

export interface HistoryPoint {
  /** Epoch ms. */
  at: number;
  processed: number;
  failed: number;
  enqueued: number;
  completed: number;
  latency_p50_ms: number | null;
  latency_p99_ms: number | null;
  avg_latency_ms: number | null;
}

/** Points gathered into periods, oldest first, without gaps. @param from, to epoch ms; their periods are included */
export function history(
  points: Iterable<Point>,
  { periodMs, from, to }: { periodMs: number; from: number; to: number },
): HistoryPoint[] {
  const first = startOf(from, periodMs);
  const count = Math.max(0, Math.floor((startOf(to, periodMs) - first) / periodMs) + 1);
  const meters = Array.from({ length: count }, (): Meter | undefined => undefined);
  for (const { at, meter } of points) {
    const index = Math.floor((at - first) / periodMs);
    if (index < 0 || index >= count) continue;
    const known = meters[index] ?? newMeter();
    meters[index] = add(known, meter);
  }
  return meters.map((meter, index) => linesOf(first + index * periodMs, meter ?? EMPTY));
}

const EMPTY = newMeter();

function linesOf(at: number, meter: Meter): HistoryPoint {
  const durations = durationsOf(meter);
  const completed = read(meter, 'completed');
  return {
    at,
    processed: completed,
    failed: read(meter, 'failed'),
    enqueued: read(meter, 'enqueued'),
    completed,
    latency_p50_ms: percentile(durations, 0.5),
    latency_p99_ms: percentile(durations, 0.99),
    avg_latency_ms: meanOf(durations),
  };
}

/** Points merged by period and type, oldest first. @param of types: `all` in one */
export function gathered(points: Iterable<Point>, periodMs: number, of: 'each' | 'all' = 'each'): Point[] {
  const known = new Map<string, Point>();
  for (const { at, type: own, meter } of points) {
    const type = of === 'all' ? '' : own;
    const start = startOf(at, periodMs);
    const name = `${start} ${type}`;
    const point = known.get(name) ?? { at: start, type, meter: newMeter() };
    known.set(name, point);
    add(point.meter, meter);
  }
  return [...known.values()].sort((a, b) => a.at - b.at);
}
