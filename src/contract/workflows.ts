/** Workflows: jobs that depend on each other. */
import type { JobState } from '../job/states';
import type { Also } from '../ojs/names';
import type { CursorQuery, Extent, Page, Time, Warned } from './common';
import { DATA, del, get, post } from './route';

export type WorkflowState = 'running' | 'completed' | 'failed' | 'cancelled';

/** The outermost form of a workflow. */
export type WorkflowForm = 'chain' | 'group' | 'batch' | 'graph';

/** A step. */
export interface WorkflowStep {
  /** Its name in a graph, else its place. */
  id: string;
  /** The job's type, or the form of a workflow inside. */
  type: string;
  name?: string;
  queue?: string;
  state: 'waiting' | 'pending' | 'active' | 'running' | 'completed' | 'failed' | 'cancelled' | 'skipped';
  /** Null until the job exists, and for a workflow inside. */
  job_id: string | null;
  /** Of the job, or of all jobs inside. */
  job_ids: string[];
  /** Its place among the steps; a callback has none. */
  index?: number;
  /** The event for which its job is a callback. */
  callback?: string;
  depends_on?: string[];
  started_at?: Time;
  completed_at?: Time;
  error?: { code: string; type: string; message: string };
  /** What its job returned; absent where an answer has no room for it. */
  result?: unknown;
  /** Of a workflow inside this one. */
  steps?: WorkflowStep[];
  callbacks?: Record<string, WorkflowStep>;
}

/** What is shown wherever a workflow appears. */
export interface WorkflowHeader {
  id: string;
  type: WorkflowForm;
  name?: string;
  state: WorkflowState;
  created_at: Time;
  completed_at?: Time;
  cancelled_at?: Time;
}

interface WorkflowMembers extends Also<'WorkflowHeader', WorkflowHeader> {
  steps_total: number;
  steps_completed: number;
  steps_failed: number;
  /** Steps that a cancellation has ended. */
  steps_cancelled?: number;
  /** Of a group or a batch, the same as those of the steps. */
  jobs_total?: number;
  jobs_completed?: number;
  jobs_failed?: number;
  steps: WorkflowStep[];
  callbacks?: Record<string, WorkflowStep>;
  metadata: {
    created_at: Time;
    started_at: Time;
    completed_at?: Time;
    cancelled_at?: Time;
    job_count: number;
    completed_count: number;
    failed_count: number;
  };
}

/** A workflow with its steps. */
export interface WorkflowStatus extends Also<'WorkflowStatus', WorkflowMembers> {}

interface SummaryMembers extends WorkflowHeader {
  step_count: number;
  steps_completed: number;
  job_count: number;
  /** Known once it has ended. */
  completed_count?: number;
  failed_count?: number;
}

/** An entry of the list of workflows. */
export interface WorkflowSummary extends Also<'WorkflowSummary', SummaryMembers> {}

export interface WorkflowList extends Also<'WorkflowList', Page<WorkflowSummary>>, Extent {}

/** A workflow, as a member and flat. */
export interface WorkflowAnswer extends WorkflowStatus, Warned {
  workflow: WorkflowStatus & Warned;
}

/** How far each job of a workflow is, from its queue now. */
export interface WorkflowProgress {
  workflow_id: string;
  type: WorkflowForm;
  state: WorkflowState;
  /** 0 … 1, without callbacks. */
  progress: number;
  steps: {
    id: string;
    job_id: string | null;
    type: string;
    /** That of the job once it exists. */
    state: WorkflowStep['state'] | JobState;
    progress: number;
  }[];
  updated_at: Time;
}

/** A workflow to start: see the guide of workflows. */
export interface NewWorkflow {
  type?: WorkflowForm;
  /** Chosen by the client: it is started at most once. */
  id?: string;
  name?: string;
  steps?: unknown[] | Record<string, unknown>;
  jobs?: unknown[];
  callbacks?: Record<string, unknown>;
  [member: string]: unknown;
}

const CANCEL = { audit: 'workflow.cancel', bound: 'workflow' } as const;

/** Below `/ojs/v1`. */
export const workflows = {
  /** Starts a workflow. */
  start: post<{ body: NewWorkflow; 201: WorkflowAnswer; errors: 409 | 422 }>('/workflows', {
    ...DATA,
    bound: 'workflow',
  }),
  /** Lists workflows, newest first. */
  list: get<{ query: CursorQuery & { state?: string }; 200: WorkflowList }>('/workflows'),
  /** Shows a workflow and its steps. */
  show: get<{ 200: WorkflowAnswer; errors: 404 }>('/workflows/:id', { bound: 'workflow' }),
  /** Cancels a workflow. */
  cancel: del<{ 200: WorkflowAnswer; errors: 404 | 409 }>('/workflows/:id', CANCEL),
  /** Cancels a workflow, like DELETE. */
  cancelByPost: post<{ 200: WorkflowAnswer; errors: 404 | 409 }>('/workflows/:id/cancel', CANCEL),
  /** Shows the progress of each job of a workflow. */
  progress: get<{ 200: WorkflowProgress; errors: 404 }>('/workflows/:id/progress', { bound: 'workflow' }),
};
