/** The answers of a workflow object over RPC: refusals are data, and a write is durable when answered. */

import type { Outcome } from '../job/errors';
import type { EventError, EventType, LoggedData } from '../job/event-data';
import type { NewJob } from '../job/record';
import type { NewStep, WorkflowPlan } from '../job/workflow/plan';
import type { JobEnd, NodeState } from '../job/workflow/run';

export type WorkflowState = 'running' | 'completed' | 'failed' | 'cancelled';

export interface NewWorkflow extends Pick<WorkflowHeader, 'type' | 'name'> {
  plan: WorkflowPlan;
  steps: NewStep[];
}

/** The job's last error. */
export type StepFailure = EventError;

/** The state of one node. Times in epoch ms; absent members do not apply. */
export interface StepView extends Pick<Ending, 'job_id' | 'error' | 'result'> {
  state: NodeState;
  started_at?: number;
  ended_at?: number;
}

/** The members shown wherever a workflow appears. Times in epoch ms. */
export interface WorkflowHeader {
  id: string;
  /** Absent for a graph. */
  type?: 'chain' | 'group' | 'batch';
  name?: string;
  state: WorkflowState;
  created_at: number;
  ended_at?: number;
}

export interface WorkflowView extends WorkflowHeader {
  /** Jobs that were cancelled with the workflow. */
  steps_cancelled?: number;
  plan: WorkflowPlan;
  /** One for each node of the plan. */
  steps: StepView[];
}

/** The end of a job, as its queue reports it. */
export interface Ending {
  step: number;
  /** Absent when the queue refused to take the job at all. */
  job_id?: string;
  end: JobEnd;
  /** Epoch ms. */
  at: number;
  /** JSON text. */
  result?: string;
  error?: StepFailure;
}

/** Something that happened to a workflow. */
export type WorkflowEvent = {
  [Type in EventType]: { type: Type; data: LoggedData<Type> };
}[EventType & `workflow.${string}`];

/** A workflow's answer to a report of endings. */
export interface EndingsReceipt {
  /** Jobs of that queue that are decided, but whose ids the workflow does not know yet. The queue remembers them. */
  unrecorded: number[];
  /** The resulting events, for the live feed. */
  events: WorkflowEvent[];
}

export interface WorkflowApi {
  /** Stores and starts a workflow. 409 when the id is taken. */
  create(workflow: NewWorkflow): Promise<Outcome<WorkflowView>>;
  /** @param withResults the steps with what their jobs returned, as far as one answer holds it */
  get(withResults?: boolean): Promise<Outcome<WorkflowView>>;
  /** Cancels it and its jobs; 409 when it has ended. */
  cancel(): Promise<Outcome<WorkflowView>>;
  /** Jobs have ended. A repeated call changes nothing. */
  stepsEnded(queue: string, endings: Ending[]): Promise<EndingsReceipt>;
  /** Empties the object. Only reachable with `TEST_HOOKS`. */
  reset(): Promise<void>;
}

/** Jobs on their way from a workflow into a queue. */
export interface StepStart {
  workflow: string;
  steps: { step: number; job: NewJob }[];
  /** The workflow is cancelled: a job that does not exist yet is cancelled as soon as it does. */
  cancelled: boolean;
  /** These are the first jobs of it. */
  first: boolean;
  /** The queue may take some of them and leave the others for later. Workflows of the version before do not say so. */
  divisible?: true;
  /** Other jobs of the workflow are there, whose places these must not take. */
  follow?: boolean;
}

/** An entry of the list of workflows. */
export interface WorkflowSummary extends WorkflowHeader {
  /** Steps of the outermost level, and jobs of all levels without callbacks. */
  steps: number;
  jobs: number;
  /** As of the last change of state. */
  completed: number;
  failed: number;
}
