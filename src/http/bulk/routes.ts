/** Requests about many jobs: enqueue each on its own, cancel, retry and delete by ids or by filter. */
import { actOnAll, actOnEach } from '../../across/act-on-ids';
import { findOperation } from '../../across/operations';
import { invalidRequest, notFound } from '../../job/errors';
import type { BulkAction, BulkAnswer } from '../../rpc/operations';
import { type AppContext, json } from '../context';
import { type JsonObject, MAX_BATCH_BYTES, readBody } from '../request/body';
import { beginKeyed, REPLAYED } from '../request/idempotency';
import { readAtomicity, readIds, refuseConditionsOutsideFilter } from '../request/many-jobs';
import { pathParam } from '../request/path';
import { DATA, get, post, type Route } from '../route';
import { enqueueBulk } from './enqueue';
import { allOrNoneByFilter, operateByFilter, readWaitMs } from './operate';
import { continuation, DONE, notApplied, renderItems, statusOf } from './render';

type Action = Exclude<BulkAction, 'purge'>;

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
];

async function act(c: AppContext, action: Action): Promise<Response> {
  const body = await readBody(c, MAX_BATCH_BYTES);
  if (body.job_ids !== undefined && body.filter !== undefined) {
    throw invalidRequest('filter', 'Name the jobs by job_ids or by filter, not both.');
  }
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
  if (!summary) throw notFound('operation', id, 'Operations are remembered for a day after their end.');
  const { action, matched, succeeded, failed, skipped, errors, items } = summary;
  const counts = { action, matched, succeeded, skipped, failed, errors };
  return json(c, { ...continuation(summary), ...counts, ...(items && { items: renderItems(action, items) }) });
}
