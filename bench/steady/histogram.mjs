/**
 * Counts of values in buckets that are at most 0.8 % wide, so its memory does not follow the length of a run. Runs in Node and
 * in workerd.
 */
const BITS = 8;
const PARTS = 1 << BITS;

/** Values are counted in units of 1/1000: microseconds when they are ms. At most 2^37 of those. */
const UNITS = 1_000;

export class Histogram {
  /** Bucket → how many. */
  #counts = new Map();
  total = 0;
  max = 0;

  /** @param value at least 0; less counts as 0, because clocks have a resolution */
  record(value) {
    this.#add(bucketOf(value), 1);
    if (value > this.max) this.max = value;
  }

  #add(bucket, count) {
    this.#counts.set(bucket, (this.#counts.get(bucket) ?? 0) + count);
    this.total += count;
  }

  /** Adds what another one counted, or its {@link toJSON}. */
  merge(other) {
    const { counts, max } = other instanceof Histogram ? other.toJSON() : other;
    for (const [bucket, count] of counts) this.#add(bucket, count);
    this.max = Math.max(this.max, max);
  }

  /** The value below which the share `q` (0 … 1) lies, to 0.8 %, and never more than the largest; NaN of none. */
  quantile(q) {
    if (this.total === 0) return Number.NaN;
    let left = Math.max(1, Math.ceil(q * this.total));
    for (const [bucket, count] of [...this.#counts].sort(([a], [b]) => a - b)) {
      left -= count;
      if (left <= 0) return Math.min(this.max, upperEnd(bucket));
    }
    return this.max;
  }

  toJSON() {
    return { counts: [...this.#counts], max: this.max };
  }
}

function bucketOf(value) {
  const units = Math.max(0, Math.round(value * UNITS));
  if (units < PARTS) return units;
  const shift = Math.floor(Math.log2(units)) - BITS + 1;
  return shift * (PARTS / 2) + Math.floor(units / 2 ** shift);
}

function upperEnd(bucket) {
  if (bucket < PARTS) return bucket / UNITS;
  const shift = Math.floor((bucket - PARTS / 2) / (PARTS / 2));
  return ((bucket - shift * (PARTS / 2) + 1) * 2 ** shift - 1) / UNITS;
}
