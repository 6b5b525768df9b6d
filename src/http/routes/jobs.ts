/** Producers' routes: enqueue one job or a batch, read, list, cancel, activate. */
import { Hono } from 'hono';
import { readConfig } from '../../config';
import { readObject } from '../../job/envelope/fields';
import { MAX_BATCH_SIZE } from '../../job/envelope/names';
import { atIndex, type ParsedJob, parseJob, withFingerprint } from '../../job/envelope/parse';
import { type Envelope, flatten, renderJob } from '../../job/envelope/render';
import { invalidRequest, payloadTooLarge, unwrap } from '../../job/errors';
import { JOB_STATES, type JobView } from '../../job/record';
import { variablesLayer } from '../../job/retry/variables';
import type { EnqueuedJob } from '../../queue/api';
import { refuseTakenIds } from '../batch';
import { MAX_BATCH_BYTES, readBody } from '../body';
import type { AppContext, AppEnv } from '../context';
import { listJobs } from '../job-list';
import { withJob } from '../locate';
import { knownQueues } from '../objects';
import { pagination, readPaging } from '../pagination';
import { listParam, oneOf, queueParam, textParam } from '../query';
import { json } from '../respond';
import { enqueueEntries } from '../unique';

/** Routes below `/ojs/v1`. */
export function jobRoutes(): Hono<AppEnv> {
  const routes = new Hono<AppEnv>();

  routes.post('/jobs', async (c) => {
    const variables = usableVariables(c);
    const parsed = await withFingerprint(parseJob(await readBody(c), { now: Date.now() }));
    if (parsed.job.id !== undefined) await refuseTakenIds(c.env, [parsed], false);
    const [view] = unwrap(await enqueueEntries(c.env, [parsed], false));
    if (view === undefined) throw new Error(`Queue ${parsed.queue} gave no receipt for a job it accepted.`);
    const envelope = renderEnqueued(view, parsed, variables);
    if (view.deduplicated) return json(c, { job: envelope, ...flatten(envelope), deduplicated: true });
    return json(c, { job: envelope, ...flatten(envelope) }, 201, { Location: `/ojs/v1/jobs/${view.record.id}` });
  });

  routes.post('/jobs/batch', async (c) => {
    const variables = usableVariables(c);
    const parsed = await Promise.all(parseBatch(await readBody(c, MAX_BATCH_BYTES)).map(withFingerprint));
    await refuseTakenIds(c.env, parsed, true);
    const views = unwrap(await enqueueEntries(c.env, parsed, true));
    const jobs = views.map((view, index) => ({
      ...renderEnqueued(view, parsed[index], variables),
      ...(view.deduplicated && { deduplicated: true }),
    }));
    const deduplicated = views.filter((view) => view.deduplicated).length;
    const counts = { enqueued: jobs.length - deduplicated, ...(deduplicated > 0 && { deduplicated }), failed: 0 };
    return json(c, { jobs, ...counts }, 201);
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

/** The envelope of an entry's job, which is that of another job when the entry was a duplicate. */
function renderEnqueued(
  view: EnqueuedJob,
  entry: ParsedJob | undefined,
  variables: Parameters<typeof renderJob>[1],
): Envelope {
  const asWritten = entry !== undefined && entry.job.body === view.record.body;
  return renderJob(view, variables, asWritten ? entry.body : undefined);
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
