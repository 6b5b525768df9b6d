/** Producers' routes: enqueue one job or a batch, read, list, cancel, activate. */
import { Hono } from 'hono';
import { refuseTakenIds } from '../../across/batch';
import { enqueueEntries } from '../../across/enqueue';
import { countJobs, listJobs } from '../../across/job-list';
import { withJob } from '../../across/locate';
import { knownQueues } from '../../across/queues';
import { readConfig } from '../../config';
import { readObject } from '../../job/envelope/fields';
import { MAX_BATCH_SIZE } from '../../job/envelope/names';
import { atIndex, type ParsedJob, parseJob, withFingerprint } from '../../job/envelope/parse';
import { flatten, renderJob } from '../../job/envelope/render';
import { invalidRequest, payloadTooLarge, unwrap } from '../../job/errors';
import type { JobView } from '../../job/record';
import type { IdempotencyKey } from '../../rpc/operations';
import type { EnqueuedJob } from '../../rpc/queue';
import { queueObject } from '../../rpc/stubs';
import type { AppContext, AppEnv } from '../context';
import { MAX_BATCH_BYTES, readBody } from '../request/body';
import { filterFromQuery } from '../request/filter';
import { REPLAYED, readIdempotency } from '../request/idempotency';
import { pagination, readPaging } from '../request/pagination';
import { json } from '../respond';
import { renderEnqueued, usableVariables } from './enqueued';
import { limitHeaders } from './limit-headers';
import { patchJob } from './patch';

/** Routes below `/ojs/v1`. */
export function jobRoutes(): Hono<AppEnv> {
  const routes = new Hono<AppEnv>();

  routes.post('/jobs', async (c) => {
    const variables = usableVariables(c);
    const body = await readBody(c);
    const idempotency = await readIdempotency(c, body);
    const parsed = await withFingerprint(parseJob(body, { now: Date.now() }));
    const earlier = await recallAnswer(c, [parsed], idempotency);
    if (!earlier && parsed.job.id !== undefined) await refuseTakenIds(c.env, [parsed], false);
    const [view] = earlier ?? unwrap(await enqueueEntries(c.env, [parsed], false, idempotency));
    if (view === undefined) throw new Error(`Queue ${parsed.queue} gave no receipt for a job it accepted.`);
    const envelope = renderEnqueued(view, parsed, variables);
    const headers = earlier ? REPLAYED : limitHeaders([view]);
    if (view.deduplicated) return json(c, { job: envelope, ...flatten(envelope), deduplicated: true }, 200, headers);
    const location = { Location: `/ojs/v1/jobs/${view.record.id}` };
    return json(c, { job: envelope, ...flatten(envelope) }, 201, { ...location, ...headers });
  });

  routes.post('/jobs/batch', async (c) => {
    const variables = usableVariables(c);
    const body = await readBody(c, MAX_BATCH_BYTES);
    const idempotency = await readIdempotency(c, body);
    const parsed = await Promise.all(parseBatch(body).map(withFingerprint));
    const earlier = await recallAnswer(c, parsed, idempotency);
    if (!earlier) await refuseTakenIds(c.env, parsed, true);
    const views = earlier ?? unwrap(await enqueueEntries(c.env, parsed, true, idempotency));
    const jobs = views.map((view, index) => ({
      ...renderEnqueued(view, parsed[index], variables),
      ...(view.deduplicated && { deduplicated: true }),
    }));
    const deduplicated = views.filter((view) => view.deduplicated).length;
    const counts = { enqueued: jobs.length - deduplicated, ...(deduplicated > 0 && { deduplicated }), failed: 0 };
    return json(c, { jobs, ...counts }, 201, earlier ? REPLAYED : limitHeaders(views));
  });

  routes.get('/jobs', async (c) => {
    const paging = readPaging(c);
    const { filter, queues } = filterFromQuery(c, Date.now());
    const page = await listJobs(c.env, { queues: queues ?? (await knownQueues(c.env)), filter }, paging);
    const { retryVariables } = readConfig(c.env);
    return json(c, {
      jobs: page.jobs.map((view) => renderJob(view, retryVariables)),
      total: page.total,
      ...(page.atLeast && { total_is_exact: false }),
      pagination: pagination(paging, page.total, page.hasMore, page.nextCursor),
    });
  });

  routes.get('/jobs/count', async (c) => {
    const { filter, queues } = filterFromQuery(c, Date.now());
    return json(c, { count: await countJobs(c.env, { queues: queues ?? (await knownQueues(c.env)), filter }) });
  });

  routes.get('/jobs/:id', async (c) => {
    const id = c.req.param('id');
    return answerJob(c, unwrap(await withJob(c.env, id, (queue) => queue.get(id))));
  });

  routes.patch('/jobs/:id', async (c) => answerJob(c, await patchJob(c, c.req.param('id'))));

  routes.delete('/jobs/:id', (c) => cancel(c, c.req.param('id')));
  routes.post('/jobs/:id/cancel', (c) => cancel(c, c.req.param('id')));

  routes.post('/jobs/:id/activate', async (c) => {
    const id = c.req.param('id');
    return answerJob(c, unwrap(await withJob(c.env, id, (queue) => queue.activate(id))));
  });

  return routes;
}

/** Cancels a job that has not ended. */
async function cancel(c: AppContext, id: string): Promise<Response> {
  return answerJob(c, unwrap(await withJob(c.env, id, (queue) => queue.cancel(id))));
}

function answerJob(c: AppContext, view: JobView): Response {
  const envelope = renderJob(view, readConfig(c.env).retryVariables);
  return json(c, { job: envelope, ...flatten(envelope) });
}

/** What was answered under this key before, by the queue of the first job. @throws {ApiError} 409 to another request */
async function recallAnswer(
  c: AppContext,
  [first]: readonly ParsedJob[],
  idempotency: IdempotencyKey | undefined,
): Promise<EnqueuedJob[] | undefined> {
  if (!idempotency || !first) return undefined;
  return unwrap(await queueObject(c.env, first.queue).recall(idempotency))?.jobs;
}

/** Reads every entry before any is written. @throws {ApiError} with `details.index` of the first wrong entry */
function parseBatch(body: Record<string, unknown>): ParsedJob[] {
  const { jobs } = body;
  if (!Array.isArray(jobs)) throw invalidRequest('jobs', 'jobs is required and must be an array.');
  if (jobs.length === 0) throw invalidRequest('jobs', 'jobs must have at least one entry.');
  if (jobs.length > MAX_BATCH_SIZE) throw payloadTooLarge('jobs', jobs.length, MAX_BATCH_SIZE, 'jobs');
  const now = Date.now();
  return jobs.map((entry: unknown, index) => {
    try {
      return parseJob(readObject(entry, `jobs[${index}]`), { now, path: `jobs[${index}]` });
    } catch (error) {
      throw atIndex(error, index);
    }
  });
}
