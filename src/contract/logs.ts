/** What the attempts of a job have logged. */
import type { JobLogLine } from '../job/wire';
import type { AttemptName } from './common';
import { get, JOB_REPORTS, post } from './route';

/** The newest lines of a job. */
export interface JobLog {
  job_id: string;
  lines: JobLogLine[];
}

/** Lines to add, with the attempt that logs them. */
export interface LogReport extends AttemptName {
  /** `at` may be left out: now. */
  lines: (Omit<JobLogLine, 'at'> & { at?: number })[];
}

/** Below `/ojs/v1`. */
export const logs = {
  /** Shows the newest log lines of all attempts of a job. */
  show: get<{ 200: JobLog; errors: 404 }>('/jobs/:id/log', { bound: 'job' }),
  /** Adds lines to the log of a running job. */
  add: post<{ body: LogReport; 200: { accepted: number }; errors: 404 | 409 }>('/jobs/:id/log', JOB_REPORTS),
};
