/** Operators' view of the workers that pull, and what they tell them. */
import { directWorkers, jobsLeasedBy, knownWorker, removeWorker } from '../../across/workers';
import { optional, readWord } from '../../job/envelope/fields';
import { invalidRequest } from '../../job/errors';
import { formatInstant } from '../../job/time';
import type { Directive } from '../../rpc/directory';
import type { LeasedJob } from '../../rpc/workers';
import { type AppContext, json } from '../context';
import { readBody } from '../request/body';
import { pathParam } from '../request/path';
import { del, get, post, type Route } from '../route';
import { renderWorker } from '../workers/render';
import { readWorkerId } from '../workers/reports';
import { listWorkers } from '../workers/routes';

const DIRECTIVES: readonly Directive[] = ['running', 'quiet', 'terminate'];

/** Routes below `/ojs/v1/admin`. */
export const adminWorkerRoutes: readonly Route[] = [
  get('/workers', (c) => listWorkers(c, 'page')),
  post('/workers/directive', direct),
  get('/workers/:id', show),
  post('/workers/:id/quiet', quiet),
  del('/workers/:id', async (c) => {
    await removeWorker(c.env, pathParam(c, 'id'));
    return c.body(null, 204);
  }),
];

/** Tells all known workers what to do, or the one named by `worker_id`. */
async function direct(c: AppContext): Promise<Response> {
  const body = await readBody(c);
  const directive = optional(body, 'directive', readWord(DIRECTIVES));
  if (directive === undefined) throw invalidRequest('directive', 'directive is required.');
  const only = optional(body, 'worker_id', readWorkerId);
  if (only !== undefined) await knownWorker(c.env, only);
  const told = await directWorkers(c.env, directive, only === undefined ? undefined : [only]);
  return json(c, { directive, updated: told.length });
}

async function show(c: AppContext): Promise<Response> {
  const worker = await knownWorker(c.env, pathParam(c, 'id'));
  return json(c, { ...renderWorker(worker), jobs: (await jobsLeasedBy(c.env, worker.id)).map(renderLeased) });
}

async function quiet(c: AppContext): Promise<Response> {
  const { id } = await knownWorker(c.env, pathParam(c, 'id'));
  await directWorkers(c.env, 'quiet', [id]);
  return json(c, renderWorker(await knownWorker(c.env, id)));
}

function renderLeased({ started_at, lease_expires_at, ...job }: LeasedJob) {
  return {
    ...job,
    state: 'active',
    started_at: formatInstant(started_at),
    lease_expires_at: formatInstant(lease_expires_at),
  };
}
