/** Operators' routes over jobs and dead letters, below `/ojs/v1/admin`: lists, changes, and operations by filter. */
import { Hono } from 'hono';
import { readConfig } from '../../config';
import { type Envelope, renderJob } from '../../job/envelope/render';
import { unsupported, unwrap } from '../../job/errors';
import type { BulkAction } from '../../queue/operations/api';
import { withJob } from '../../routing/locate';
import { knownQueues } from '../../routing/objects';
import { readBody } from '../body';
import type { AppContext, AppEnv } from '../context';
import { deadLetters } from '../dead-letter-bulk';
import { deadLetterStats } from '../dead-letter-list';
import { filterFromBody, filterFromQuery } from '../filter';
import { listJobs } from '../job-list';
import { patchJob } from '../job-patch';
import { bulkSummary, locationOf, unconfirmed } from '../operation-answers';
import { operate, patience } from '../operations';
import { pagination, readPaging } from '../pagination';
import { oneOf, textParam } from '../query';
import { json } from '../respond';
import { deadLetterPage, retryDeadLetter } from './dead-letter';

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
    unwrap(await withJob(c.env, id, (queue, name) => queue.deleteDeadLetter(name, id)));
    return c.body(null, 204);
  });
  return routes;
}

/** A page of jobs without what they carry. */
async function listForOperators(c: AppContext): Promise<Response> {
  const paging = readPaging(c, 'page');
  const sort = oneOf([textParam(c, 'sort') ?? 'created_at'], ['created_at', 'scheduled_at', 'priority'], 'sort')?.[0];
  const order = oneOf([textParam(c, 'order') ?? 'desc'], ['asc', 'desc'], 'order')?.[0];
  if (sort !== 'created_at' || order !== 'desc') {
    throw unsupported('Jobs are listed by created_at, newest first; narrow the list with a filter.', {
      field: sort === 'created_at' ? 'order' : 'sort',
    });
  }
  const { filter, queues } = filterFromQuery(c, Date.now());
  const page = await listJobs(c.env, { queues: queues ?? (await knownQueues(c.env)), filter }, paging);
  const { retryVariables } = readConfig(c.env);
  return json(c, {
    items: page.jobs.map((view) => summaryOf(renderJob(view, retryVariables))),
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
  const { filter, queues } = filterFromBody(body.filter, Date.now());
  const summary = await operate(c.env, action, filter, queues, patience(c));
  return json(c, bulkSummary(action, summary), summary.done ? 200 : 202, locationOf(summary));
}
