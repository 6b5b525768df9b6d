/** Producers' routes: enqueue one job or a batch, read, list, cancel, activate. */
import { Hono } from 'hono';
import { readConfig } from '../../config';
import { readObject } from '../../job/envelope/fields';
import { MAX_BATCH_SIZE } from '../../job/envelope/names';
import { atIndex, type ParsedJob, parseJob } from '../../job/envelope/parse';
import { flatten, renderJob } from '../../job/envelope/render';
import { invalidRequest, payloadTooLarge, unwrap } from '../../job/errors';
import { JOB_STATES, type JobView } from '../../job/record';
import { variablesLayer } from '../../job/retry/variables';
import { enqueueAcross, groupByQueue, refuseTakenIds } from '../batch';
import { MAX_BATCH_BYTES, readBody } from '../body';
import type { AppContext, AppEnv } from '../context';
import { listJobs } from '../job-list';
import { withJob } from '../locate';
import { knownQueues, queueObject } from '../objects';
import { pagination, readPaging } from '../pagination';
import { listParam, oneOf, queueParam, textParam } from '../query';
import { json } from '../respond';

/** Routes below `/ojs/v1`. */
export function jobRoutes(): Hono<AppEnv> {
  const routes = new Hono<AppEnv>();

  routes.post('/jobs', async (c) => {
    const variables = usableVariables(c);
    const parsed = parseJob(await readBody(c), { now: Date.now() });
    const { queue, job, body } = parsed;
    if (job.id !== undefined) await refuseTakenIds(c.env, [parsed], false);
    const [view] = unwrap(await queueObject(c.env, queue).enqueue(queue, [job])).jobs;
    if (view === undefined) throw new Error(`Queue ${queue} gave no receipt for a job it accepted.`);
    const envelope = renderJob(view, variables, body);
    return json(c, { job: envelope, ...flatten(envelope) }, 201, { Location: `/ojs/v1/jobs/${view.record.id}` });
  });

  routes.post('/jobs/batch', async (c) => {
    const variables = usableVariables(c);
    const parsed = parseBatch(await readBody(c, MAX_BATCH_BYTES));
    await refuseTakenIds(c.env, parsed, true);
    const views = unwrap(await enqueueAcross(c.env, groupByQueue(parsed)));
    const jobs = views.map((view, index) => renderJob(view, variables, parsed[index]?.body));
    return json(c, { jobs, enqueued: jobs.length, failed: 0 }, 201);
  });

  routes.get('/jobs', async (c) => {
    const paging = readPaging(c);
    const states = oneOf(listParam(c, 'state'), JOB_STATES, 'state');
    const type = textParam(c, 'type');
    const queues = queueParam(c, 'queue') ?? (await knownQueues(c.env));
    const page = await listJobs(c.env, { queues, ...(states && { states }), ...(type && { type }) }, paging);
    const { retryVariables } = readConfig(c.env);
    return json(c, {
      jobs: page.jobs.map((view) => renderJob(view, retryVariables)),
      total: page.total,
      pagination: pagination(paging, page.total, page.hasMore, page.nextCursor),
    });
  });

  routes.get('/jobs/:id', async (c) => {
    const id = c.req.param('id');
    return answerJob(c, unwrap(await withJob(c.env, id, (queue, name) => queue.get(name, id))));
  });

  routes.delete('/jobs/:id', (c) => cancel(c, c.req.param('id')));
  routes.post('/jobs/:id/cancel', (c) => cancel(c, c.req.param('id')));

  routes.post('/jobs/:id/activate', async (c) => {
    const id = c.req.param('id');
    return answerJob(c, unwrap(await withJob(c.env, id, (queue, name) => queue.activate(name, id))));
  });

  return routes;
}

/** Cancels a job that has not ended. */
async function cancel(c: AppContext, id: string): Promise<Response> {
  return answerJob(c, unwrap(await withJob(c.env, id, (queue, name) => queue.cancel(name, id))));
}

function answerJob(c: AppContext, view: JobView): Response {
  const envelope = renderJob(view, readConfig(c.env).retryVariables);
  return json(c, { job: envelope, ...flatten(envelope) });
}

/** The retry variables, found usable before anything is written: a job must not be accepted under no policy at all. */
function usableVariables(c: AppContext) {
  const { retryVariables } = readConfig(c.env);
  variablesLayer(retryVariables);
  return retryVariables;
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
