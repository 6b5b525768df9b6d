/** Operators' routes over queues, below `/ojs/v1/admin`. */
import { Hono } from 'hono';
import { inParallel } from '../../durable/parallel';
import { notFound, unwrap } from '../../job/errors';
import { modeOf } from '../../job/settings';
import { formatInstant } from '../../job/time';
import type { QueueStats } from '../../rpc/queue';
import { directoryObject, queueObject } from '../../rpc/stubs';
import { continuation, locationOf, unconfirmed } from '../bulk/answers';
import type { AppContext, AppEnv } from '../context';
import { parseQueueConfig, renderQueueConfig } from '../queues/config';
import { purge } from '../queues/manage';
import { setPaused } from '../queues/routes';
import { readBody } from '../request/body';
import { pageByName, readPaging } from '../request/pagination';
import { queueNameIn } from '../request/path';
import { json } from '../respond';

/** Routes below `/ojs/v1/admin`. */
export function adminQueueRoutes(): Hono<AppEnv> {
  const routes = new Hono<AppEnv>();

  routes.get('/queues', async (c) => {
    const paging = readPaging(c, 'page');
    const known = (await directoryObject(c.env).list()).sort((a, b) => (a.name < b.name ? -1 : 1));
    const page = pageByName(known, ({ name }) => name, paging);
    const items = await inParallel(page.items, async ({ name, created_at }) => ({
      ...(await itemOf(c, await statsOf(c, name))),
      created_at: formatInstant(created_at),
    }));
    return json(c, { items, total: known.length, pagination: page.pagination });
  });

  routes.get('/queues/:name', async (c) => json(c, await detailOf(c, queueNameIn(c.req.param('name')))));
  routes.post('/queues/:name/pause', (c) => setPaused(c, c.req.param('name'), 'pause'));
  routes.post('/queues/:name/resume', (c) => setPaused(c, c.req.param('name'), 'resume'));

  routes.put('/queues/:name/config', async (c) => {
    const name = queueNameIn(c.req.param('name'));
    const given = await readBody(c);
    unwrap(await queueObject(c.env, name).configure(parseQueueConfig(given)));
    return json(c, { ...(await detailOf(c, name)), config: given });
  });

  routes.delete('/queues/:name/jobs', async (c) => {
    const body = await readBody(c);
    if (body.confirm !== true) throw unconfirmed();
    const { summary, states } = await purge(c, queueNameIn(c.req.param('name')), body);
    return json(
      c,
      { purged_count: summary.succeeded, states, ...continuation(summary) },
      summary.done ? 200 : 202,
      locationOf(summary),
    );
  });

  return routes;
}

async function statsOf(c: AppContext, name: string): Promise<QueueStats> {
  return unwrap(await queueObject(c.env, name).stats());
}

/** One queue as operators see it in a list. */
async function itemOf(c: AppContext, stats: QueueStats) {
  const { queue: name, paused, counts, computed_at } = stats;
  const { oldest_available_at: oldest, completed_per_minute } = await queueObject(c.env, name).activity();
  const state = modeOf(stats);
  return {
    ...{ name, state, status: state, paused, counts },
    throughput: completed_per_minute,
    latency_ms: oldest === null ? 0 : Math.max(0, computed_at - oldest),
    oldest_available_at: oldest === null ? null : formatInstant(oldest),
  };
}

async function detailOf(c: AppContext, name: string): Promise<Record<string, unknown>> {
  const stats = await statsOf(c, name);
  if (!stats.exists) throw notFound('queue', name);
  return {
    ...(await itemOf(c, stats)),
    ...(stats.created_at !== undefined && { created_at: formatInstant(stats.created_at) }),
    configuration: renderQueueConfig(unwrap(await queueObject(c.env, name).config())),
  };
}
