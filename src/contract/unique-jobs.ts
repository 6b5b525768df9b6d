/** Unique jobs that keep others away. */
import type { JobState } from '../job/states';
import type { CursorQuery, Extent, Page, Time } from './common';
import { get } from './route';

/** A unique job that keeps others away. */
export interface HeldUnique {
  /** The fingerprint that its policy makes of it. */
  key: string;
  job_id: string;
  type: string;
  queue: string;
  state: JobState;
  /** Null where no period ends it: then it lasts as long as the state of the job counts. */
  locked_until: Time | null;
  created_at: Time;
}

interface QueuesQuery {
  /** Only of these queues, separated by commas; also `queue`. */
  queues?: string;
  queue?: string;
}

/** Below `/ojs/v1`. */
export const uniqueJobs = {
  /** Lists the unique jobs that block others. */
  list: get<{ query: CursorQuery & QueuesQuery; 200: Page<HeldUnique> & Extent }>('/unique-jobs'),
};
