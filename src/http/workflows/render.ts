import type { LiveJob } from '../../across/workflows';
import type * as contract from '../../contract/workflows';
import type { WorkflowProgress, WorkflowStatus, WorkflowStep } from '../../contract/workflows';
import { parseExactly } from '../../job/envelope/exact';
import { defined, given } from '../../job/envelope/fields';
import { shown } from '../../job/envelope/nesting';
import { formatInstant } from '../../job/time';
import { jobsBelow, nodeAt, type PlanNode, pathOf } from '../../job/workflow/plan';
import { also } from '../../ojs/names';
import type { StepView, WorkflowSummary, WorkflowView } from '../../rpc/workflow';

/** A workflow with its steps, nested ones inside each other. @param running ids of the jobs that run */
export function renderWorkflow(view: WorkflowView, running: ReadonlySet<string> = new Set()): WorkflowStatus {
  const { plan } = view;
  const root = nodeAt(plan, 0);
  const states = root.children.map((child) => view.steps[child]?.state);
  const completed = completedSteps(view);
  const hasFailed = (state: string | undefined) => state === 'failed' || (state === 'cancelled' && !isCancelled(view));
  const failed = states.filter(hasFailed).length;
  const jobs = jobsBelow(plan, 0).map((job) => view.steps[job]?.state);
  const created = formatInstant(view.created_at);
  const ended = defined({ [endedName(view)]: given(view.ended_at, formatInstant) });
  return {
    id: view.id,
    type: formOf(view),
    ...defined({ name: view.name }),
    state: view.state,
    ...also('WorkflowHeader', { created_at: created }),
    ...ended,
    steps_total: states.length,
    steps_completed: completed,
    steps_failed: failed,
    ...also('WorkflowStatus', defined({ steps_cancelled: view.steps_cancelled })),
    ...((root.kind === 'group' || root.kind === 'batch') && {
      jobs_total: states.length,
      jobs_completed: completed,
      jobs_failed: failed,
    }),
    steps: renderSteps(view, running, root),
    ...renderCallbacks(view, running, root),
    metadata: {
      created_at: created,
      started_at: created,
      ...ended,
      job_count: jobs.length,
      completed_count: jobs.filter((state) => state === 'completed').length,
      failed_count: jobs.filter(hasFailed).length,
    },
  };
}

const formOf = ({ type = 'graph' }: { type?: contract.WorkflowForm | undefined }): contract.WorkflowForm => type;

/** How many of its outermost steps have completed. */
export const completedSteps = ({ plan, steps }: WorkflowView): number =>
  nodeAt(plan, 0).children.filter((child) => steps[child]?.state === 'completed').length;

/** An entry of the list, with how far the workflow is while it runs. */
export interface ListedWorkflow extends WorkflowSummary {
  steps_completed?: number;
}

export function renderSummary(summary: ListedWorkflow): contract.WorkflowSummary {
  const { id, type, name, state, created_at, ended_at, steps, jobs, completed, failed } = summary;
  return defined({
    id,
    type: formOf({ type }),
    name,
    state,
    created_at: formatInstant(created_at),
    [endedName(summary)]: given(ended_at, formatInstant),
    ...also('WorkflowSummary', { step_count: steps }),
    // Jobs are counted when it has ended, and they are the steps unless workflows are nested.
    steps_completed: summary.steps_completed ?? (state === 'completed' ? steps : Math.min(steps, completed)),
    job_count: jobs,
    // Only the workflow knows its progress; the list is notified of its end.
    ...(state !== 'running' && { completed_count: completed, failed_count: failed }),
  });
}

/** The state of a step for clients: a job waits for its turn, then for its end (`pending`). */
export function stepState(view: WorkflowView, index: number): WorkflowStep['state'] {
  const { kind, callback } = nodeAt(view.plan, index);
  const state = view.steps[index]?.state ?? 'waiting';
  if (state === 'waiting') return callback ? skippedCallback(view, index) : ruledOut(view, index);
  if (state !== 'running') return state;
  if (isCancelled(view)) return 'cancelled';
  return kind === 'job' ? 'pending' : 'running';
}

/** A step that waits for an impossible event never starts. */
function ruledOut(view: WorkflowView, index: number): 'cancelled' | 'waiting' {
  for (let at = nodeAt(view.plan, index).parent; at >= 0; at = nodeAt(view.plan, at).parent) {
    const state = view.steps[at]?.state;
    if (state !== 'waiting' && state !== 'running') return 'cancelled';
  }
  return 'waiting';
}

