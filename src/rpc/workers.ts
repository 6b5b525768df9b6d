/** The part of a queue object's RPC interface that workers use: taking jobs, reporting about them, keeping them. */

import type { Progress } from '../job/attempt/notes';
import type { AttemptName, Report } from '../job/attempt/outcome';
import type { Reported } from '../job/attempt/render-reported';
import type { Outcome } from '../job/errors';
import type { LogLine } from '../job/log';
import type { JobRecord, JobView } from '../job/record';
import type { JobState } from '../job/states';
import type { StepPart } from '../job/steps';
import type { StreamPlace, StreamSaid } from '../job/streams';
import type { Heartbeat, HeartbeatAnswer } from '../job/worker/heartbeat';
import type { Connection } from '../job/worker/socket';

export type { AttemptName, Report, Reported };

/** A claim by a worker that pulls. Each chunk counts as one job. */
export interface ClaimRequest extends Partial<Omit<Connection, 'creator' | 'key'>> {
  /** 1 … 100. */
  count: number;
  /** Wait up to this long for work, 0 … 20000 ms. */
  wait_ms?: number;
  /** Names this claim, for the verb `withdraw`. */
  waiter?: string;
}

export interface StepRequest extends AttemptName {
  /** 1 … 128 characters. */
  name: string;
  /** JSON text of a `StepRecord`. */
  record: string;
}

export interface StepReceipt {
  /** JSON text of what was on record before, and stays so. */
  earlier?: string;
}

export interface StreamRequest extends AttemptName, StreamSaid {}

/** Everything before this chunk is written. */
export interface StreamReceipt extends Pick<StreamPlace, 'run'> {
  next: number;
}

/** A stream of a job, as far as it is written or shown. */
export interface StreamView extends Pick<StreamSaid, 'name' | 'step'>, StreamReceipt {
  bytes: number;
}

export type StreamState = 'open' | 'completed' | 'failed' | 'cancelled';

export interface StreamPage {
  state: StreamState;
  /** Absent: it has not begun. */
  run?: number;
  /** The number of the first chunk. */
  first: number;
  /** JSON texts. */
  chunks: string[];
  /** Is this all there is? */
  isWhole: boolean;
}

export interface SignalRequest {
  job_id: string;
  name: string;
  /** JSON text. */
  payload: string;
}

/** An operator's answer for a step. */
export interface StepAnswer extends Omit<SignalRequest, 'payload'> {
  /** JSON text. */
  result: string;
}

export interface SignalReceipt {
  job: JobView;
  /** When the first signal of that name came, epoch ms. */
  at: number;
  /** That was before this one. */
  earlier?: true;
}

export interface LogRequest extends AttemptName {
  lines: LogLine[];
}

export interface HeartbeatRequest extends Omit<Heartbeat, 'beat' | 'queues'> {
  /** Look for test directives on the jobs that are held. */
  directives?: boolean;
}

export interface ProgressRequest extends AttemptName, Progress {
  /** JSON text of a `CheckpointContent` to save with it, all or nothing. */
  checkpoint?: string;
}

/** The last report about a job; members that were not reported are absent. */
export interface ProgressReport extends Partial<Progress> {
  job_id: string;
  state: JobState;
  /** Epoch ms. */
  at?: number;
  /** The checkpoint that this report saved. */
  checkpoint?: { sequence: number; created_at: number };
}

export interface CheckpointRequest extends AttemptName {
  /** JSON text of a `CheckpointContent`, at most 1 MiB. */
  content: string;
}

export interface StoredCheckpoint {
  /** Counts the saves since the job had none, from 1. */
  sequence: number;
  /** Epoch ms. */
  created_at: number;
  /** JSON text of a {@link CheckpointContent}. */
  content: string;
  /** Large values of the steps in it. */
  parts?: StepPart[];
}

export interface HeartbeatReceipt extends Omit<HeartbeatAnswer, 'state'> {
  /** A test directive found on a held job. */
  directive?: string;
}

/** A job that a worker holds. Times in epoch ms. */
export interface LeasedJob extends Pick<JobRecord, 'id' | 'type' | 'queue' | 'attempt'> {
  started_at: number;
  lease_expires_at: number;
}

/** What became of reports, and of the claim that followed them. */
export interface ReportedAndClaimed {
  /** An outcome for each, in order. */
  told: Outcome<Reported>[];
  claimed: Outcome<JobView[]>;
}
