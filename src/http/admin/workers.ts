/** Operators' view of the workers that pull, and what they tell them. */
import { Hono } from 'hono';
import { knownQueues } from '../../across/queues';
import { inParallel } from '../../durable/parallel';
import { optional, type Reader } from '../../job/envelope/fields';
import { conflict, invalidRequest, notFound, unwrap } from '../../job/errors';
import { formatInstant } from '../../job/time';
import type { Directive, WorkerView } from '../../rpc/directory';
import { directoryObject, queueObject } from '../../rpc/stubs';
import type { HeldJob } from '../../rpc/workers';
import type { AppContext, AppEnv } from '../context';
import { readBody } from '../request/body';
import { json } from '../respond';
import { readWorkerId } from '../workers/reports';
import { listWorkers, renderWorker, tellQueues } from '../workers/routes';

const DIRECTIVES: readonly Directive[] = ['running', 'quiet', 'terminate'];

/** Routes below `/ojs/v1/admin`. */
export function adminWorkerRoutes(): Hono<AppEnv> {
  const routes = new Hono<AppEnv>();
  routes.get('/workers', (c) => listWorkers(c, 'page'));
  routes.post('/workers/directive', directive);
  routes.get('/workers/:id', async (c) => {
    const worker = await mustKnow(c, c.req.param('id'));
    return json(c, { ...renderWorker(worker), jobs: (await heldJobs(c, worker.id)).map(renderHeld) });
  });
  routes.post('/workers/:id/quiet', async (c) => {
    const { id } = await mustKnow(c, c.req.param('id'));
    await tell(c, 'quiet', [id]);
    return json(c, renderWorker(await mustKnow(c, id)));
  });
  routes.delete('/workers/:id', remove);
  return routes;
}

const readDirective: Reader<Directive> = (value, field) => {
  const known = DIRECTIVES.find((directive) => directive === value);
  if (known !== undefined) return known;
  throw invalidRequest(field, `${field} must be one of ${DIRECTIVES.join(', ')}.`);
};

/** Tells all known workers what to do, or the one named by `worker_id`. */
async function directive(c: AppContext): Promise<Response> {
  const body = await readBody(c);
  const wanted = optional(body, 'directive', readDirective);
  if (wanted === undefined) throw invalidRequest('directive', 'directive is required.');
  const only = optional(body, 'worker_id', readWorkerId);
  if (only !== undefined) await mustKnow(c, only);
  const told = await tell(c, wanted, only === undefined ? undefined : [only]);
  return json(c, { directive: wanted, updated: told.length });
}

/** The directory first: a queue that has just woken asks it. */
async function tell(c: AppContext, directive: Directive, ids: string[] | undefined): Promise<string[]> {
  const told = await directoryObject(c.env).direct(directive, ids);
  if (told.length === 0) return told;
  if (directive !== 'running') await tellQueues(c, told, true);
  else {
    // Some go on being silent: they said themselves that they are leaving.
    const silent = new Set(await directoryObject(c.env).silencedWorkers());
    await tellQueues(
      c,
      told.filter((id) => !silent.has(id)),
      false,
    );
  }
  return told;
}

async function mustKnow(c: AppContext, id: string): Promise<WorkerView> {
  const worker = await directoryObject(c.env).worker(id);
  if (worker === null) throw notFound('worker', id, 'Workers are known from their first heartbeat on.');
  return worker;
}

async function heldJobs(c: AppContext, workerId: string): Promise<HeldJob[]> {
  const answers = await inParallel(await knownQueues(c.env), (name) => queueObject(c.env, name).heldBy(workerId));
  return answers.flat();
}

function renderHeld({ started_at, lease_expires_at, ...job }: HeldJob) {
  return {
    ...job,
    state: 'active',
    started_at: formatInstant(started_at),
    lease_expires_at: formatInstant(lease_expires_at),
  };
}

/** Forgets a worker that is gone, and gives its jobs to others without waiting for their leases to run out. */
async function remove(c: AppContext): Promise<Response> {
  const worker = await mustKnow(c, c.req.param('id') ?? '');
  if (worker.state !== 'stale') throw notStale(worker);
  await inParallel(await knownQueues(c.env), async (name) =>
    unwrap(await queueObject(c.env, name).releaseHeld(worker.id)),
  );
  if ((await directoryObject(c.env).removeWorker(worker.id)) === 'alive') throw notStale(worker);
  if (worker.directive !== 'running') await tellQueues(c, [worker.id], false);
  return c.body(null, 204);
}

function notStale(worker: WorkerView) {
  return conflict(
    `Worker ${worker.id} sent a heartbeat at ${formatInstant(worker.last_heartbeat_at)}; it is not stale.`,
    {
      worker_id: worker.id,
      current_state: worker.state,
      expected_state: 'stale',
    },
  );
}
