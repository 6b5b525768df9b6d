/**
 * Workers Analytics Engine (binding `ANALYTICS`): a data point per changed type after each commit. The platform takes
 * a bounded number per event; the rest follows with the next commit.
 *
 * | part of a data point | holds |
 * |---|---|
 * | `indexes` | the queue |
 * | `blobs` | the queue, the type |
 * | `doubles` | enqueued, completed, failed, retried, cancelled, discarded, expired, rows written |
 * | | then count and sum (ms) of the durations, and of the queue times |
 */
import { countOf } from '../../../metrics/histogram';
import { COUNTERS, durationsOf, histogramOf, type Meter, read } from '../../../metrics/meter';
import type { Feature } from '../../feature';
import type { Named, Observed } from '../../store/parts';

/** Data points in one event at most; the platform takes 25 from one invocation of a Worker. */
const MAX_POINTS = 20;

export type Dataset = Pick<AnalyticsEngineDataset, 'writeDataPoint'>;

export class Analytics implements Feature {
  constructor(
    private readonly q: Named & Observed,
    private readonly dataset: Dataset,
  ) {
    q.observed.meters.watch();
  }

  start(): void {
    for (const [type, meter] of this.q.observed.meters.takeWatched(MAX_POINTS)) {
      try {
        this.dataset.writeDataPoint(pointOf(this.q.name, type, meter));
      } catch (error) {
        // Failing analytics must not stop the jobs of the queue.
        console.warn('tocsin: a data point could not be written:', error);
      }
    }
  }
}

function pointOf(queue: string, type: string, meter: Meter): AnalyticsEngineDataPoint {
  const times = [durationsOf(meter), histogramOf(meter, 'queue_time')];
  return {
    // An index holds 96 bytes.
    indexes: [queue.slice(0, 96)],
    blobs: [queue, type],
    doubles: [...COUNTERS.map((name) => read(meter, name)), ...times.flatMap((time) => [countOf(time), time.sum])],
  };
}
