/** What a worker that pulls can ask the queue for: all that running it needs. */
import type { ClientOptions } from './options';
import type { Wanted } from './pull-types';
import type { Held, ReportOutcome } from './report';

export type { Held };

export interface FetchOptions extends Wanted {
  /** Maximum number, 1 … 100. Default 1. */
  count?: number | undefined;
  /** How long to wait for the first, in ms, 0 … 20000, at most half of the client's timeout. Default 0. */
  waitMs?: number | undefined;
  /** Only from these of its queues. Default: from all. */
  queues?: readonly string[] | undefined;
  /** Maximum number from some of these. */
  counts?: Readonly<Record<string, number>> | undefined;
}

export interface ReleaseOptions {
  /** `false`: it was never begun, so the attempt does not count. Default true. */
  attemptUsed?: boolean | undefined;
  message?: string | undefined;
}

/** Settings of the client that a worker may have otherwise. */
export type WorkerConnection = Pick<ClientOptions, 'signal' | 'timeoutMs' | 'retry'>;

export interface Exchanged<Job> {
  jobs: Job[];
  outcomes?: ReportOutcome[];
}
