import { type HeldInQueue, listHeldUniques } from '../../across/held-uniques';
import { type HeldUnique, uniqueJobs } from '../../contract/unique-jobs';
import { given } from '../../job/envelope/fields';
import { formatInstant } from '../../job/time';
import { type AppContext, json } from '../context';
import { listMembers, readPaging } from '../request/pagination';
import { queueParam } from '../request/query';
import { serve } from '../route';

export const uniqueJobRoutes = serve(uniqueJobs, { list });

async function list(c: AppContext) {
  const paging = readPaging(c, 'page');
  const page = await listHeldUniques(c.env, queueParam(c, 'queues', 'queue'), paging);
  return json(c, { items: page.items.map(render), ...listMembers(paging, page) });
}

function render({ fingerprint, job_id, type, queue, state, until, created_at }: HeldInQueue): HeldUnique {
  const locked_until = given(until, formatInstant) ?? null;
  return { key: fingerprint, job_id, type, queue, state, locked_until, created_at: formatInstant(created_at) };
}
