/** Histograms with fixed bounds: they are merged by adding their counts, and percentiles are read from them. */

import { firstIndex } from '../job/bisect';

/** Bounds of the buckets that the protocol recommends, ms. The last bucket has none. */
export const DURATION_BOUNDS: readonly number[] = [
  5, 10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 30_000, 60_000, 120_000, 300_000,
];
export const QUEUE_TIME_BOUNDS: readonly number[] = [
  10, 50, 100, 500, 1_000, 5_000, 10_000, 30_000, 60_000, 300_000, 600_000, 1_800_000, 3_600_000,
];

/** How often something took this long. */
export interface Histogram {
  /** Upper bounds, inclusive, ms. */
  readonly bounds: readonly number[];
  /** One count for each bound, and one for what is beyond the last. */
  readonly counts: readonly number[];
  /** Sum of all that was counted, ms. */
  readonly sum: number;
  /** The longest, ms; 0 or absent: unknown, as of what was counted by older versions. */
  readonly most?: number;
}

/** What operators are shown of a histogram, ms; null when it is empty. */
export interface Percentiles {
  p50: number | null;
  p95: number | null;
  p99: number | null;
}

export function bucketOf(bounds: readonly number[], ms: number): number {
  return firstIndex(bounds.length, (at) => ms <= (bounds[at] as number));
}

export const countOf = ({ counts }: Histogram): number => counts.reduce((sum, count) => sum + count, 0);

/** The mean in ms; null when nothing was counted. */
export function meanOf(histogram: Histogram): number | null {
  const count = countOf(histogram);
  return count === 0 ? null : round(histogram.sum / count);
}

/** The value, ms, that a share `rank` (0 … 1) does not exceed, interpolated in its bucket; null: nothing counted. */
export function percentile(histogram: Histogram, rank: number): number | null {
  const { bounds, counts, most = 0 } = histogram;
  const count = countOf(histogram);
  if (count === 0) return null;
  const wanted = rank * count;
  let below = 0;
  for (const [index, here] of counts.entries()) {
    if (here > 0 && below + here >= wanted) {
      const to = bounds[index];
      if (to === undefined) return bounds.at(-1) ?? null;
      const from = bounds[index - 1] ?? 0;
      // A longest time below the bucket is from after an upgrade: what lies in the bucket was longer.
      const end = most > from ? Math.min(most, to) : to;
      return round(from + ((end - from) * Math.max(0, wanted - below)) / here);
    }
    below += here;
  }
  return bounds.at(-1) ?? null;
}

export function percentiles(histogram: Histogram): Percentiles {
  const at = (rank: number) => percentile(histogram, rank);
  return { p50: at(0.5), p95: at(0.95), p99: at(0.99) };
}

const round = (ms: number): number => Math.round(ms * 10) / 10;
