/** Durable steps of a job, and the signals that it waits for. */
import type { JobStep } from '../job/wire';
import type { AttemptName, Time } from './common';
import type { JobAnswer } from './jobs';
import { get, JOB_DATA, JOB_REPORTS, post, put } from './route';

/** What is on record of a job, by the names that its handler gave. */
export interface JobSteps {
  job_id: string;
  steps: Record<string, JobStep>;
}

/** What to record under a name: one of the members beside the attempt. */
export interface StepReport extends AttemptName {
  /** What the step returned. */
  result?: unknown;
  /** What it threw, where it may not run again. */
  error?: unknown;
  /** It sleeps, or waits for a signal, until then: epoch ms. */
  until?: number;
  /** Beside `until`: a step was tried this often, and is tried again then. */
  tries?: number;
  /** Why its last try failed. */
  failed?: unknown;
  /** The signal has not come in time. */
  timed_out?: true;
  /** The step begins now. Send it before the effect of a step that can be undone. */
  begun?: true;
  /** Beside the others: the step must be undone if the job ends otherwise than completed. */
  undo?: true;
}

/** That it is recorded; where it was before, with what is on record. */
export interface StepRecorded extends JobStep {
  job_id: string;
  name: string;
  recorded: true;
}

/** The job, and the signal that was recorded. */
export interface SignalAnswer extends JobAnswer {
  signal: { name: string; at: Time };
}

/** Below `/ojs/v1`. */
export const steps = {
  /** Shows the recorded steps, sleeps and signals. */
  list: get<{ 200: JobSteps; errors: 404 }>('/jobs/:id/steps', { bound: 'job' }),
  /** Shows one of them, with its result however large it is. */
  show: get<{ 200: { job_id: string; name: string } & JobStep; errors: 404 }>('/jobs/:id/steps/:name', {
    bound: 'job',
  }),
  /** Records a step, a sleep, or the timeout of a signal. */
  record: put<{ body: StepReport; 200: StepRecorded; errors: 404 | 409 }>('/jobs/:id/steps/:name', JOB_REPORTS),
  /** Sends a signal to a job. */
  signal: post<{ body: { payload?: unknown }; 200: SignalAnswer; errors: 404 | 409 }>('/jobs/:id/signals/:name', {
    ...JOB_DATA,
    token: 'signals',
  }),
};
