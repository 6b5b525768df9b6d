/** Workflows as the server shows them. Times are RFC 3339. */
import type * as contract from '../contract/workflows';
import type { Named } from '../producer/names';
import { member, shaped } from './answers';

export type { WorkflowForm, WorkflowState } from '../contract/workflows';

export interface WorkflowStep extends Named<contract.WorkflowStep> {}

export interface WorkflowStatus extends Named<contract.WorkflowStatus> {}

export interface WorkflowSummary extends Named<contract.WorkflowSummary> {}

/** The progress of each job of a workflow, from its queue now. */
export interface WorkflowProgress extends Named<contract.WorkflowProgress> {}

/** The workflow in an answer about one workflow. @throws {UnavailableError} */
export function workflowOf(answer: unknown): WorkflowStatus {
  return shaped<WorkflowStatus>(member(answer, 'workflow'), 'id', 'the workflow');
}
