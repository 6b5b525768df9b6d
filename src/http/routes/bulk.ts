/** Routes that act on many jobs: enqueue each on its own, cancel, retry and delete by ids or by filter. */
import { Hono } from 'hono';
import { readList, readString } from '../../job/envelope/fields';
import { MAX_BATCH_SIZE } from '../../job/envelope/names';
import { invalidRequest, notFound, payloadTooLarge } from '../../job/errors';
import type { BulkItem } from '../../queue/operations/api';
import { actOnAll, actOnEach } from '../act-on-ids';
import { readAtomicity } from '../atomicity';
import { type JsonObject, MAX_BATCH_BYTES, readBody } from '../body';
import { enqueueBulk } from '../bulk-enqueue';
import type { AppContext, AppEnv } from '../context';
import { beginKeyed, REPLAYED } from '../idempotency';
import { continuation, operateByFilter, statusOf } from '../operation-answers';
import { findOperation, type OperationSummary, patience } from '../operations';
import { json } from '../respond';

/** Action → the counter that says how many jobs it was done to. */
const COUNTERS = { cancel: 'cancelled', retry: 'retried', delete: 'deleted' } as const;

const MAX_IDS = 1000;

/** Routes below `/ojs/v1`. They stand before the routes of single jobs, where `bulk` would be an id. */
export function bulkRoutes(): Hono<AppEnv> {
  const routes = new Hono<AppEnv>();
  routes.post('/jobs/bulk', (c) => enqueueBulk(c));
  for (const action of ['cancel', 'retry', 'delete'] as const) {
    routes.post(`/jobs/bulk/${action}`, async (c) => {
      const body = await readBody(c, MAX_BATCH_BYTES);
      if (body.job_ids !== undefined && body.filter !== undefined) {
        throw invalidRequest('filter', 'Name the jobs by job_ids or by filter, not both.');
      }
      const atomic = readAtomicity(body) === 'atomic';
      if (body.job_ids !== undefined) return byIds(c, action, body, atomic);
      if (atomic) throw invalidRequest('atomicity', 'All or nothing is offered for job_ids only.');
      const { summary, headers } = await operateByFilter(c, action, body);
      return answer(c, action, summary, headers);
    });
  }
  routes.get('/jobs/bulk/:id', async (c) => {
    const id = c.req.param('id');
    const summary = await findOperation(c.env, id, c.req.query('wait') === undefined ? 0 : patience(c));
    if (!summary) throw notFound('operation', id, 'Operations are remembered for a day after their end.');
    return json(c, progressOf(summary));
  });
  return routes;
}

function readIds(value: unknown): string[] {
  if (Array.isArray(value) && value.length > MAX_BATCH_SIZE) {
    throw payloadTooLarge('job_ids', value.length, MAX_BATCH_SIZE, 'ids');
  }
  const ids = readList(MAX_IDS, readString)(value, 'job_ids');
  if (ids.length > 0) return ids;
  throw invalidRequest('job_ids', 'job_ids must name at least one job.');
}

async function byIds(
  c: AppContext,
  action: keyof typeof COUNTERS,
  body: JsonObject,
  atomic: boolean,
): Promise<Response> {
  const ids = readIds(body.job_ids);
  const keyed = await beginKeyed(c, body);
  const { items, applied } = await (atomic ? actOnAll : actOnEach)(c.env, action, ids, keyed);
  const counter = COUNTERS[action];
  const word = (item: BulkItem) => {
    if (item.status !== 'done') return { status: item.status, reason: item.reason };
    return applied ? { status: counter } : { status: 'skipped', reason: 'rolled_back' };
  };
  const rendered = items.map((item, index) => ({ index, job_id: item.job_id, ...word(item) }));
  const count = (status: string) => rendered.filter((item) => item.status === status).length;
  const failed = count('failed');
  return json(
    c,
    { total_matched: ids.length, [counter]: count(counter), skipped: count('skipped'), failed, items: rendered },
    applied ? (failed > 0 ? 207 : 200) : 422,
    applied && keyed?.operation.replayed ? REPLAYED : {},
  );
}

function answer(
  c: AppContext,
  action: keyof typeof COUNTERS,
  summary: OperationSummary,
  headers: Record<string, string>,
): Response {
  const { matched, succeeded, skipped, failed, errors } = summary;
  const items = errors.map(({ job_id, error }, index) => ({ index, job_id, status: 'failed', reason: error }));
  const counts = { total_matched: matched, [COUNTERS[action]]: succeeded, skipped, failed, items };
  return json(c, { ...counts, ...continuation(summary) }, statusOf(summary), headers);
}

function progressOf(summary: OperationSummary): Record<string, unknown> {
  const { matched, succeeded, failed, skipped, errors } = summary;
  return { ...continuation(summary), matched, succeeded, skipped, failed, errors };
}
