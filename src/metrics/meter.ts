/** Counters of one job type that only grow: meters merge by addition, and an undone step is subtracted. */
import { bucketOf, DURATION_BOUNDS, type Histogram, QUEUE_TIME_BOUNDS } from './histogram';

/** Counters, by their place. Stored: only ever add to the end. */
export const COUNTERS = [
  /** Jobs accepted. */
  'enqueued',
  'completed',
  /** Failed attempts, whether retried or not. */
  'failed',
  /** Failed attempts that are retried. */
  'retried',
  'cancelled',
  /** Jobs discarded, for whatever reason but their expiry. */
  'discarded',
  'expired',
  /** Rows written. */
  'rows',
] as const;
export type Counter = (typeof COUNTERS)[number];

/** `completed`, `failed`: how long attempts ran. `queue_time`: how long jobs were available before they started. */
export const HISTOGRAMS = ['completed', 'failed', 'queue_time'] as const;
export type HistogramName = (typeof HISTOGRAMS)[number];

const BOUNDS: Readonly<Record<HistogramName, readonly number[]>> = {
  completed: DURATION_BOUNDS,
  failed: DURATION_BOUNDS,
  queue_time: QUEUE_TIME_BOUNDS,
};

const PLACE = Object.fromEntries(COUNTERS.map((name, index) => [name, index])) as Record<Counter, number>;

/** Where a histogram begins: its sum, and then its counts. Counters may come to be 16. */
const START = { completed: 16, failed: 16 + 17, queue_time: 16 + 2 * 17 } as const satisfies Record<
  HistogramName,
  number
>;

/** Places of the longest times that were counted. They merge by their maximum. */
const MOST: Record<HistogramName, number> = { completed: 14, failed: 14, queue_time: 15 };
const LONGEST = new Set(Object.values(MOST));

const SIZE = START.queue_time + 1 + QUEUE_TIME_BOUNDS.length + 1;

export type Meter = number[];

export const newMeter = (): Meter => new Array<number>(SIZE).fill(0);

export const placeOf = (counter: Counter): number => PLACE[counter];

/** The places in a meter of the sum of a histogram, of the bucket that `ms` falls into, and of the longest time. */
export function placesOf(name: HistogramName, ms: number): { sum: number; bucket: number; most: number } {
  const sum = START[name];
  return { sum, bucket: sum + 1 + bucketOf(BOUNDS[name], ms), most: MOST[name] };
}

export const read = (meter: Meter, counter: Counter): number => meter[PLACE[counter]] ?? 0;

export function histogramOf(meter: Meter, name: HistogramName): Histogram {
  const [bounds, start] = [BOUNDS[name], START[name]];
  const most = meter[MOST[name]] ?? 0;
  return { bounds, sum: meter[start] ?? 0, most, counts: meter.slice(start + 1, start + 2 + bounds.length) };
}

export function durationsOf(meter: Meter): Histogram {
  const [done, failed] = [histogramOf(meter, 'completed'), histogramOf(meter, 'failed')];
  const counts = done.counts.map((count, index) => count + (failed.counts[index] ?? 0));
  return { bounds: DURATION_BOUNDS, counts, sum: done.sum + failed.sum, most: done.most ?? 0 };
}

export function add(to: Meter, from: Meter): Meter {
  for (const [index, value] of from.entries()) {
    if (!value) continue;
    const held = to[index] ?? 0;
    to[index] = LONGEST.has(index) ? Math.max(held, value) : held + value;
  }
  return to;
}

export const sum = (meters: Iterable<Meter>): Meter => {
  const total = newMeter();
  for (const meter of meters) add(total, meter);
  return total;
};

/** A meter without its zeros: pairs of place and value. */
export function packed(meter: Meter): number[] {
  const pairs: number[] = [];
  for (let index = 0; index < meter.length; index++) {
    const value = meter[index] as number;
    if (value !== 0) pairs.push(index, value);
  }
  return pairs;
}

/** Reads what {@link packed} wrote. What is not a number counts as nothing, so that a damaged record breaks nothing. */
export function unpacked(pairs: readonly unknown[]): Meter {
  const meter = newMeter();
  for (let index = 0; index + 1 < pairs.length; index += 2) {
    const [place, value] = [pairs[index], pairs[index + 1]];
    if (Number.isInteger(place) && (place as number) >= 0 && (place as number) < SIZE && Number.isFinite(value)) {
      meter[place as number] = value as number;
    }
  }
  return meter;
}
