/** How many jobs a queue has in each state, and how full it is. */
import type { JobState } from '../job/states';

export type StateCounts = Record<JobState, number>;

/** How full the object of a queue is, in bytes. `full`: it accepts no jobs. `pruning`: ended jobs are removed early. */
export interface StorageUse {
  bytes: number;
  max_bytes: number;
  state: 'ok' | 'pruning' | 'full';
}

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
