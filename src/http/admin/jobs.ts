/** Operators' routes over jobs and dead letters, below `/ojs/v1/admin`: lists, changes, and operations by filter. */
import { Hono } from 'hono';
import { deadLetterStats } from '../../across/dead-letters';
import { listJobs } from '../../across/job-list';
import { withJob } from '../../across/locate';
import { knownQueues } from '../../across/queues';
import { listSorted } from '../../across/sorted-list';
import { readConfig } from '../../config';
import { type Envelope, renderJob } from '../../job/envelope/render';
import { unwrap } from '../../job/errors';
import type { JobView } from '../../job/record';
import { type BulkAction, SORT_KEYS, type SortKey } from '../../rpc/operations';
import { allOrNoneByFilter, allOrNoneSummary, bulkSummary, operateByFilter, unconfirmed } from '../bulk/answers';
import type { AppContext, AppEnv } from '../context';
import { deadLetters } from '../dead-letter/bulk';
import { deadLetterPage, retryDeadLetter } from '../dead-letter/routes';
import { patchJob } from '../jobs/patch';
import { readAtomicity } from '../request/atomicity';
import { readBody } from '../request/body';
import { filterFromQuery } from '../request/filter';
import { REPLAYED } from '../request/idempotency';
import { pagination, readPaging } from '../request/pagination';
import { oneOf, textParam } from '../request/query';
import { json } from '../respond';

/** Routes below `/ojs/v1/admin`. They stand before those of single jobs. */
export function adminBulkRoutes(): Hono<AppEnv> {
  const routes = new Hono<AppEnv>();
  routes.get('/jobs', listForOperators);
  for (const action of ['retry', 'cancel', 'delete'] as const) {
    routes.post(`/jobs/bulk/${action}`, (c) => byFilter(c, action));
  }
  routes.patch('/jobs/:id', async (c) => {
    const view = await patchJob(c, c.req.param('id'));
    return json(c, { job: renderJob(view, readConfig(c.env).retryVariables) });
  });
  routes.get('/dead-letter', (c) => deadLetterPage(c, 'page'));
  routes.get('/dead-letter/stats', async (c) => json(c, await deadLetterStats(c.env, await knownQueues(c.env))));
  routes.post('/dead-letter/retry', (c) => deadLetters(c, 'retry'));
  routes.delete('/dead-letter', (c) => deadLetters(c, 'delete'));
  routes.post('/dead-letter/:id/retry', (c) => retryDeadLetter(c, c.req.param('id')));
  routes.delete('/dead-letter/:id', async (c) => {
    const id = c.req.param('id');
    unwrap(await withJob(c.env, id, (queue) => queue.deleteDeadLetter(id)));
    return c.body(null, 204);
  });
  return routes;
}

/** A page of jobs without what they carry. */
async function listForOperators(c: AppContext): Promise<Response> {
  const paging = readPaging(c, 'page');
  const sort = oneOf([textParam(c, 'sort') ?? 'created_at'], SORT_KEYS, 'sort')?.[0] as SortKey;
  const descending = oneOf([textParam(c, 'order') ?? 'desc'], ['asc', 'desc'], 'order')?.[0] === 'desc';
  const { filter, queues } = filterFromQuery(c, Date.now());
  const wanted = { queues: [...new Set(queues ?? (await knownQueues(c.env)))], filter };
  const { retryVariables } = readConfig(c.env);
  const render = (view: JobView) => summaryOf(renderJob(view, retryVariables));
  if (sort !== 'created_at' || !descending) {
    const { items, total } = await listSorted(c.env, wanted, { sort, descending }, paging, render);
    const hasMore = total > paging.offset + paging.limit;
    return json(c, { items, total, pagination: pagination(paging, total, hasMore, null) });
  }
  const page = await listJobs(c.env, wanted, paging);
  return json(c, {
    items: page.jobs.map(render),
    total: page.total,
    ...(page.atLeast && { total_is_exact: false }),
    pagination: pagination(paging, page.total, page.hasMore, page.nextCursor),
  });
}

/** Everything about a job but its payload and its history. */
function summaryOf(envelope: Envelope): Envelope {
  const { args: _, meta: __, result: ___, errors: ____, retry_effective: _____, ...summary } = envelope;
  return summary;
}

async function byFilter(c: AppContext, action: BulkAction): Promise<Response> {
  const body = await readBody(c);
  if (body.confirm !== true) throw unconfirmed();
  if (readAtomicity(body) === 'atomic') {
    const answer = await allOrNoneByFilter(c, action, body);
    const headers = answer.replayed ? REPLAYED : {};
    return json(c, allOrNoneSummary(action, answer), answer.applied ? 200 : 422, headers);
  }
  const { summary, headers } = await operateByFilter(c, action, body);
  return json(c, bulkSummary(action, summary), summary.done ? 200 : 202, headers);
}
