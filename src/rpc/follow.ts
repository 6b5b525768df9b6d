/** Following the live feeds of objects: what their messages tell. */
import type { JobRecord } from '../job/record';

/** What the first message tells of a job that is followed. */
export interface FollowedJob extends Pick<JobRecord, 'id' | 'type' | 'state' | 'attempt'> {
  /** Epoch ms; absent: it has not ended. */
  ended_at?: number;
}

/** The directory tells its followers by this notice that a queue is coming into being. */
export const QUEUE_CREATED = 'queue.created';
