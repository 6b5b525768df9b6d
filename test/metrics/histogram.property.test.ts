/** Histograms are merged by adding: whatever was counted where, percentiles are those of all. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { bucketOf, countOf, DURATION_BOUNDS, meanOf, percentile, percentiles } from '../../src/metrics/histogram';
import { add, histogramOf, type Meter, newMeter, packed, placesOf, sum, unpacked } from '../../src/metrics/meter';

const times = fc.array(fc.oneof(fc.nat(400_000), fc.nat(50), fc.constantFrom(...DURATION_BOUNDS)), { maxLength: 200 });

function counted(all: readonly number[]): Meter {
  const meter = newMeter();
  for (const ms of all) {
    const { sum: place, bucket, most } = placesOf('completed', ms);
    meter[most] = Math.max(meter[most] ?? 0, 1, ms);
    meter[place] = (meter[place] ?? 0) + ms;
    meter[bucket] = (meter[bucket] ?? 0) + 1;
  }
  return meter;
}

describe('a histogram', () => {
  it('merged from parts, in any order, is that of all', () => {
    fc.assert(
      fc.property(fc.array(times, { maxLength: 8 }), (parts) => {
        const merged = sum(parts.map(counted));
        expect(merged).toEqual(counted(parts.flat()));
        expect(sum(parts.map(counted).reverse())).toEqual(merged);
        expect(parts.map(counted).reduce((all, part) => add(all, part), newMeter())).toEqual(merged);
      }),
    );
  });

  it('has percentiles in the bucket of the value that they stand for, and they rise', () => {
    fc.assert(
      fc.property(
        times.filter((all) => all.length > 0),
        fc.integer({ min: 1, max: 100 }),
        (all, percent) => {
          const histogram = histogramOf(counted(all), 'completed');
          const sorted = [...all].sort((a, b) => a - b);
          const true_ = sorted[Math.ceil((percent / 100) * all.length) - 1] as number;
          const told = percentile(histogram, percent / 100) as number;
          const bucket = bucketOf(DURATION_BOUNDS, true_);
          if (bucket === DURATION_BOUNDS.length) expect(told).toBe(DURATION_BOUNDS.at(-1));
          else {
            expect(told).toBeLessThanOrEqual(DURATION_BOUNDS[bucket] as number);
            expect(told).toBeGreaterThanOrEqual(DURATION_BOUNDS[bucket - 1] ?? 0);
            // A time below a millisecond counts as one.
            expect(told).toBeLessThanOrEqual(Math.max(1, ...all));
          }
          const { p50, p95, p99 } = percentiles(histogram);
          expect(p50 as number).toBeLessThanOrEqual(p95 as number);
          expect(p95 as number).toBeLessThanOrEqual(p99 as number);
          expect(countOf(histogram)).toBe(all.length);
        },
      ),
    );
  });

  it('without values has neither percentiles nor a mean', () => {
    const empty = histogramOf(newMeter(), 'failed');
    expect(percentiles(empty)).toEqual({ p50: null, p95: null, p99: null });
    expect(meanOf(empty)).toBeNull();
  });
});

describe('a meter', () => {
  it('is the same after it was stored, and damage of the record counts as nothing', () => {
    fc.assert(
      fc.property(times, (all) => {
        const meter = counted(all);
        expect(unpacked(JSON.parse(JSON.stringify(packed(meter))))).toEqual(meter);
      }),
    );
    expect(unpacked([1, 'x', -1, 5, 9_999, 5, null, 3, 2])).toEqual(newMeter());
  });
});
