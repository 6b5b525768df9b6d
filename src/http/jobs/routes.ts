/** Jobs one by one: enqueue, read, list, change, cancel, activate. */
import { countJobs, listJobs } from '../../across/job-list';
import { jobs } from '../../contract/jobs';
import { type AppContext, json } from '../context';
import { pageSeen } from '../request/bounds';
import { filterFromQuery } from '../request/filter/read';
import { holdPage } from '../request/held';
import { listMembers, readPaging } from '../request/pagination';
import { callJob } from '../request/path';
import { serve } from '../route';
import { enqueueBatch, enqueueOne } from './enqueue';
import { patchJob } from './patch';
import { answerJob, envelopesOf } from './render';

export const jobRoutes = serve(jobs, {
  enqueue: enqueueOne,
  enqueueBatch,
  list,
  count: async (c) => json(c, { count: await countJobs(c.env, filterFromQuery(c, Date.now())) }),
  show: async (c) => answerJob(c, await callJob(c, (queue, id) => queue.get(id))),
  change: async (c) => answerJob(c, await patchJob(c)),
  cancel,
  cancelByPost: cancel,
  activate: async (c) => answerJob(c, await callJob(c, (queue, id) => queue.activate(id))),
});

async function list(c: AppContext) {
  const paging = readPaging(c);
  const selection = filterFromQuery(c, Date.now());
  await holdPage(c, paging);
  const page = pageSeen(c, await listJobs(c.env, selection, paging));
  return json(c, { jobs: envelopesOf(c, page.jobs), ...listMembers(paging, page) });
}

async function cancel(c: AppContext) {
  return answerJob(c, await callJob(c, (queue, id) => queue.cancel(id)));
}
