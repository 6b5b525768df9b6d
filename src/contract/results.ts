/** What became of jobs. */
import type { JobState } from '../job/states';
import type { EnvelopeError } from '../job/wire';
import type { Time } from './common';
import { DATA, get, post } from './route';

/** The outcome of a job so far. */
export interface JobResult {
  job_id: string;
  state: JobState;
  /** What its handler returned; null: nothing, or the job is not completed. */
  result: unknown;
  /** The last error of a job that has ended without success; absent: it never failed. */
  error?: EnvelopeError;
  completed_at: Time | null;
}

/** The outcomes of many jobs. */
export interface JobResults {
  /** By id. */
  results: Record<string, JobResult>;
  /** Unknown ids, or ids whose retention has passed. */
  missing: string[];
  /** Ids for which the answer had no room, or whose queue did not answer: ask for them again. */
  omitted: string[];
}

/** Which jobs are asked for. */
export interface JobIds {
  /** At most 1000. */
  ids: string[];
}

interface WaitQuery {
  /** Answers when the job ends. Default false. */
  wait?: boolean;
  /** How long to wait at most, in seconds: 0 to 60. Default 30. */
  timeout?: number;
}

/** Below `/ojs/v1`. */
export const results = {
  /** Returns the result of a job; waits for its end if requested. */
  one: get<{ query: WaitQuery; 200: JobResult; errors: 404 | 408 | 410 }>('/jobs/:id/result', {
    token: 'read',
    bound: 'job',
  }),
  /** Returns the results of up to 1000 jobs. */
  many: post<{ body: JobIds; 200: JobResults }>('/jobs/results', { ...DATA, bound: 'list' }),
};
