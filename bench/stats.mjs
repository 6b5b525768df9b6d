/** Numbers about samples. */

/** The value below which the share `q` (0 … 1) of the samples lies (nearest rank); NaN without samples. */
export function quantile(samples, q) {
  if (samples.length === 0) return Number.NaN;
  const sorted = Float64Array.from(samples).sort();
  return sorted[Math.min(sorted.length - 1, Math.max(0, Math.ceil(q * sorted.length) - 1))];
}

/** The middle one of an odd number of values; the mean of the two in the middle of an even one; NaN of none. */
export function median(values) {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 === 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

/** Below this many samples the 99th percentile is one of the two largest, which says nothing. */
const FEWEST_FOR_P99 = 200;

/** p50, p99 and maximum, rounded to microseconds when the samples are ms. There is no p99 of few samples. */
export function summary(samples) {
  return {
    p50: round(quantile(samples, 0.5), 3),
    p99: samples.length < FEWEST_FOR_P99 ? undefined : round(quantile(samples, 0.99), 3),
    max: round(quantile(samples, 1), 3),
  };
}

/** Rounds to this many decimals. */
export function round(value, decimals = 0) {
  const factor = 10 ** decimals;
  return Math.round(value * factor) / factor;
}

/** Events per second. */
export function rate(count, ms) {
  return round((count * 1000) / ms);
}

/** CPU time per item in µs, from what `clock` (ms) said before and says now; undefined when it cannot say. */
export function cpuPer(clock, before, items) {
  const now = clock?.();
  return now === undefined || before === undefined ? undefined : round(((now - before) * 1000) / items, 1);
}
