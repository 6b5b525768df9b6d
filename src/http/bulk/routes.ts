/** Requests about many jobs: enqueue each on its own, cancel, retry and delete by ids or by filter. */
import { actOnAll, actOnEach } from '../../across/act-on-ids';
import { abortOperation, findOperation, listOperations, type OperationSummary } from '../../across/operations';
import { invalidRequest, notFound } from '../../job/errors';
import { formatInstant } from '../../job/time';
import type { BulkAction, BulkAnswer } from '../../rpc/operations';
import { type AppContext, json } from '../context';
import { type JsonObject, MAX_BATCH_BYTES, readBody } from '../request/body';
import { beginKeyed, REPLAYED } from '../request/idempotency';
import { readAtomicity, readIds, refuseConditionsOutsideFilter } from '../request/many-jobs';
import { listMembers, pageOf, readPaging } from '../request/pagination';
import { pathParam } from '../request/path';
import { queueParam } from '../request/query';
import { DATA, del, get, post, type Route } from '../route';
import { enqueueBulk } from './enqueue';
import { allOrNoneByFilter, operateByFilter, previewByFilter, readWaitMs } from './operate';
import { continuation, DONE, notApplied, renderItems, statusOf } from './render';

type Action = Exclude<BulkAction, 'purge'>;

const ABORT = { audit: 'operation.abort' };

/** Routes below `/ojs/v1`. */
export const bulkRoutes: readonly Route[] = [
  post('/jobs/bulk', enqueueBulk, { ...DATA, takesIdempotencyKey: true }),
  post('/jobs/bulk/cancel', (c) => act(c, 'cancel'), { audit: 'jobs.cancel', takesIdempotencyKey: true }),
  post('/jobs/bulk/retry', (c) => act(c, 'retry'), { audit: 'jobs.retry', takesIdempotencyKey: true }),
  post('/jobs/bulk/delete', (c) => act(c, 'delete'), {
    audit: 'jobs.delete',
    scope: 'admin:purge',
    takesIdempotencyKey: true,
  }),
  get('/jobs/bulk/:id', progress),
  del('/jobs/bulk/:id', abort, ABORT),
];

/** Routes below `/ojs/v1/admin`. */
export const adminOperationRoutes: readonly Route[] = [
  get('/operations', list),
  get('/operations/:id', progress),
  post('/operations/:id/abort', abort, ABORT),
  get('/jobs/bulk/:id', progress),
  del('/jobs/bulk/:id', abort, ABORT),
];

async function act(c: AppContext, action: Action): Promise<Response> {
  const body = await readBody(c, MAX_BATCH_BYTES);
  if (body.job_ids !== undefined && body.filter !== undefined) {
    throw invalidRequest('filter', 'Name the jobs by job_ids or by filter, not both.');
  }
  if (body.job_ids !== undefined && (body.dry_run ?? null) !== null) {
    throw invalidRequest('dry_run', 'dry_run is for jobs named by filter; these are the jobs that you have named.');
  }
  const preview = await previewByFilter(c, action, body);
  if (preview) return preview;
  const atomic = readAtomicity(body) === 'atomic';
  if (body.job_ids !== undefined) return byIds(c, action, body, atomic);
  if (!atomic) return byFilter(c, action, body);
  const answer = await allOrNoneByFilter(c, action, body);
  return answerItems(c, action, answer, answer.replayed);
}

async function byIds(c: AppContext, action: Action, body: JsonObject, atomic: boolean): Promise<Response> {
  refuseConditionsOutsideFilter(c, body);
  const ids = readIds(body.job_ids, 'job_ids', 'ids');
  if (ids.length === 0) throw invalidRequest('job_ids', 'job_ids must name at least one job.');
  const keyed = await beginKeyed(c, body);
  const answer = await (atomic ? actOnAll : actOnEach)(c.env, action, ids, keyed);
  return answerItems(c, action, answer, answer.applied && keyed?.operation.replayed === true);
}

function answerItems(c: AppContext, action: Action, { items, applied }: BulkAnswer, replayed: boolean): Response {
  const counter = DONE[action];
  const rendered = renderItems(action, items, applied);
  const count = (status: string) => rendered.filter((item) => item.status === status).length;
  const failed = count('failed');
  return json(
    c,
    {
      ...{ total_matched: items.length, [counter]: count(counter), skipped: count('skipped'), failed, items: rendered },
      ...notApplied(c, { items, applied }),
    },
    applied ? (failed > 0 ? 207 : 200) : 422,
    replayed ? REPLAYED : {},
  );
}

async function byFilter(c: AppContext, action: Action, body: JsonObject): Promise<Response> {
  const { summary, headers } = await operateByFilter(c, action, body, { items: true });
  const { matched, succeeded, skipped, failed, items = [] } = summary;
  const counts = { total_matched: matched, [DONE[action]]: succeeded, skipped, failed };
  const answer = { ...counts, items: renderItems(action, items), ...continuation(summary) };
  return json(c, answer, statusOf(summary), headers);
}

async function progress(c: AppContext): Promise<Response> {
  const id = pathParam(c, 'id');
  const summary = await findOperation(c.env, id, c.req.query('wait') === undefined ? 0 : readWaitMs(c));
  if (!summary) throw noOperation(id);
  return answerProgress(c, summary);
}

/** Stops an operation. What it has done stays done, and the answer says how much that is. */
async function abort(c: AppContext): Promise<Response> {
  const id = pathParam(c, 'id');
  const summary = await abortOperation(c.env, id);
  if (!summary) throw noOperation(id);
  return answerProgress(c, summary);
}

/** The operations that run, and those that ended lately. */
async function list(c: AppContext): Promise<Response> {
  const operations = await listOperations(c.env, queueParam(c, 'queue'));
  const paging = readPaging(c, 'page');
  const page = pageOf(operations, paging);
  const items = page.items.map(({ started_at, ...summary }) => ({
    ...progressMembers(summary),
    started_at: formatInstant(started_at),
  }));
  return json(c, { items, ...listMembers(paging, page) });
}

function noOperation(id: string) {
  return notFound('operation', id, 'Operations are remembered for a day after their end.');
}

function answerProgress(c: AppContext, summary: OperationSummary): Response {
  const { action, items } = summary;
  return json(c, { ...progressMembers(summary), ...(items && { items: renderItems(action, items) }) });
}

function progressMembers(summary: OperationSummary) {
  const { action, matched, succeeded, failed, skipped, errors } = summary;
  return { ...continuation(summary), action, matched, succeeded, skipped, failed, errors };
}
