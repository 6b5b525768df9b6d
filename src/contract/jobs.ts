/** Jobs one by one, and lists of them. */
import type { OptionName, OptionsThat } from '../job/options';
import type { Receipt } from '../job/record';
import type { JobState } from '../job/states';
import type { EnvelopeError, JobEnvelope, JobLogLine, JobOptions, JobStep, RetryPolicy } from '../job/wire';
import type { Checkpoint } from './checkpoints';
import type { CursorQuery, Extent, Pagination, Time, Warned } from './common';
import { del, ENQUEUE, get, JOB_DATA, onJob, patch, post, put } from './route';

/**
 * What is answered about one job: under `job`, and its members once more beside it for clients that read a flat answer.
 */
export interface JobAnswer extends Partial<JobEnvelope> {
  job: JobEnvelope;
}

/** What a producer that asks for `return=minimal` is answered about a new job. */
export interface JobReceipt extends Receipt {
  created_at: Time;
  /** The entry has become a part of this job, which has its arguments now. */
  accumulated?: true;
}

/** A job that was started again. */
export interface RetriedJobAnswer extends JobAnswer, Warned {}

/** A new job: whole, or as a receipt. */
export type Enqueued = (JobAnswer | JobReceipt) & Warned;

/** An existing job that a unique policy found. */
export interface Deduplicated extends JobAnswer, Warned {
  deduplicated: true;
}

/** The job that a newcomer has become a part of, as a receipt: under `job`, and its members once more beside it. */
export interface Accumulated extends JobReceipt, Warned {
  job: JobReceipt;
  accumulated: true;
}

/** Jobs that were enqueued together, in their order. */
export interface BatchAnswer extends Warned {
  jobs: (JobEnvelope | JobReceipt)[];
  /** Jobs in all. */
  count: number;
  /** New ones. */
  enqueued: number;
  /** Those that a unique policy has found; absent: none. */
  deduplicated?: number;
  /** Those that have become a part of a job that waits, or of an earlier one; absent: none. */
  accumulated?: number;
  failed: 0;
}

/** A page of jobs, newest first. */
export interface JobList extends Extent {
  jobs: JobEnvelope[];
  total: number;
  pagination: Pagination;
}

/** All of a job but what it carries, and its history. */
export interface JobSummary extends Omit<JobEnvelope, 'args' | 'meta' | 'result' | 'errors' | 'retry_effective'> {
  /** Their beginning, on request. */
  args?: unknown[];
}

/** A page of jobs for operators. */
export interface JobItems extends Extent {
  items: JobSummary[];
  total: number;
  pagination: Pagination;
  /** How many jobs are in each state, for the filter without its states. */
  counts?: { [State in JobState]?: number };
  /** Present where the counts are lower bounds. */
  counts_exact?: false;
}

/**
 * Conditions that must all hold. Lists may have commas, or their names be repeated. A path such as `args.0.to` is a
 * condition on what the job carries.
 */
export interface JobQuery {
  /** At most 1000; also `ids`, `job_ids`. */
  id?: string;
  ids?: string;
  job_ids?: string;
  /** A list. */
  state?: string;
  /** A list. */
  queue?: string;
  /** A list; `*` stands for anything. */
  type?: string;
  /** A list: the jobs have all of them; also `tags`. */
  tag?: string;
  tags?: string;
  /** The job's group, exactly: what it names, else the key of its limits. */
  group?: string;
  priority?: number;
  priority_min?: number;
  priority_max?: number;
  /** Attempts begun; also `attempts`. */
  attempt?: number;
  attempt_min?: number;
  attempt_max?: number;
  attempts?: number;
  attempts_min?: number;
  attempts_max?: number;
  /** By when they were created: a time, or a duration. Inclusive; also `since` and `until`. */
  created_after?: string;
  created_before?: string;
  /** By when they were enqueued: a time, or a duration. Inclusive. */
  enqueued_after?: string;
  enqueued_before?: string;
  /** By when they are due: a time, or a duration. Inclusive. */
  scheduled_after?: string;
  scheduled_before?: string;
  /** By when they ended: a time, or a duration. Inclusive. */
  ended_after?: string;
  ended_before?: string;
  since?: string;
  until?: string;
  /** Created, or ended, longer ago than this duration. */
  older_than?: string;
  /** Type of the last error. */
  error_type?: string;
  /** Words of the last error. */
  error?: string;
  /** A group of failures. */
  fingerprint?: string;
  /** Words that the job has, or its id. */
  q?: string;
  dead_letter?: boolean;
  /** The job whose handler enqueued it. */
  parent?: string;
}

