/** What a queue says of what has happened in it. */

import type { WaitingFor } from '../job/waiting';
import type { Upcoming } from '../metrics/as-of';
import type { Meter } from '../metrics/meter';
import type { Point } from '../metrics/series';
import type { QueuePressure } from './receipts';
import type { QueueStats } from './stats';

export interface PointsRequest {
  /** The points of this time, epoch ms. */
  from: number;
  to: number;
  /** Length of a point's period. */
  period_ms: number;
  type?: string | undefined;
}

export interface QueueActivity {
  /** Since when the job that became available first has waited, epoch ms; null when none waits. */
  oldest_available_at: number | null;
  /** Why that job does not run. Absent from readings that are kept. */
  waiting_for?: WaitingFor;
  /** How full the queue is, once producers are warned. */
  pressure?: QueuePressure;
  /** How many jobs may run at once, and how many run. */
  concurrency: { limit: number | null; active: number };
  /** Targets that are not called now, because they did not take the last calls. */
  suspended_targets: string[];
  /** Events that followers were not sent, because they were too many, since the object woke. */
  events_dropped: number;
  /** Everything that was ever counted, by type; under an empty name what belongs to no type. */
  totals: [type: string, meter: Meter][];
  /** The minutes of the last half hour, all types together. */
  recent: Point[];
  /** Since when it is counted, epoch ms. */
  counted_since: number;
}

export type QueueReading = QueueStats & QueueActivity;

/** All numbers of a queue, and what time will do to them. */
export type WatchedReading = QueueReading & { upcoming: Upcoming[] };
