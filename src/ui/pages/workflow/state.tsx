import type { WorkflowHeader } from '../../../contract/workflows';
import type { IconName } from '../../components/icon';
import { Badge, Bar, type Tone } from '../../components/text';
import { number } from '../../core/format';
import './state.css';

/** States of workflows and their steps, each with a colour and a shape. */
export const STATES: Readonly<Record<string, readonly [Tone, IconName]>> = {
  waiting: ['neutral', 'waiting'],
  pending: ['blue', 'available'],
  retryable: ['amber', 'retry'],
  active: ['violet', 'active'],
  running: ['violet', 'active'],
  completed: ['green', 'completed'],
  failed: ['red', 'discarded'],
  cancelled: ['neutral', 'cancelled'],
  skipped: ['neutral', 'next'],
};

export const WorkflowState = ({ state }: { state: string }) => (
  <Badge look={STATES[state] ?? ['neutral', 'available']} text={state} />
);

export const Done = ({ done, failed, total }: { done: number; failed: number; total: number }) => (
  <span class="jobs-done">
    <Bar value={total === 0 ? 1 : done / total} label={`${number(done)} of ${number(total)} jobs`} />
    <span>
      {number(done)} of {number(total)}
      {failed > 0 && <span class="red">, {number(failed)} failed</span>}
    </span>
  </span>
);

export const endOf = (workflow: Pick<WorkflowHeader, 'completed_at' | 'cancelled_at'>) =>
  workflow.completed_at ?? workflow.cancelled_at;

/** How long it took, or has taken so far, in whole seconds then. ms */
export function lastedOf(workflow: WorkflowHeader, now: number): number {
  const end = endOf(workflow);
  const ms = Math.max(0, (end ? Date.parse(end) : now) - Date.parse(workflow.created_at));
  return end ? ms : Math.floor(ms / 1000) * 1000;
}
