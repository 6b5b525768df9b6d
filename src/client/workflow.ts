/** Workflows as a producer writes them, their JSON, and what the server says of them. */
import { type EnqueueOptions, invalid, type NewJob, wireJob } from './job';

/** A part of a workflow: a job, or a workflow inside. */
export type Step<Job extends NewJob = NewJob> = Job | Workflow<Job>;

/** A workflow of any form. */
export type Workflow<Job extends NewJob = NewJob> = Chain<Job> | Group<Job> | Batch<Job> | Graph<Job>;

/** One after the other; each step gets the results of all before it. */
export interface Chain<Job extends NewJob = NewJob> {
  form: 'chain';
  steps: readonly Step<Job>[];
}

/** All at once. */
export interface Group<Job extends NewJob = NewJob> {
  form: 'group';
  jobs: readonly Step<Job>[];
}

/** Jobs that follow the end of a batch; at least one. */
export interface Callbacks<Job extends NewJob = NewJob> {
  /** In any case. */
  onComplete?: Job;
  /** When no job failed. */
  onSuccess?: Job;
  /** When a job failed. */
  onFailure?: Job;
}

/** All at once, and callbacks when all have ended; these get the results of all, null for a job that failed. */
export interface Batch<Job extends NewJob = NewJob> {
  form: 'batch';
  jobs: readonly Step<Job>[];
  callbacks: Callbacks<Job>;
}

/** Steps by name; each starts when those it comes after have completed. */
export interface Graph<Job extends NewJob = NewJob> {
  form: 'graph';
  steps: Readonly<Record<string, GraphStep<Job>>>;
}

export interface GraphStep<Job extends NewJob = NewJob> {
  step: Step<Job>;
  /** Names of other steps. */
  after?: readonly string[];
}

/** What may be said about a workflow as a whole. */
export interface WorkflowOptions {
  /** For people: shown and listed. */
  name?: string;
  /** Your own UUIDv7. Default: one that is made here, so that a start without an answer is repeated safely. */
  id?: string;
  /** Options of jobs that do not say their own. */
  jobOptions?: Omit<EnqueueOptions, 'id' | 'unique' | 'meta' | 'schema' | 'version'>;
}

export type WorkflowState = 'running' | 'completed' | 'failed' | 'cancelled';

/** A step as the server shows it. */
export interface WorkflowStep {
  /** Its name in a graph, else its place. */
  id: string;
  /** The job's type, or the form of a workflow inside. */
  type: string;
  state: 'waiting' | 'pending' | 'running' | 'completed' | 'failed' | 'cancelled' | 'skipped';
  /** Null until the job exists, and for a workflow inside. */
  job_id: string | null;
  /** Of the job, or of all jobs inside. */
  job_ids: string[];
  depends_on?: string[];
  /** RFC 3339. */
  started_at?: string;
  completed_at?: string;
  error?: { code: string; type: string; message: string };
  steps?: WorkflowStep[];
  callbacks?: Record<string, WorkflowStep>;
}

/** A workflow as the server shows it. Times are RFC 3339. */
export interface WorkflowStatus {
  id: string;
  /** Absent for a graph. */
  type?: 'chain' | 'group' | 'batch';
  name?: string;
  state: WorkflowState;
  created_at: string;
  completed_at?: string;
  cancelled_at?: string;
  steps_total: number;
  steps_completed: number;
  steps_failed: number;
  steps_cancelled?: number;
  steps: WorkflowStep[];
  callbacks?: Record<string, WorkflowStep>;
  metadata: { created_at: string; job_count: number; completed_count: number; failed_count: number };
}

/** Functions that make workflows of the jobs of one job map. */
export interface Flow<Job extends NewJob = NewJob> {
  /** @example chain({ type: 'order.check', args: [id] }, { type: 'order.ship', args: [id] }) */
  chain(...steps: Step<Job>[]): Chain<Job>;
  group(...jobs: Step<Job>[]): Group<Job>;
  /** @example batch(mails, { onComplete: { type: 'campaign.report', args: [] } }) */
  batch(jobs: readonly Step<Job>[], callbacks: Callbacks<Job>): Batch<Job>;
  /** @example graph({ a: { step: fetch }, b: { step: parse, after: ['a'] } }) */
  graph(steps: Readonly<Record<string, GraphStep<Job>>>): Graph<Job>;
}

/** The one implementation of {@link Flow}; which jobs it takes is a matter of types. */
export const flow: Flow = {
  chain: (...steps) => ({ form: 'chain', steps }),
  group: (...jobs) => ({ form: 'group', jobs }),
  batch: (jobs, callbacks) => ({ form: 'batch', jobs, callbacks }),
  graph: (steps) => ({ form: 'graph', steps }),
};

/**
 * Writes a workflow as the server reads it.
 * @throws {InvalidJobError} when options of a job contradict each other, or it names an id
 */
export function wireWorkflow(workflow: Workflow, id: string, options: WorkflowOptions): Record<string, unknown> {
  const defaults = options.jobOptions && (wireJob('', [], options.jobOptions).options as Record<string, unknown>);
  return { id, name: options.name, options: defaults, ...wireForm(workflow) };
}

function wireForm(workflow: Workflow): Record<string, unknown> {
  switch (workflow.form) {
    case 'chain':
      return { type: 'chain', steps: workflow.steps.map(wireStep) };
    case 'group':
      return { type: 'group', jobs: workflow.jobs.map(wireStep) };
    case 'batch': {
      const { onComplete, onSuccess, onFailure } = workflow.callbacks;
      const callbacks = {
        on_complete: onComplete && wireStep(onComplete),
        on_success: onSuccess && wireStep(onSuccess),
        on_failure: onFailure && wireStep(onFailure),
      };
      return { type: 'batch', jobs: workflow.jobs.map(wireStep), callbacks };
    }
    case 'graph': {
      const steps = Object.entries(workflow.steps);
      return { steps: steps.map(([id, { step, after }]) => ({ id, depends_on: after ?? [], ...wireStep(step) })) };
    }
  }
}

function wireStep(step: Step): Record<string, unknown> {
  if ('form' in step) return wireForm(step);
  if (step.options?.id !== undefined) throw invalid('The ids of jobs in a workflow are chosen by the server.', 'id');
  return wireJob(step.type, step.args, step.options ?? {});
}
