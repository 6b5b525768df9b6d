/** Workflows as the server shows them, in wire names. Times are RFC 3339. */
import type { JobState } from '../job/states';
import { member, shaped } from './answers';

export type WorkflowState = 'running' | 'completed' | 'failed' | 'cancelled';

/** A step as the server shows it. */
export interface WorkflowStep {
  /** Its name in a graph, else its place. */
  id: string;
  /** The job's type, or the form of a workflow inside. */
  type: string;
  state: 'waiting' | 'pending' | 'active' | 'running' | 'completed' | 'failed' | 'cancelled' | 'skipped';
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

/** The outermost form of a workflow. */
export type WorkflowForm = 'chain' | 'group' | 'batch' | 'graph';

/** The members shown wherever a workflow appears. Times are RFC 3339. */
interface WorkflowHeader {
  id: string;
  type: WorkflowForm;
  name?: string;
  state: WorkflowState;
  created_at: string;
  completed_at?: string;
  cancelled_at?: string;
}

/** A workflow as the server shows it. */
export interface WorkflowStatus extends WorkflowHeader {
  steps_total: number;
  steps_completed: number;
  steps_failed: number;
  steps_cancelled?: number;
  steps: WorkflowStep[];
  callbacks?: Record<string, WorkflowStep>;
  metadata: { created_at: string; job_count: number; completed_count: number; failed_count: number };
}

/** An entry of the list of workflows. */
export interface WorkflowSummary extends WorkflowHeader {
  step_count: number;
  job_count: number;
  /** Known once it has ended. */
  completed_count?: number;
  failed_count?: number;
}

/** The progress of each job of a workflow, from its queue now. */
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
  updated_at: string;
}

/** The workflow in an answer about one workflow. @throws {UnavailableError} */
export function workflowOf(answer: unknown): WorkflowStatus {
  return shaped<WorkflowStatus>(member(answer, 'workflow'), 'id', 'the workflow');
}