/** A failed attempt, with its stack in lines. */
export interface InspectedError extends EnvelopeError {
  backtrace?: string[];
}

/** One attempt, as far as the record goes back. */
export interface JobAttempt {
  attempt: number;
  state: 'failed' | 'active' | 'completed';
  started_at?: Time;
  ended_at?: Time;
  duration_ms?: number;
  /** How long the job waited before it. */
  delay_ms?: number;
  worker_id?: string;
  target?: string;
  error?: EnvelopeError;
}

/** One thing that happened, with members of its own. */
export interface TimelineEntry {
  at: Time;
  kind: string;
  [member: string]: unknown;
}

/** A job beside another; only its id where it is gone. */
export interface JobRelative {
  id: string;
  type?: string;
  queue?: string;
  state?: JobState;
  created_at?: Time;
}

/** The whole story of a job. */
export interface JobStory {
  /** Oldest first. */
  attempts: JobAttempt[];
  /** Oldest first. */
  timeline: TimelineEntry[];
  /** The newest lines that its attempts have logged. */
  log: JobLogLine[];
  /** What is on record, by the names that the handler gave. */
  steps: Record<string, JobStep>;
  /** Names on record that a run did not reach: its code has changed, or it makes other names each time. */
  drift?: string[];
  /** Null: there is none. */
  checkpoint: Checkpoint | null;
  progress_message?: string;
  progress_at?: Time;
  /** The job whose handler enqueued this one. */
  parent?: JobRelative;
  /** The workflow that it belongs to, and its place there. */
  workflow?: { id: string; step: number };
  /** The schedule that enqueued it. */
  cron_name?: string;
  /** The first jobs that its handler enqueued, as far as they are found among the newest jobs. */
  children: { items: JobRelative[] } & Pick<Extent, 'searched' | 'more' | 'cursor'>;
}

/** A job as operators see it: with what explains it. */
export interface InspectedJob
  extends Omit<JobEnvelope, 'errors' | 'checkpoint'>,
    Partial<Omit<JobStory, 'checkpoint'>> {
  /** With its time in the whole story; there null: there is none. */
  checkpoint?: JobEnvelope['checkpoint'] | JobStory['checkpoint'];
  errors: InspectedError[];
  /** The policy in force. */
  retry_policy?: RetryPolicy;
  /** Its moments. */
  metadata: Record<string, unknown>;
  /** Names the kind of its last failure. */
  fingerprint?: string;
}

/** Members to change; null returns one to its default. */
export type JobChange = { [Name in OptionsThat<'patch'>]?: JobOptions[Name] | null } & {
  /** These members may stand here, too. */
  options?: Record<string, unknown>;
};

/** What is another in the job that runs again. */
export type RetriedJob = JobChange & {
  /** The name of a recorded step: it, and all that began after it, are forgotten and done again. */
  from?: string;
  args?: unknown[];
  meta?: Record<string, unknown>;
};

type GivenOptions<Name extends OptionName> = { [N in Name]?: JobOptions[N] | null };

/** The options of a job; null leaves one out. */
export type JobOptionsGiven = GivenOptions<Exclude<OptionName, OptionsThat<'beside'>>>;

/** What is another in the clone. */
export interface ClonedJob {
  /** The name of a recorded step: the clone begins with what was recorded before it, and without the checkpoint. */
  from?: string;
  args?: unknown[];
  meta?: Record<string, unknown>;
  queue?: string;
  /** They replace those of the job. */
  options?: JobOptionsGiven;
  idempotency_key?: string;
}

/** A job to enqueue; options may also stand at the top. Members that are not known are kept with it. */
export interface NewJob extends GivenOptions<OptionName> {
  type: string;
  args: unknown[];
  /** Your own UUIDv7: the job is made at most once. */
  id?: string | null;
  /** Of the protocol: `1.0`. */
  specversion?: string;
  /** Names the request, as the header `Idempotency-Key` does. */
  idempotency_key?: string;
  options?: JobOptionsGiven;
  [member: string]: unknown;
}