/** A callback that was not needed when its batch ended is never called. */
const skippedCallback = (view: WorkflowView, index: number): 'waiting' | 'skipped' =>
  ruledOut(view, index) === 'waiting' ? 'waiting' : 'skipped';

/** The steps of a node. The callbacks of a graph are included, because its author wrote them as steps. */
function renderSteps(view: WorkflowView, running: ReadonlySet<string>, parent: PlanNode): WorkflowStep[] {
  const callbacks = parent.kind === 'graph' ? Object.values(parent.callbacks ?? {}) : [];
  return [...parent.children, ...callbacks].map((child, place) => {
    const { needs: own, callback } = nodeAt(view.plan, child);
    const before = place > 0 && parent.kind === 'chain' ? [parent.children[place - 1] as number] : [];
    const needs = own ?? (callback ? parent.children : before);
    return {
      ...renderStep(view, running, child),
      index: place,
      ...defined({ callback }),
      depends_on: needs.map((need) => nodeAt(view.plan, need).id),
    };
  });
}

function renderStep(view: WorkflowView, running: ReadonlySet<string>, index: number): WorkflowStep {
  const node = nodeAt(view.plan, index);
  const step = view.steps[index] as StepView;
  const known = stepState(view, index);
  const runs = known === 'pending' && running.has(step.job_id ?? '');
  const state = runs ? 'active' : known;
  const jobs = jobsBelow(view.plan, index).map((job) => view.steps[job] as StepView);
  const isJob = node.kind === 'job';
  const ended = state === 'completed' || state === 'failed' || state === 'cancelled';
  const endedAt = isJob ? step.ended_at : latest(jobs.map(({ ended_at }) => ended_at));
  const startedAt = isJob ? step.started_at : jobs.find(({ started_at }) => started_at !== undefined)?.started_at;
  return {
    id: node.id,
    type: (isJob ? node.type : node.kind) as string,
    ...defined({ name: node.name, queue: node.queue }),
    state,
    job_id: isJob ? (step.job_id ?? null) : null,
    job_ids: jobs.flatMap(({ job_id }) => job_id ?? []),
    ...defined({
      started_at: given(startedAt, formatInstant),
      completed_at: ended ? given(endedAt, formatInstant) : undefined,
      error: step.error,
      result: given(step.result, (text) => shown(parseExactly(text))),
    }),
    ...(!isJob && { steps: renderSteps(view, running, node) }),
    ...renderCallbacks(view, running, node),
  };
}

function renderCallbacks(
  view: WorkflowView,
  running: ReadonlySet<string>,
  { kind, callbacks }: PlanNode,
): Pick<WorkflowStep, 'callbacks'> {
  if (!callbacks || kind === 'graph') return {};
  const entries = Object.entries(callbacks).map(([name, index]) => [name, renderStep(view, running, index)] as const);
  return { callbacks: Object.fromEntries(entries) };
}

function latest(times: readonly (number | undefined)[]): number | undefined {
  const known = times.filter((time) => time !== undefined);
  return known.length === 0 ? undefined : Math.max(...known);
}

const isCancelled = ({ state }: { state: string }): boolean => state === 'cancelled';

const endedName = (workflow: { state: string }): 'cancelled_at' | 'completed_at' =>
  isCancelled(workflow) ? 'cancelled_at' : 'completed_at';

/** @param live the queues' answers about the jobs that have not ended, by id */
export function renderProgress(view: WorkflowView, live: ReadonlyMap<string, LiveJob>): WorkflowProgress {
  const steps = jobsBelow(view.plan, 0, true).map((index) => {
    const node = nodeAt(view.plan, index);
    const step = view.steps[index];
    const job = step?.job_id === undefined ? undefined : live.get(step.job_id);
    const state = stepState(view, index);
    return {
      id: pathOf(view.plan, index),
      job_id: step?.job_id ?? null,
      type: node.type as string,
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
    type: formOf(view),
    state: view.state,
    progress: done / counted.length,
    steps: steps.map(({ counts: _counts, at: _at, ...step }) => step),
    updated_at: formatInstant(Math.max(view.ended_at ?? 0, ...steps.map(({ at }) => at))),
  };
}
