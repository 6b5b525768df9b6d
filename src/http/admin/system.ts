/** Operators' routes, below `/ojs/v1/admin`. */
import { Hono } from 'hono';
import { forgetRoutes, withJob } from '../../across/locate';
import { knownQueues } from '../../across/queues';
import { resetLocks } from '../../across/reservation';
import { readConfig } from '../../config';
import { inParallel } from '../../durable/parallel';
import { renderJob } from '../../job/envelope/render';
import { notFound, unwrap } from '../../job/errors';
import type { JobView } from '../../job/record';
import { previewRetry } from '../../job/retry/preview';
import { directoryObject, queueObject } from '../../rpc/stubs';
import type { AppContext, AppEnv } from '../context';
import { readBody } from '../request/body';
import { json } from '../respond';
import { resetWorkflows } from '../workflows/routes';

const TIMES = [
  'created_at',
  'enqueued_at',
  'started_at',
  'scheduled_at',
  'completed_at',
  'cancelled_at',
  'discarded_at',
] as const;

/** Routes below `/ojs/v1/admin`. */
export function adminRoutes(): Hono<AppEnv> {
  const routes = new Hono<AppEnv>();

  routes.post('/reset', async (c) => {
    if (!readConfig(c.env).testHooks) throw notFound('route', c.req.path, 'TEST_HOOKS is not "true" here.');
    // First, so that none of them enqueues anything afterwards.
    await resetWorkflows(c.env);
    const queues = await knownQueues(c.env);
    await inParallel(queues, (name) => queueObject(c.env, name).reset());
    await resetLocks(c.env);
    await directoryObject(c.env).reset();
    forgetRoutes();
    return json(c, { reset: true, queues: queues.length });
  });

  routes.post('/retry/preview', async (c) => {
    const body = await readBody(c);
    const preview = previewRetry(body, { now: Date.now(), variables: readConfig(c.env).retryVariables });
    return json(c, { ...preview });
  });

  routes.get('/jobs/:id', async (c) => {
    const id = c.req.param('id');
    return json(c, renderForOperators(c, unwrap(await withJob(c.env, id, (queue) => queue.get(id)))));
  });

  routes.post('/jobs/:id/retry', async (c) => {
    const id = c.req.param('id');
    const again = { deadLetterOnly: false };
    const view = unwrap(await withJob(c.env, id, (queue) => queue.redrive(id, again)));
    return json(c, { job: renderJob(view, readConfig(c.env).retryVariables) });
  });

  routes.post('/jobs/:id/cancel', async (c) => {
    const id = c.req.param('id');
    const view = unwrap(await withJob(c.env, id, (queue) => queue.cancel(id)));
    return json(c, { job: renderJob(view, readConfig(c.env).retryVariables) });
  });

  return routes;
}

/** The bare envelope with what explains it: policy, complete history, why it ended. */
function renderForOperators(c: AppContext, view: JobView): Record<string, unknown> {
  const envelope = renderJob(view, readConfig(c.env).retryVariables);
  const { reason, dead_letter } = view.record.history;
  return {
    ...envelope,
    retry_policy: envelope.retry_effective,
    errors: envelope.errors ?? [],
    metadata: Object.fromEntries(TIMES.flatMap((name) => (envelope[name] ? [[name, envelope[name]]] : []))),
    ...(reason !== undefined && { discard_reason: reason }),
    ...(dead_letter !== undefined && { dead_letter }),
  };
}