/** Below `/ojs/v1`. */
export const jobs = {
  /** Enqueues a job, or returns the job that a unique policy found or extended. */
  enqueue: post<{
    body: NewJob;
    201: Enqueued | BatchAnswer;
    200: Deduplicated | Accumulated;
    errors: 409 | 422 | 429;
  }>('/jobs', { ...ENQUEUE, token: 'enqueue' }),
  /** Enqueues all jobs or none, also in several queues. */
  enqueueBatch: post<{ body: { jobs: NewJob[]; idempotency_key?: string }; 201: BatchAnswer; errors: 409 | 422 | 429 }>(
    '/jobs/batch',
    ENQUEUE,
  ),
  /** Lists jobs, newest first. */
  list: get<{ query: CursorQuery & JobQuery; 200: JobList }>('/jobs', { bound: 'list' }),
  /** Counts jobs. */
  count: get<{ query: JobQuery; 200: { count: number } }>('/jobs/count', { bound: 'list' }),
  /** Shows a job, and why it waits. */
  show: get<{ 200: JobAnswer; errors: 404 }>('/jobs/:id', { token: 'read', bound: 'job' }),
  /** Changes a waiting job. */
  change: patch<{ body: JobChange; 200: JobAnswer; errors: 404 | 409 | 422 }>('/jobs/:id', JOB_DATA),
  /** Cancels a job that has not ended. */
  cancel: del<{ 200: JobAnswer; errors: 404 | 409 }>('/jobs/:id', JOB_DATA),
  /** Cancels a job, like DELETE. */
  cancelByPost: post<{ 200: JobAnswer; errors: 404 | 409 }>('/jobs/:id/cancel', JOB_DATA),
  /** Makes a pending job available. */
  activate: post<{ 200: JobAnswer; errors: 404 | 409 }>('/jobs/:id/activate', JOB_DATA),
};

/** Below `/ojs/v1/admin`. */
export const inspectedJobs = {
  /** Shows a job with its policy, errors and reason; with `timeline` its whole story. */
  show: get<{ query: { timeline?: boolean }; 200: InspectedJob; errors: 404 }>('/jobs/:id', { bound: 'job' }),
  /** Changes a waiting job. */
  change: patch<{ body: JobChange; 200: JobAnswer; errors: 404 | 409 | 422 }>('/jobs/:id', {
    ...onJob('job.change'),
    judgesMembers: true,
  }),
  /** Retries a job, optionally with changes. */
  retry: post<{ body: RetriedJob; 200: RetriedJobAnswer; errors: 404 | 409 | 413 | 422 }>(
    '/jobs/:id/retry',
    onJob('job.retry'),
  ),
  /** Answers for a step without a result; a job that waits for its next try continues. */
  answerStep: put<{ body: { result: unknown }; 200: JobAnswer; errors: 404 | 409 | 413 }>(
    '/jobs/:id/steps/:name',
    onJob('job.step'),
  ),
  /** Enqueues a copy of a job. */
  clone: post<{
    body: ClonedJob;
    201: Enqueued;
    200: Deduplicated | Accumulated;
    errors: 404 | 409 | 413 | 422 | 429;
  }>('/jobs/:id/clone', { ...onJob('job.clone'), takesIdempotencyKey: true }),
  /** Makes a waiting job available now. */
  runNow: post<{ 200: JobAnswer; errors: 404 | 409 }>('/jobs/:id/activate', onJob('job.activate')),
  /** Cancels a job that has not ended. */
  cancel: post<{ 200: JobAnswer; errors: 404 | 409 }>('/jobs/:id/cancel', onJob('job.cancel')),
};

interface InspectedQuery extends CursorQuery, JobQuery {
  /** Default: `created_at`, the newest first. */
  sort?: string;
  order?: 'asc' | 'desc';
  /** Counts the jobs of each state, too. */
  counts?: boolean;
  /** Adds the beginning of each job's arguments. */
  arguments?: boolean;
}

/** Below `/ojs/v1/admin`: it stands before the operations on many. */
export const jobItems = {
  /** Lists jobs without their payload. */
  list: get<{ query: InspectedQuery; 200: JobItems }>('/jobs', { bound: 'list' }),
};
