/** How far a workflow and each of its jobs are. */
import type { LiveJob } from '../../across/workflows';
import { formatInstant } from '../../job/time';
import { jobsBelow, nodeAt, pathOf } from '../../job/workflow/plan';
import type { WorkflowView } from '../../rpc/workflow';
import { stepState } from './render';

/** @param live what the queues say of the jobs that have not ended, by id */
export function renderProgress(view: WorkflowView, live: ReadonlyMap<string, LiveJob>): Record<string, unknown> {
  const steps = jobsBelow(view.plan, 0, true).map((index) => {
    const node = nodeAt(view.plan, index);
    const step = view.steps[index];
    const job = step?.job_id === undefined ? undefined : live.get(step.job_id);
    const state = stepState(view, index);
    return {
      id: pathOf(view.plan, index),
      job_id: step?.job_id ?? null,
      type: node.type,
      state: state === 'pending' ? (job?.state ?? state) : state,
      progress: state === 'completed' ? 1 : (job?.progress ?? 0),
      counts: node.callback === undefined,
      at: Math.max(step?.ended_at ?? 0, step?.started_at ?? 0, view.created_at),
    };
  });
  const counted = steps.filter(({ counts }) => counts);
  const done = counted.reduce((sum, step) => sum + step.progress, 0);
  return {
    workflow_id: view.id,
    type: view.type ?? 'graph',
    state: view.state,
    progress: done / counted.length,
    steps: steps.map(({ counts: _counts, at: _at, ...step }) => step),
    updated_at: formatInstant(Math.max(view.ended_at ?? 0, ...steps.map(({ at }) => at))),
  };
}
