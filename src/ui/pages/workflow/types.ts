/** What pages of workflows share. */
import type { WorkflowHeader } from '../../../contract/workflows';

export const endOf = (workflow: Pick<WorkflowHeader, 'completed_at' | 'cancelled_at'>) =>
  workflow.completed_at ?? workflow.cancelled_at;

/** How long it took, or has taken so far, in whole seconds then. ms */
export function lastedOf(workflow: WorkflowHeader, now: number): number {
  const end = endOf(workflow);
  const ms = Math.max(0, (end ? Date.parse(end) : now) - Date.parse(workflow.created_at));
  return end ? ms : Math.floor(ms / 1000) * 1000;
}
