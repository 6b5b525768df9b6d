/** Jobs one by one: enqueue, read, list, change, cancel, activate. */
import { countJobs, listJobs } from '../../across/job-list';
import { type AppContext, json } from '../context';
import { filterFromQuery } from '../request/filter/from-query';
import { holdPage } from '../request/held';
import { listMembers, readPaging } from '../request/pagination';
import { callJob } from '../request/path';
import { DATA, del, get, patch, post, type Route } from '../route';
import { enqueueBatch, enqueueOne } from './enqueue';
import { patchJob } from './patch';
import { answerJob, envelopeOf } from './render';

/** Routes below `/ojs/v1`. */
export const jobRoutes: readonly Route[] = [
  post('/jobs', enqueueOne, { ...DATA, takesIdempotencyKey: true }),
  post('/jobs/batch', enqueueBatch, { ...DATA, takesIdempotencyKey: true }),
  get('/jobs', list),
  get('/jobs/count', async (c) => json(c, { count: await countJobs(c.env, filterFromQuery(c, Date.now())) })),
  get('/jobs/:id', async (c) => answerJob(c, await callJob(c, (queue, id) => queue.get(id)))),
  patch('/jobs/:id', async (c) => answerJob(c, await patchJob(c)), DATA),
  del('/jobs/:id', cancel, DATA),
  post('/jobs/:id/cancel', cancel, DATA),
  post('/jobs/:id/activate', async (c) => answerJob(c, await callJob(c, (queue, id) => queue.activate(id))), DATA),
];

async function list(c: AppContext): Promise<Response> {
  const paging = readPaging(c);
  const selection = filterFromQuery(c, Date.now());
  await holdPage(c, paging);
  const page = await listJobs(c.env, selection, paging);
  return json(c, { jobs: page.jobs.map((view) => envelopeOf(c, view)), ...listMembers(paging, page) });
}

/** Cancels a job that has not ended. */
async function cancel(c: AppContext): Promise<Response> {
  return answerJob(c, await callJob(c, (queue, id) => queue.cancel(id)));
}
