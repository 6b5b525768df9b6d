/** Rates, error rates and histories, read from points of minutes. */
import { describe, expect, it } from 'vitest';
import { type Counter, newMeter, placeOf } from '../../src/metrics/meter';
import {
  errorRate,
  errorRateChangesAt,
  gathered,
  HOUR_MS,
  history,
  lastHour,
  MINUTE_MS,
  type Point,
  throughput,
} from '../../src/metrics/series';

const T = Date.UTC(2040, 0, 1, 12);

function point(at: number, counts: Partial<Record<Counter, number>>, type = 'a'): Point {
  const meter = newMeter();
  for (const [name, count] of Object.entries(counts)) meter[placeOf(name as Counter)] = count;
  return { at, type, meter };
}

describe('the throughput', () => {
  it('covers the last 60 seconds, across the minute boundary', () => {
    const points = [point(T - MINUTE_MS, { completed: 60, failed: 10 }), point(T, { completed: 5, enqueued: 7 })];
    const at = (seconds: number) => throughput(points, T + seconds * 1000);
    expect(at(0)).toEqual({ processed_per_minute: 65, failed_per_minute: 10, enqueued_per_minute: 7 });
    expect(at(30)).toEqual({ processed_per_minute: 35, failed_per_minute: 5, enqueued_per_minute: 7 });
    expect(at(90)).toEqual({ processed_per_minute: 3, failed_per_minute: 0, enqueued_per_minute: 4 });
    expect(at(180)).toEqual({ processed_per_minute: 0, failed_per_minute: 0, enqueued_per_minute: 0 });
  });
});

describe('the error rate', () => {
  it('is the share of the attempts of five minutes that failed', () => {
    const points = [
      point(T - 9 * MINUTE_MS, { failed: 1_000 }),
      point(T - 2 * MINUTE_MS, { completed: 2, failed: 1 }),
      point(T, { completed: 1 }, 'b'),
    ];
    expect(errorRate(points, T)).toBe(0.25);
    expect(errorRate([], T)).toBe(0);
    expect(errorRate(points, T, 4)).toBe(0.25);
    expect(errorRate(points, T, 5)).toBe(0);
  });

  it('changes by itself when a minute is past, as long as anything failed', () => {
    const [good, idle, bad] = [
      point(T, { completed: 9 }),
      point(T - MINUTE_MS, { enqueued: 3 }),
      point(T, { failed: 1 }),
    ];
    expect(errorRateChangesAt([good, idle], T)).toBeUndefined();
    const later = { ...bad, at: T + 2 * MINUTE_MS };
    const changesAt = errorRateChangesAt([good, idle, later], T + 2 * MINUTE_MS) as number;
    expect(changesAt).toBe(T + 6 * MINUTE_MS);
    expect(errorRate([good, idle, later], changesAt - 1)).toBe(0.1);
    expect(errorRate([good, idle, later], changesAt)).toBe(1);
  });
});

describe('the last hour', () => {
  it('is what its minutes count, and zeros where nothing was counted', () => {
    const nothing = { completed_last_hour: 0, failed_last_hour: 0, throughput_per_second: 0 };
    expect(lastHour([], T)).toEqual({ ...nothing, avg_duration_ms: 0, avg_wait_ms: 0 });
    const points = [
      point(T - 2 * HOUR_MS, { completed: 1_000 }),
      point(T - 30 * MINUTE_MS, { completed: 900, failed: 2 }),
      point(T, { completed: 900 }, 'b'),
    ];
    expect(lastHour(points, T)).toMatchObject({
      ...{ completed_last_hour: 1_800, failed_last_hour: 2, throughput_per_second: 0.5 },
    });
  });
});

describe('a history', () => {
  it('has every period once, with zeros where nothing happened', () => {
    const points = [
      point(T, { completed: 1 }),
      point(T + MINUTE_MS, { completed: 2, failed: 1 }, 'b'),
      point(T + 12 * MINUTE_MS, { enqueued: 4 }),
      point(T + 20 * MINUTE_MS, { enqueued: 9 }),
    ];
    const lines = history(points, { periodMs: 5 * MINUTE_MS, from: T + MINUTE_MS, to: T + 14 * MINUTE_MS });
    expect(
      lines.map(({ at, processed, failed, enqueued }) => [(at - T) / MINUTE_MS, processed, failed, enqueued]),
    ).toEqual([
      [0, 3, 1, 0],
      [5, 0, 0, 0],
      [10, 0, 0, 4],
    ]);
    expect(lines[0]).toMatchObject({ latency_p50_ms: null, avg_latency_ms: null });
  });

  it('is gathered by type or of all types', () => {
    const points = [point(T, { completed: 1 }), point(T + MINUTE_MS, { completed: 2 }, 'b'), point(T, { failed: 1 })];
    expect(gathered(points, 60 * MINUTE_MS).map(({ type }) => type)).toEqual(['a', 'b']);
    expect(gathered(points, 60 * MINUTE_MS, 'all')).toEqual([point(T, { completed: 3, failed: 1 }, '')]);
  });
});
