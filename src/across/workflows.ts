import type { Env } from '../config';
import { inParallel } from '../durable/parallel';
import { type Bounds, fits } from '../job/bounds';
import { ApiError, type ErrorData, eventualOutcomeOf, notFound, unwrap } from '../job/errors';
import { isUuidV7 } from '../job/ids';
import type { JobState } from '../job/states';
import type { StepCheck } from '../job/workflow/parse';
import { nodeAt } from '../job/workflow/plan';
import { queueObject, workflowObject } from '../rpc/stubs';
import type { WorkflowApi, WorkflowView } from '../rpc/workflow';
import { ifThere } from './crons';
import { refuseUnknownOptions } from './known-options';
import { validateKept } from './schemas';

/** The object of a workflow. @throws {ApiError} 404 for an id that none can have */
export function workflowNamed(env: Env, id: string): WorkflowApi {
  if (!isUuidV7(id)) throw notFound('workflow', id);
  return workflowObject(env, id);
}

/** What a workflow is now. @throws {ApiError} 404 */
export const readWorkflow = async (env: Env, id: string, withResults = false): Promise<WorkflowView> =>
  unwrap(await workflowNamed(env, id).get(withResults));

/** Do all jobs of this workflow lie within bounds of queues and types? Undefined: there is no such workflow. */
export async function isWorkflowInside(env: Env, bounds: Bounds, id: string): Promise<boolean | undefined> {
  const view = await ifThere(readWorkflow(env, id));
  const jobs = view?.plan.nodes.filter(({ kind }) => kind === 'job');
  return jobs?.every(({ queue = null, type = null }) => fits(bounds, { queue, type }));
}

/** Asks every queue whether it would take its jobs. @returns warnings @throws {ApiError} as for a job, naming which */
export async function checkAtQueues(env: Env, checks: readonly StepCheck[]): Promise<string[]> {
  await refuseUnknownOptions(env, checks);
  const validated = await eventualOutcomeOf(() => validateKept(env, checks));
  if (!validated.ok) throw new ApiError(located(validated.error, checks));
  const groups = Map.groupBy(checks, ({ queue }) => queue);
  await inParallel([...groups], async ([queue, list]) => {
    // Their bodies are not looked at, and many do not fit into one message.
    const jobs = list.map(({ job }) => ({ ...job, body: '' }));
    const checked = await queueObject(env, queue).checkJobs(jobs);
    if (!checked.ok) throw new ApiError(located(checked.error, list));
  });
  return validated.value;
}

/** An error about one job of a queue, with its path in the workflow; one about the queue itself stays as it is. */
function located(error: ErrorData, list: readonly StepCheck[]): ErrorData {
  const { index = 0, field, ...others } = error.details ?? {};
  const check = typeof index === 'number' ? list[index] : undefined;
  if (typeof field !== 'string' || !check) return error;
  return {
    ...error,
    message: error.message.startsWith(field) ? `${check.path}.${error.message}` : `${check.path}: ${error.message}`,
    details: { ...others, field: `${check.path}.${field}`, ...(check.index !== undefined && { index: check.index }) },
  };
}

export async function runningJobs(env: Env, view: WorkflowView): Promise<ReadonlySet<string>> {
  const answers = await inParallel(openJobs(view), ([queue, ids]) => queueObject(env, queue).runningOf(ids));
  return new Set(answers.flat());
}

export interface LiveJob {
  state: JobState;
  /** 0 … 1. */
  progress?: number | undefined;
}

/** The answers of the queues about the jobs that have not ended, by id. */
export async function liveJobs(env: Env, view: WorkflowView): Promise<ReadonlyMap<string, LiveJob>> {
  const live = new Map<string, LiveJob>();
  await inParallel(openJobs(view), async ([queue, ids]) => {
    // The bytes of jobs in an answer are bounded; the rest is asked for again.
    for (let left = ids; left.length > 0; ) {
      const { jobs, omitted } = await queueObject(env, queue).getMany(left);
      for (const { record } of jobs) live.set(record.id, { state: record.state, progress: record.progress });
      left = omitted;
    }
  });
  return live;
}

function openJobs({ plan, steps }: WorkflowView): [queue: string, ids: string[]][] {
  const open = steps.flatMap(({ state, job_id }, index) => {
    const { queue } = nodeAt(plan, index);
    return queue !== undefined && job_id !== undefined && state === 'running' ? [{ queue, job_id }] : [];
  });
  return [...Map.groupBy(open, ({ queue }) => queue)].map(([queue, jobs]) => [queue, jobs.map(({ job_id }) => job_id)]);
}
