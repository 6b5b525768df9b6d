/** Routes about queues: list, state, counts, pause, resume, settings. */
import { Hono } from 'hono';
import { inParallel } from '../../durable/parallel';
import { notFound, unwrap } from '../../job/errors';
import { modeOf, withBuiltIns } from '../../job/settings';
import { formatInstant } from '../../job/time';
import type { QueueStats } from '../../rpc/queue';
import { directoryObject, queueObject } from '../../rpc/stubs';
import type { AppContext, AppEnv } from '../context';
import { readBody, readOptionalBody } from '../request/body';
import { pageByName, readPaging } from '../request/pagination';
import { queueNameIn } from '../request/path';
import { json } from '../respond';
import { parseQueueConfig, renderQueueConfig } from './config';

/** Routes below `/ojs/v1`. */
export function queueRoutes(): Hono<AppEnv> {
  const routes = new Hono<AppEnv>();
  routes.get('/queues', listQueues);

  routes.get('/queues/:name', async (c) => {
    const name = queueNameIn(c.req.param('name'));
    const stats = await readStats(c, name);
    if (!stats.exists) throw notFound('queue', name);
    const config = renderQueueConfig(unwrap(await queueObject(c.env, name).config()));
    const state = modeOf(stats);
    const created = stats.created_at === undefined ? {} : { created_at: formatInstant(stats.created_at) };
    return json(c, {
      queue: { ...statusOf(name, stats), state, ...created },
      ...statusOf(name, stats),
      state,
      config,
      stats: countsOf(stats),
      ...created,
    });
  });

  routes.get('/queues/:name/stats', async (c) => {
    const name = queueNameIn(c.req.param('name'));
    const stats = await readStats(c, name);
    const flat = { ...statusOf(name, stats), ...stats.counts };
    return json(c, {
      queue: flat,
      ...flat,
      stats: countsOf(stats),
      computed_at: formatInstant(stats.computed_at),
    });
  });

  routes.post('/queues/:name/pause', (c) => setPaused(c, c.req.param('name'), 'pause'));
  routes.post('/queues/:name/resume', (c) => setPaused(c, c.req.param('name'), 'resume'));

  routes.get('/queues/:name/config', async (c) => {
    const name = queueNameIn(c.req.param('name'));
    const { own, effective } = unwrap(await queueObject(c.env, name).settings());
    return json(c, {
      name,
      config: renderQueueConfig(own),
      effective: renderQueueConfig(withBuiltIns(effective)),
    });
  });

  routes.put('/queues/:name/config', async (c) => {
    const name = queueNameIn(c.req.param('name'));
    const change = parseQueueConfig(await readBody(c));
    return json(c, { name, config: renderQueueConfig(unwrap(await queueObject(c.env, name).configure(change))) });
  });

  return routes;
}

/** All known queues by name, a page at a time. */
export async function listQueues(c: AppContext): Promise<Response> {
  const paging = readPaging(c);
  const known = (await directoryObject(c.env).list()).sort((a, b) => (a.name < b.name ? -1 : 1));
  const page = pageByName(known, ({ name }) => name, paging);
  const queues = await inParallel(page.items, async ({ name, created_at }) => ({
    ...statusOf(name, await readStats(c, name)),
    created_at: formatInstant(created_at),
  }));
  return json(c, { queues, items: queues, total: known.length, pagination: page.pagination });
}

/** Pauses or resumes a queue. */
export async function setPaused(c: AppContext, path: string, action: 'pause' | 'resume'): Promise<Response> {
  const name = queueNameIn(path);
  await readOptionalBody(c);
  const status = unwrap(await queueObject(c.env, name)[action]());
  return json(c, {
    queue: statusOf(name, status),
    ...statusOf(name, status),
    [action === 'pause' ? 'paused_at' : 'resumed_at']: formatInstant(status.changed_at),
  });
}

async function readStats(c: AppContext, name: string): Promise<QueueStats> {
  return unwrap(await queueObject(c.env, name).stats());
}

function statusOf(name: string, mode: { paused: boolean; draining?: boolean }) {
  return { name, paused: mode.paused, status: modeOf(mode) };
}

/** The counts as the statistics tool wants them; `depth` is what has not ended. */
function countsOf({ queue, counts, dead }: QueueStats) {
  const { completed, cancelled, discarded, ...open } = counts;
  const depth = Object.values(open).reduce((sum, count) => sum + count, 0);
  return { queue, depth, dead, ...open, completed, cancelled, discarded };
}
