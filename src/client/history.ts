import type * as contract from '../contract/history';
import type { Named } from '../producer/names';

export interface JobHistoryEvent extends Named<contract.JobHistoryEvent> {}

export interface FailedAttempt extends Named<contract.FailedAttempt> {}

/** The failed attempts of a job, oldest first, and the policy by which it is retried. */
export interface JobRetries extends Named<contract.JobRetries> {}
