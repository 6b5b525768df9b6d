/** Workflows as the server shows them, Times are RFC 3339. */
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
  jobId: string | null;
  /** Of the job, or of all jobs inside. */
  jobIds: string[];
  dependsOn?: string[];
  /** RFC 3339. */
  startedAt?: string;
  completedAt?: string;
  error?: { code: string; type: string; message: string };
  /** What its job returned; absent where an answer has no room for it. */
  result?: unknown;
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
  createdAt: string;
  completedAt?: string;
  cancelledAt?: string;
}

/** A workflow as the server shows it. */
export interface WorkflowStatus extends WorkflowHeader {
  stepsTotal: number;
  stepsCompleted: number;
  stepsFailed: number;
  stepsCancelled?: number;
  steps: WorkflowStep[];
  callbacks?: Record<string, WorkflowStep>;
  metadata: { createdAt: string; jobCount: number; completedCount: number; failedCount: number };
}

/** An entry of the list of workflows. */
export interface WorkflowSummary extends WorkflowHeader {
  stepCount: number;
  jobCount: number;
  /** Known once it has ended. */
  completedCount?: number;
  failedCount?: number;
}

/** The progress of each job of a workflow, from its queue now. */
export interface WorkflowProgress {
  workflowId: string;
  type: WorkflowForm;
  state: WorkflowState;
  /** 0 … 1, without callbacks. */
  progress: number;
  steps: {
    id: string;
    jobId: string | null;
    type: string;
    /** That of the job once it exists. */
    state: WorkflowStep['state'] | JobState;
    progress: number;
  }[];
  updatedAt: string;
}

/** The workflow in an answer about one workflow. @throws {UnavailableError} */
export function workflowOf(answer: unknown): WorkflowStatus {
  return shaped<WorkflowStatus>(member(answer, 'workflow'), 'id', 'the workflow');
}
