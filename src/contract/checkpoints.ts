/** Checkpoints: a handler's own state, kept between the attempts of its job. */
import type { AttemptName, Time } from './common';
import { del, get, JOB_DATA, JOB_REPORTS, post, put } from './route';

/** A checkpoint that is saved. */
export interface Checkpoint {
  /** What the handler saved. */
  state?: unknown;
  /** Counts the checkpoints of the job. */
  sequence: number;
  created_at: Time;
  /** Where the handler stands, in its own count. */
  step_index?: number;
  metadata?: Record<string, unknown>;
}

/** What to save, with the attempt that saves it. */
export interface CheckpointReport extends AttemptName {
  /** Up to 1 MiB with the metadata. */
  state?: unknown;
  step_index?: number;
  metadata?: Record<string, unknown>;
}

export interface CheckpointSaved {
  job_id: string;
  sequence: number;
  created_at: Time;
  checkpoint: Checkpoint;
}

/** The checkpoint, flat and as a member. */
export interface CheckpointAnswer extends Checkpoint {
  job_id: string;
  checkpoint: Checkpoint;
}

export interface CheckpointDeleted {
  deleted: true;
  job_id: string;
}

export interface CheckpointResume {
  has_checkpoint: boolean;
  checkpoint?: Checkpoint;
}

type Saving = { body: CheckpointReport; 200: CheckpointSaved; errors: 404 | 409 | 413 };

/** The routes of the SDKs, below `/ojs/v1`, and below that prefix twice. */
export const sdkCheckpoints = {
  /** Saves a checkpoint. */
  save: post<Saving>('/checkpoints/:id', JOB_REPORTS),
  /** Shows the checkpoint of a job. */
  show: get<{ 200: CheckpointAnswer; errors: 404 }>('/checkpoints/:id', { bound: 'job' }),
  /** Removes the checkpoint of a job. */
  remove: del<{ body: AttemptName; 200: CheckpointDeleted; errors: 404 | 409 }>('/checkpoints/:id', JOB_DATA),
  /** Shows whether a job has a checkpoint, and its contents. */
  resume: get<{ 200: CheckpointResume; errors: 404 }>('/checkpoints/:id/resume', { bound: 'job' }),
};

/** Below `/ojs/v1`. */
export const checkpoints = {
  /** Saves a checkpoint. */
  save: put<Saving>('/jobs/:id/checkpoint', JOB_REPORTS),
  /** Saves a checkpoint, like PUT. */
  post: post<Saving>('/jobs/:id/checkpoint', JOB_REPORTS),
  /** Shows the checkpoint of a job. */
  show: get<{ 200: CheckpointAnswer; errors: 404 }>('/jobs/:id/checkpoint', { bound: 'job' }),
  /** Removes the checkpoint of a job. */
  remove: del<{ body: AttemptName; 200: CheckpointDeleted; errors: 404 | 409 }>('/jobs/:id/checkpoint', JOB_DATA),
};
