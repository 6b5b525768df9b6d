/** Outcomes of jobs: results, progress, checkpoints. Times are RFC 3339. */

import type * as contract from '../contract/checkpoints';
import type * as history from '../contract/history';
import type * as progress from '../contract/progress';
import type { JobState } from '../job/states';
import type * as wire from '../job/wire';
import type { EnvelopeError } from '../producer/envelope';
import { jsonOf } from '../producer/job';
import type { Named } from '../producer/names';
import { malformed, shaped } from './answers';
import type { Send } from './transport';

/** The outcome of a job that has ended. */
export type JobOutcome<Result = unknown> =
  | { jobId: string; state: 'completed'; result: Result; completedAt: string; error?: never }
  | {
      jobId: string;
      state: 'discarded' | 'cancelled';
      result: null;
      completedAt: string | null;
      /** The last one; absent when it never failed. */
      error?: EnvelopeError;
    };

/** The outcome of a job so far. */
export type JobResult<Result = unknown> =
  | JobOutcome<Result>
  | {
      jobId: string;
      state: Exclude<JobState, JobOutcome['state']>;
      result: null;
      completedAt: null;
      error?: never;
    };

export interface JobOutcomes<Result = unknown> {
  /** By id. */
  results: Record<string, JobResult<Result>>;
  /** Unknown ids, or ids whose retention has passed. */
  missing: string[];
}

export interface JobProgress extends Named<progress.JobProgress> {}

/** The checkpoint of a job for its next attempt. */
export interface Checkpoint<State = unknown> extends Omit<Named<contract.Checkpoint>, 'state'> {
  state: State;
}

/** What is on record under the name of a step, a sleep or a signal: one of its members. Times in epoch ms. */
export interface JobStep extends Named<wire.JobStep> {}

export interface JobLogLine extends Named<wire.JobLogLine> {}

export interface JobHistoryEvent extends Named<history.JobHistoryEvent> {}

export interface FailedAttempt extends Named<history.FailedAttempt> {}

/** The failed attempts of a job, oldest first, and the policy by which it is retried. */
export interface JobRetries extends Named<history.JobRetries> {}

/** The steps in an answer; their results are the handler's own. */
export function stepsIn(steps: Record<string, wire.JobStep>): Record<string, JobStep> {
  return Object.fromEntries(
    Object.entries(steps).map(([name, { timed_out, result_bytes: resultBytes, ...rest }]) => [
      name,
      { ...rest, ...(timed_out && { timedOut: true }), ...(resultBytes !== undefined && { resultBytes }) },
    ]),
  );
}

/** Ids in one request. */
const MAX_IDS = 1000;

export function isEnd<Result>(result: JobResult<Result>): result is JobOutcome<Result> {
  return result.state === 'completed' || result.state === 'discarded' || result.state === 'cancelled';
}

/** Asks for many results, and again for those that did not fit in an answer. */
export async function outcomesOf<Result>(send: Send, ids: readonly string[]): Promise<JobOutcomes<Result>> {
  const outcomes: JobOutcomes<Result> = { results: {}, missing: [] };
  let left = [...new Set(ids)];
  while (left.length > 0) {
    const asked = left.slice(0, MAX_IDS);
    type Answer = JobOutcomes<Result> & { omitted: string[] };
    const body = jsonOf({ ids: asked }, 'The list');
    const answer = shaped<Answer>(await send('POST', '/jobs/results', body), 'results', 'the results');
    Object.assign(outcomes.results, answer.results);
    outcomes.missing.push(...answer.missing);
    if (answer.omitted.length >= asked.length) throw malformed('any of the results');
    left = [...answer.omitted, ...left.slice(MAX_IDS)];
  }
  return outcomes;
}
