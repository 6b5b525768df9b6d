/** Requests about many jobs: enqueue each on its own, cancel, retry and delete by ids or by filter. */
import { actOnAll, actOnEach } from '../../across/act-on-ids';
import { outsideKey } from '../../across/bounds';
import { abortOperation, findOperation, listOperations, type OperationSummary } from '../../across/operations';
import { bulk, type Operation, type OperationAnswer, type OperationProgress, operations } from '../../contract/bulk';
import { parseParts } from '../../job/envelope/json';
import { invalidRequest, notFound } from '../../job/errors';
import { formatInstant } from '../../job/time';
import type { BulkAction, BulkAnswer } from '../../rpc/operations';
import { type Answer, type AppContext, json } from '../context';
import { type JsonObject, MAX_BATCH_BYTES, readBody } from '../request/body';
import { boundsOf } from '../request/bounds';
import { beginKeyed, REPLAYED } from '../request/idempotency';
import { readAtomicity, readIds } from '../request/many-jobs';
import { listMembers, pageOf, readPaging } from '../request/pagination';
import { pathParam } from '../request/path';
import { queueParam } from '../request/query';
import { serve } from '../route';
import { enqueueBulk } from './enqueue';
import { allOrNoneByFilter, operateByFilter, previewByFilter, readWaitMs } from './operate';
import { continuation, DONE, notApplied, renderItems, statusOf } from './render';

type Action = Exclude<BulkAction, 'purge'>;

export const bulkRoutes = serve(bulk, {
  enqueue: enqueueBulk,
  cancel: (c) => act(c, 'cancel'),
  retry: (c) => act(c, 'retry'),
  delete: (c) => act(c, 'delete'),
  progress,
  abort,
});

export const adminOperationRoutes = serve(operations, {
  list,
  progress,
  abort,
  progressOfBulk: progress,
  abortOfBulk: abort,
});

async function act(c: AppContext, action: Action) {
  const body = await readBody(c, MAX_BATCH_BYTES, parseParts);
  if (body.job_ids !== undefined && body.filter !== undefined) {
    throw invalidRequest('filter', 'Name the jobs by job_ids or by filter, not both.');
  }
  if (body.job_ids !== undefined && (body.dry_run ?? null) !== null) {
    throw invalidRequest('dry_run', 'dry_run needs filter; with job_ids, these are the jobs.');
  }
  const preview = await previewByFilter(c, action, body);
  if (preview) return preview;
  const atomic = readAtomicity(body) === 'atomic';
  if (body.job_ids !== undefined) return byIds(c, action, body, atomic);
  if (!atomic) return byFilter(c, action, body);
  const answer = await allOrNoneByFilter(c, action, body);
  return answerItems(c, action, answer, answer.replayed);
}

async function byIds(c: AppContext, action: Action, body: JsonObject, atomic: boolean) {
  const bounds = boundsOf(c);
  if (bounds) throw outsideKey(bounds, 'A key with bounds names jobs by filter: {"ids": […]}.', { field: 'job_ids' });
  const ids = readIds(body.job_ids, 'job_ids', 'ids');
  if (ids.length === 0) throw invalidRequest('job_ids', 'job_ids must name at least one job.');
  const keyed = await beginKeyed(c, body);
  const answer = await (atomic ? actOnAll : actOnEach)(c.env, action, ids, keyed);
  return answerItems(c, action, answer, answer.applied && keyed?.operation.replayed === true);
}

function answerItems(c: AppContext, action: Action, { items, applied }: BulkAnswer, replayed: boolean) {
  const counter = DONE[action];
  const rendered = renderItems(action, items, applied);
  const count = (status: string) => rendered.filter((item) => item.status === status).length;
  const failed = count('failed');
  const answer: OperationAnswer = {
    ...{ total_matched: items.length, [counter]: count(counter), skipped: count('skipped'), failed, items: rendered },
    ...notApplied(c, { items, applied }),
  };
  return json(c, answer, applied ? (failed > 0 ? 207 : 200) : 422, replayed ? REPLAYED : {});
}

async function byFilter(c: AppContext, action: Action, body: JsonObject) {
  const { summary, headers } = await operateByFilter(c, action, body, { items: true });
  const { matched, succeeded, skipped, failed, items = [] } = summary;
  const counts = { total_matched: matched, [DONE[action]]: succeeded, skipped, failed };
  const answer: OperationAnswer = { ...counts, items: renderItems(action, items), ...continuation(summary) };
  return json(c, answer, statusOf(summary), headers);
}

async function progress(c: AppContext) {
  const id = pathParam(c, 'id');
  const summary = await findOperation(c.env, id, c.req.query('wait') === undefined ? 0 : readWaitMs(c));
  if (!summary) throw noOperation(id);
  return answerProgress(c, summary);
}

/** Stops an operation. Its changes up to then stay, and the answer counts them. */
async function abort(c: AppContext) {
  const id = pathParam(c, 'id');
  const summary = await abortOperation(c.env, id);
  if (!summary) throw noOperation(id);
  return answerProgress(c, summary);
}

/** The running operations, and those that ended recently. */
async function list(c: AppContext) {
  const known = await listOperations(c.env, queueParam(c, 'queue'));
  const paging = readPaging(c, 'page');
  const page = pageOf(known, paging);
  const items = page.items.map(({ started_at, ...summary }) => ({
    ...progressMembers(summary),
    started_at: formatInstant(started_at),
  }));
  return json(c, { items, ...listMembers(paging, page) });
}

const noOperation = (id: string) => notFound('operation', id, 'Operations are kept for a day after their end.');

function answerProgress(c: AppContext, summary: OperationSummary): Answer<OperationProgress> {
  const { action, items } = summary;
  return json(c, { ...progressMembers(summary), ...(items && { items: renderItems(action, items) }) });
}

function progressMembers(summary: OperationSummary): Operation {
  const { action, matched, succeeded, failed, skipped, errors } = summary;
  return { ...continuation(summary), action, matched, succeeded, skipped, failed, errors };
}
