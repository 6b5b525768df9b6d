import { type DefaultsOf, withDefaults } from '../producer/defaults';
import { invalid, type NewJob, refuseBeside, type StepOptions, wireJob } from '../producer/job';
import { namesOf, refuseUnknown } from '../producer/known';

/** A job of a workflow: its id is chosen by the server, and it cannot be unique. */
export type StepJob = NewJob<string, readonly unknown[], StepOptions>;

/** A part of a workflow: a job, or a workflow inside. */
export type Step<Job extends StepJob = StepJob> = Job | Workflow<Job>;

export type Workflow<Job extends StepJob = StepJob> = Chain<Job> | Group<Job> | Batch<Job> | Graph<Job>;

/** One after the other; each step gets the results of all before it. */
export interface Chain<Job extends StepJob = StepJob> {
  form: 'chain';
  steps: readonly Step<Job>[];
}

export interface Group<Job extends StepJob = StepJob> {
  form: 'group';
  jobs: readonly Step<Job>[];
}

interface AnyCallbacks<Job extends StepJob> {
  /** In any case. */
  onComplete?: Job | undefined;
  /** When no job failed. */
  onSuccess?: Job | undefined;
  /** When a job failed. */
  onFailure?: Job | undefined;
}

/** Jobs that follow the end of a batch; at least one. */
export type Callbacks<Job extends StepJob = StepJob> = AnyCallbacks<Job> &
  ({ onComplete: Job } | { onSuccess: Job } | { onFailure: Job });

/** All at once, and callbacks when all have ended. Callbacks get the results of all, null for a failed job. */
export interface Batch<Job extends StepJob = StepJob> {
  form: 'batch';
  jobs: readonly Step<Job>[];
  callbacks: Callbacks<Job>;
}

/** Steps by name; each starts when the steps in its `after` have completed. */
export interface Graph<Job extends StepJob = StepJob> {
  form: 'graph';
  steps: Readonly<Record<string, GraphStep<Job>>>;
}

export interface GraphStep<Job extends StepJob = StepJob> {
  step: Step<Job>;
  /** Names of other steps. */
  after?: readonly string[] | undefined;
}

export interface WorkflowOptions {
  /** For people: shown and listed. */
  name?: string | undefined;
  /** Your own UUIDv7. Default: one chosen here, so that a start may be repeated after a lost answer. */
  id?: string | undefined;
  /** Options of jobs that do not set their own. */
  jobOptions?: (StepOptions & { meta?: never; schema?: never; version?: never }) | undefined;
}

/** Functions that make workflows of the jobs of one job map. */
export interface Flow<Job extends StepJob = StepJob> {
  /** @example chain({ type: 'order.check', args: [id] }, { type: 'order.ship', args: [id] }) */
  chain(...steps: Step<Job>[]): Chain<Job>;
  group(...jobs: Step<Job>[]): Group<Job>;
  /** @example batch(mails, { onComplete: { type: 'campaign.report', args: [] } }) */
  batch(jobs: readonly Step<Job>[], callbacks: Callbacks<Job>): Batch<Job>;
  /** @example graph({ a: { step: fetch }, b: { step: parse, after: ['a'] } }) */
  graph(steps: Readonly<Record<string, GraphStep<Job>>>): Graph<Job>;
}

/** The one implementation of {@link Flow}; the job map is a matter of types. */
export const flow: Flow = {
  chain: (...steps) => ({ form: 'chain', steps }),
  group: (...jobs) => ({ form: 'group', jobs }),
  batch: (jobs, callbacks) => ({ form: 'batch', jobs, callbacks }),
  graph: (steps) => ({ form: 'graph', steps }),
};

const CALLBACKS = namesOf<AnyCallbacks<StepJob>>({ onComplete: true, onSuccess: true, onFailure: true });
const GRAPH_STEP = namesOf<GraphStep>({ step: true, after: true });
const WORKFLOW_OPTIONS = namesOf<WorkflowOptions>({ name: true, id: true, jobOptions: true });

/** @throws {InvalidJobError} a job has an id, or contradictory options @throws {TypeError} unknown option */
export function wireWorkflow(
  workflow: Workflow,
  id: string,
  options: WorkflowOptions,
  defaultsOf?: DefaultsOf,
): Record<string, unknown> {
  refuseUnknown(options, WORKFLOW_OPTIONS, 'A workflow has no option');
  const defaults = options.jobOptions && (wireJob('', [], options.jobOptions).options as Record<string, unknown>);
  // Options of the whole workflow go before those of a type; the server lays them below those of the steps.
  const above = Object.entries(options.jobOptions ?? {}).flatMap(([name, value]) =>
    value === undefined ? [] : [name],
  );
  const except = ['unique', ...above, ...(above.includes('delayUntil') ? ['delay'] : [])];
  const fill = (step: StepJob): StepOptions => withDefaults(step.options ?? {}, defaultsOf?.(step.type), except);
  return { id, name: options.name, options: defaults, ...wireForm(workflow, fill) };
}

/** The options of a step, with those that it leaves out. */
type Fill = (step: StepJob) => StepOptions;

function wireForm(workflow: Workflow, fill: Fill): Record<string, unknown> {
  const wire = (step: Step) => wireStep(step, fill);
  switch (workflow.form) {
    case 'chain':
      return { type: 'chain', steps: workflow.steps.map(wire) };
    case 'group':
      return { type: 'group', jobs: workflow.jobs.map(wire) };
    case 'batch': {
      refuseUnknown(workflow.callbacks, CALLBACKS, 'A batch has no callback');
      const { onComplete, onSuccess, onFailure } = workflow.callbacks;
      const callbacks = {
        onComplete: onComplete && wire(onComplete),
        onSuccess: onSuccess && wire(onSuccess),
        onFailure: onFailure && wire(onFailure),
      };
      return { type: 'batch', jobs: workflow.jobs.map(wire), callbacks };
    }
    case 'graph': {
      const steps = Object.entries(workflow.steps);
      return {
        steps: steps.map(([id, whole]) => {
          refuseUnknown(whole, GRAPH_STEP, `The step ${id} has no`);
          return { id, dependsOn: whole.after ?? [], ...wire(whole.step) };
        }),
      };
    }
  }
}

function wireStep(step: Step, fill: Fill): Record<string, unknown> {
  if ('form' in step) return wireForm(step, fill);
  refuseBeside(step);
  const { type, args } = step;
  const options = fill(step);
  if ('id' in options && options.id !== undefined) {
    throw invalid('The ids of jobs in a workflow are chosen by the server.', 'id');
  }
  return wireJob(type, args, options);
}
