/** Unique jobs that keep others away. */
import { type HeldInQueue, listHeldUniques } from '../../across/held-uniques';
import { given } from '../../job/envelope/fields';
import { formatInstant } from '../../job/time';
import { type AppContext, json } from '../context';
import { listMembers, readPaging } from '../request/pagination';
import { queueParam } from '../request/query';
import { get, type Route } from '../route';

/** Routes below `/ojs/v1`. */
export const uniqueJobRoutes: readonly Route[] = [get('/unique-jobs', list)];

async function list(c: AppContext): Promise<Response> {
  const paging = readPaging(c, 'page');
  const page = await listHeldUniques(c.env, queueParam(c, 'queues', 'queue'), paging);
  return json(c, { items: page.items.map(render), ...listMembers(paging, page) });
}

/** `locked_until` is null where no period ends it: then it lasts as long as the job's state counts. */
function render({ fingerprint, job_id, type, queue, state, until, created_at }: HeldInQueue) {
  const locked_until = given(until, formatInstant) ?? null;
  return { key: fingerprint, job_id, type, queue, state, locked_until, created_at: formatInstant(created_at) };
}
