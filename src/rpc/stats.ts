/** How many jobs a queue has in each state, and how full it is. */
import type { StorageUse } from '../contract/queues';
import type { JobState } from '../job/states';

export type StateCounts = Record<JobState, number>;

export interface QueueStats {
  queue: string;
  exists: boolean;
  paused: boolean;
  /** Gives out the jobs it has and takes none. */
  draining?: boolean;
  counts: StateCounts;
  /** Dead letters, part of `discarded`. */
  dead: number;
  created_at?: number;
  /** Absent: the queue does not exist. */
  storage?: StorageUse;
  computed_at: number;
}
