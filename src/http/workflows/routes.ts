import { v7 as uuidv7 } from 'uuid';
import { outsideKey } from '../../across/bounds';
import { encodeCursor, readAfter } from '../../across/paging';
import {
  checkAtQueues,
  isWorkflowInside,
  liveJobs,
  readWorkflow,
  runningJobs,
  workflowNamed,
} from '../../across/workflows';
import type { Warned } from '../../contract/common';
import { type WorkflowStatus, workflows } from '../../contract/workflows';
import { inParallel } from '../../durable/parallel';
import { defined } from '../../job/envelope/fields';
import { unwrap } from '../../job/errors';
import { refuseTooLong } from '../../job/message';
import { UnknownMembers } from '../../job/unknown-members';
import { parseWorkflow } from '../../job/workflow/parse';
import { readsObjectsOnly } from '../../ojs/answers';
import { also } from '../../ojs/names';
import { directoryObject } from '../../rpc/stubs';
import type { WorkflowSummary, WorkflowView } from '../../rpc/workflow';
import { type AppContext, json } from '../context';
import { warningsOf } from '../jobs/render';
import { MAX_BATCH_BYTES, readBody } from '../request/body';
import { boundsOf } from '../request/bounds';
import { mayCreate, withinRate } from '../request/new-queues';
import { listMembers, readPaging } from '../request/pagination';
import { pathParam } from '../request/path';
import { listParam, oneOf } from '../request/query';
import { serve } from '../route';
import { completedSteps, type ListedWorkflow, renderProgress, renderSummary, renderWorkflow } from './render';

/** Clients know the state `pending`; here a workflow runs as soon as it exists. Some call that `active`. */
const STATES = ['pending', 'running', 'active', 'completed', 'failed', 'cancelled'] as const;

export const workflowRoutes = serve(workflows, { start, list, show, cancel, cancelByPost: cancel, progress });

async function start(c: AppContext) {
  const unknown = new UnknownMembers();
  const parsed = parseWorkflow(await readBody(c, MAX_BATCH_BYTES), Date.now(), unknown);
  const { id = uuidv7(), checks, ...workflow } = parsed;
  refuseTooLong(
    workflow.steps.map(({ job }) => job),
    'body',
  );
  await mayCreate(c, checks, true);
  const bounds = boundsOf(c);
  if (bounds && parsed.id !== undefined && (await isWorkflowInside(c.env, bounds, parsed.id)) === false) {
    throw outsideKey(bounds, 'This id is not free to this key; leave it out to get a new one.', { field: 'id' });
  }
  await withinRate(c, checks);
  const warnings = await checkAtQueues(c.env, checks);
  const view = unwrap(await workflowNamed(c.env, id).create(workflow));
  const warned = warningsOf(warnings, unknown);
  const headers = { Location: `/ojs/v1/workflows/${id}`, ...warned.headers };
  return answer(c, { ...renderWorkflow(view), ...warned.members }, 201, headers);
}

async function list(c: AppContext) {
  const paging = readPaging(c);
  const states = oneOf(listParam(c, 'state'), STATES, 'state')?.map((state) =>
    state === 'active' ? 'running' : state,
  );
  const { offset, limit } = paging;
  const request = defined({ offset, limit, before: readAfter(paging), states });
  const { workflows: found, total, more: hasMore } = await directoryObject(c.env).workflows(request);
  const items = await inParallel(found, async (summary) => renderSummary(await withProgress(c, summary)));
  const nextCursor = encodeCursor({ after: found.at(-1)?.id });
  const list = { items, ...listMembers(paging, { total, hasMore, nextCursor }) };
  return json(c, also('WorkflowList', list));
}

/** The list is notified only of the end of a workflow; a running one knows its progress itself. */
async function withProgress(c: AppContext, summary: WorkflowSummary): Promise<ListedWorkflow> {
  if (summary.state !== 'running') return summary;
  const view = await readWorkflow(c.env, summary.id).catch(() => undefined);
  return view ? { ...summary, steps_completed: completedSteps(view) } : summary;
}

async function show(c: AppContext) {
  const view = await readWorkflow(c.env, pathParam(c, 'id'), true);
  if (readsObjectsOnly(c)) {
    for (const step of view.steps) if (!step.result?.startsWith('{')) delete step.result;
  }
  return answer(c, renderWorkflow(view, await runningJobs(c.env, view)));
}

async function cancel(c: AppContext) {
  const view: WorkflowView = unwrap(await workflowNamed(c.env, pathParam(c, 'id')).cancel());
  return answer(c, renderWorkflow(view));
}

async function progress(c: AppContext) {
  const view = await readWorkflow(c.env, pathParam(c, 'id'));
  return json(c, renderProgress(view, await liveJobs(c.env, view)));
}

const answer = <Status extends number = 200>(
  c: AppContext,
  workflow: WorkflowStatus & Warned,
  status?: Status,
  headers?: Record<string, string>,
) => json(c, { workflow, ...workflow }, status, headers);
