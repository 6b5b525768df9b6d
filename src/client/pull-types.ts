import type * as progress from '../contract/progress';
import type * as contract from '../contract/pull';
import type * as steps from '../contract/steps';
import type { Named } from '../producer/names';
import type { JobProgress } from './jobs';

type Heartbeat = Named<
  Pick<contract.HeartbeatRequest, 'visibility_timeout_ms' | 'hostname' | 'pid' | 'concurrency' | 'version' | 'labels'>
>;
type Described = { [Name in keyof Heartbeat]?: Heartbeat[Name] | undefined };

export type HeartbeatAnswer = Omit<Named<contract.HeartbeatAnswer>, 'acknowledged'>;

/** How a worker describes itself. */
export interface WorkerOptions extends Omit<Described, 'visibilityTimeoutMs' | 'labels'> {
  /** Jobs are taken from these, the first ones first. */
  queues: readonly string[];
  /** Lease length, in ms. Default: the job's, else the queue's, else 60000 for `run`, and 30 minutes for others. */
  visibilityTimeoutMs?: Described['visibilityTimeoutMs'] | undefined;
  labels?: Readonly<NonNullable<Described['labels']>> | undefined;
}

type Progress = Named<progress.ProgressReport>;

export interface ProgressReport extends Pick<Progress, 'message' | 'data'> {
  /** 0 … 1. */
  progress: NonNullable<Progress['progress']>;
  /** Saved together with the progress, both or neither. */
  checkpoint?: unknown;
}

export type ProgressAnswer = JobProgress;

/** The answer to a step: what is on record of it, when that was there before. */
export type RecordedStep = Pick<
  Named<steps.StepRecorded>,
  'result' | 'error' | 'signal' | 'timedOut' | 'until' | 'run'
>;

type Handler = Named<contract.HandlerSettings>;

/** Retry settings of the handler of a type, or of all others (`*`); the job's own settings override them. */
export interface HandlerSettings extends Pick<Handler, 'type'> {
  retry?: NonNullable<Handler['retry']> | undefined;
  maxAttempts?: NonNullable<Handler['maxAttempts']> | undefined;
  /** It takes many jobs in one call: those that are fetched for one have the same `chunk`, and count as one. */
  batch?: NonNullable<Handler['batch']> | undefined;
}

export interface Wanted {
  /** Only jobs of these types, at most 1000. Default: of any. */
  types?: readonly string[] | undefined;
  /** Settings of its handlers. Default: unchanged. */
  handlers?: readonly HandlerSettings[] | undefined;
}
