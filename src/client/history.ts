/** The history of a job, from its own record. */
import type * as contract from '../contract/history';
import type { Named } from '../producer/names';

/** One thing that happened. */
export interface JobHistoryEvent extends Named<contract.JobHistoryEvent> {}

/** An attempt that failed. */
export interface FailedAttempt extends Named<contract.FailedAttempt> {}

/** The failed attempts of a job, oldest first, and the policy by which it is retried. */
export interface JobRetries extends Named<contract.JobRetries> {}
