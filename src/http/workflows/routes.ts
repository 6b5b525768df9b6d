/** Routes about workflows: start, look, follow, cancel, list. */
import { Hono } from 'hono';
import { v7 as uuidv7 } from 'uuid';
import { type Env, readConfig } from '../../config';
import { inParallel } from '../../durable/parallel';
import { ApiError, type ErrorData, notFound, type Outcome, unwrap } from '../../job/errors';
import { isUuidV7 } from '../../job/ids';
import { variablesLayer } from '../../job/retry/variables';
import { formatInstant } from '../../job/time';
import { parseWorkflow, type StepCheck } from '../../job/workflow/parse';
import { jobsBelow, nodeAt, pathOf } from '../../job/workflow/plan';
import { directoryObject, queueObject } from '../../rpc/stubs';
import type { WorkflowApi, WorkflowView } from '../../rpc/workflow';
import type { AppContext, AppEnv } from '../context';
import { MAX_BATCH_BYTES, readBody } from '../request/body';
import { encodeCursor, pagination, readAfter, readPaging } from '../request/pagination';
import { listParam, oneOf } from '../request/query';
import { json } from '../respond';
import { renderSummary, renderWorkflow, stepState } from './render';

/** `pending` is a state clients know; here a workflow runs as soon as it exists. */
const STATES = ['pending', 'running', 'completed', 'failed', 'cancelled'] as const;

/** Routes below `/ojs/v1`. */
export function workflowRoutes(): Hono<AppEnv> {
  const routes = new Hono<AppEnv>();

  routes.post('/workflows', async (c) => {
    // A workflow must not be accepted whose jobs would be under no retry policy at all.
    variablesLayer(readConfig(c.env).retryVariables);
    const parsed = parseWorkflow(await readBody(c, MAX_BATCH_BYTES), Date.now());
    const { id = uuidv7(), checks, ...workflow } = parsed;
    await checkAtQueues(c.env, checks);
    const view = unwrap(await workflowObject(c.env, id).create(workflow));
    return answer(c, view, 201, { Location: `/ojs/v1/workflows/${id}` });
  });

  routes.get('/workflows', async (c) => {
    const paging = readPaging(c);
    const states = oneOf(listParam(c, 'state'), STATES, 'state');
    const { offset, limit } = paging;
    const before = paging.cursor === undefined ? {} : { before: readAfter(paging.cursor) };
    const page = await directoryObject(c.env).workflows({ offset, limit, ...before, ...(states && { states }) });
    const workflows = page.workflows.map(renderSummary);
    const next = encodeCursor({ after: page.workflows.at(-1)?.id });
    return json(c, {
      workflows,
      items: workflows,
      total: page.total,
      pagination: pagination(paging, page.total, page.more, next),
    });
  });

  routes.get('/workflows/:id', async (c) => {
    const view = unwrap(await withWorkflow(c, (object) => object.get()));
    const workflow = renderWorkflow(view, await runningJobs(c.env, view));
    return json(c, { workflow, ...workflow });
  });
  routes.delete('/workflows/:id', cancel);
  routes.post('/workflows/:id/cancel', cancel);
  routes.get('/workflows/:id/progress', progress);
  return routes;
}

/** Asks every queue whether it would take its jobs. @throws {ApiError} as for a single job, naming which one */
async function checkAtQueues(env: Env, checks: readonly StepCheck[]): Promise<void> {
  const byQueue = new Map<string, StepCheck[]>();
  for (const check of checks) byQueue.set(check.queue, [...(byQueue.get(check.queue) ?? []), check]);
  await inParallel([...byQueue], async ([queue, list]) => {
    const jobs = list.map(({ job }) => job);
    const checked = await queueObject(env, queue).checkJobs(jobs);
    if (!checked.ok) throw new ApiError(located(checked.error, list));
  });
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

/** Empties every workflow on the list. */
export async function resetWorkflows(env: Env): Promise<void> {
  for (;;) {
    const { workflows } = await directoryObject(env).workflows({ offset: 0, limit: 200 });
    if (workflows.length === 0) return;
    await inParallel(workflows, async ({ id }) => {
      await workflowObject(env, id).reset();
      await directoryObject(env).forgetWorkflow(id);
    });
  }
}

function workflowObject(env: Env, id: string): WorkflowApi {
  return env.WORKFLOWS.getByName(id) as unknown as WorkflowApi;
}

function withWorkflow<T>(
  c: AppContext,
  call: (object: WorkflowApi, id: string) => Promise<Outcome<T>>,
): Promise<Outcome<T>> {
  const id = c.req.param('id') ?? '';
  if (!isUuidV7(id)) throw notFound('workflow', id);
  return call(workflowObject(c.env, id), id);
}

async function cancel(c: AppContext): Promise<Response> {
  return answer(c, unwrap(await withWorkflow(c, (object) => object.cancel())));
}

function answer(c: AppContext, view: WorkflowView, status = 200, headers: Record<string, string> = {}): Response {
  const workflow = renderWorkflow(view);
  return json(c, { workflow, ...workflow }, status, headers);
}

/** How far each job is, by what its queue says now. */
async function progress(c: AppContext): Promise<Response> {
  const view = unwrap(await withWorkflow(c, (object) => object.get()));
  const live = await liveJobs(c.env, view);
  const jobs = jobsBelow(view.plan, 0, true);
  const steps = jobs.map((index) => {
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
  return json(c, {
    workflow_id: view.id,
    type: view.type ?? 'graph',
    state: view.state,
    progress: done / counted.length,
    steps: steps.map(({ counts: _counts, at: _at, ...step }) => step),
    updated_at: formatInstant(Math.max(view.ended_at ?? 0, ...steps.map(({ at }) => at))),
  });
}

/** The jobs that have not ended, by queue. */
function openJobs(view: WorkflowView): [queue: string, ids: string[]][] {
  const byQueue = new Map<string, string[]>();
  for (const [index, { state, job_id }] of view.steps.entries()) {
    const { queue } = nodeAt(view.plan, index);
    if (queue === undefined || job_id === undefined || state !== 'running') continue;
    byQueue.set(queue, [...(byQueue.get(queue) ?? []), job_id]);
  }
  return [...byQueue];
}

/** Ids of the jobs that run. */
async function runningJobs(env: Env, view: WorkflowView): Promise<ReadonlySet<string>> {
  const answers = await inParallel(openJobs(view), ([queue, ids]) => queueObject(env, queue).runningOf(ids));
  return new Set(answers.flat());
}

/** What the queues say of the jobs that have not ended. */
async function liveJobs(env: Env, view: WorkflowView): Promise<Map<string, { state: string; progress?: number }>> {
  const answers = await inParallel(openJobs(view), ([queue, ids]) => queueObject(env, queue).getMany(ids));
  return new Map(
    answers.flatMap(({ jobs }) =>
      jobs.map(({ record }) => {
        const { state, progress } = record;
        return [record.id, { state, ...(progress !== undefined && { progress }) }] as const;
      }),
    ),
  );
}
