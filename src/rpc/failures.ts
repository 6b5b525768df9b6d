/** The part of a queue object's RPC interface that groups failed jobs. Times in epoch ms. */
import type { FailureState } from '../contract/failures';
import type { Failure } from '../job/failures/fingerprint';

/** Where a dead letter lies: they are listed by the moment of their discard (epoch ms) and their key, highest first. */
export interface DeadLetterPlace {
  at: number;
  key: number;
}

export type { FailureState };

export const FAILURE_STATES = ['dead', 'discarded', 'retrying'] as const satisfies FailureState[];

/** Where a step ended: in the list of dead letters or discarded jobs, or in the line of those that wait. */
export type FailuresPlace =
  | { state: 'dead' | 'discarded'; at?: DeadLetterPlace }
  | { state: 'retrying'; before?: number };

export interface FailuresRequest {
  states: readonly FailureState[];
  /** Job types, in which `*` stands for anything. */
  types?: string[];
  /** As in a filter of jobs. */
  groups?: string[];
  /** Failed, or discarded, from then on and before. */
  since?: number;
  until?: number;
  fingerprints?: string[];
  /** Where the step before ended. */
  from?: FailuresPlace;
  /** Jobs looked at at most. */
  budget: number;
}

/** Jobs of one queue that failed in the same way. */
export interface FailureGroup extends Record<FailureState, number> {
  fingerprint: string;
  /** Of one of them, its message as it was reported. */
  failure: Failure;
  first_seen_at: number;
  last_seen_at: number;
  /** The job that failed last. */
  job_id: string;
}

export interface FailuresPart {
  groups: FailureGroup[];
  looked: number;
  /** Absent: all were looked at. */
  next?: FailuresPlace;
}
