/** Queues: list, state, counts, pause, resume, settings. What changes a whole queue: `manage.ts`. */
import { readPoints } from '../../across/metrics';
import { listKnown } from '../../across/queues';
import { statsOf, statsOfEach } from '../../across/statistics';
import { notFound, unwrap } from '../../job/errors';
import { HOUR_MS, lastHour, MINUTE_MS } from '../../job/metrics/series';
import { modeOf, withBuiltIns } from '../../job/settings';
import { formatInstant } from '../../job/time';
import type { QueueStats } from '../../rpc/stats';
import { queueObject } from '../../rpc/stubs';
import { type AppContext, json, mayPurge } from '../context';
import { saysVersion } from '../middleware/version';
import { readBody, readOptionalBody } from '../request/body';
import { mayCreate } from '../request/new-queues';
import { pagination, readPaging } from '../request/pagination';
import { queueNameIn } from '../request/path';
import { get, post, put, type Route } from '../route';
import { parseQueueConfig, renderQueueConfig } from './config';
import { createdAt, renderCounts, renderStatus } from './render';

/** Pauses a queue: it takes jobs and gives none out. */
export const pause = setMode('pause', 'paused_at');

/** Ends a pause, and a drain. */
export const resume = setMode('resume', 'resumed_at');

/** Routes below `/ojs/v1`. */
export const queueRoutes: readonly Route[] = [
  get('/queues', listQueues),
  get('/queues/:name', show),
  get('/queues/:name/stats', showStats),
  post('/queues/:name/pause', pause, { audit: 'queue.pause' }),
  post('/queues/:name/resume', resume, { audit: 'queue.resume' }),
  get('/queues/:name/config', showConfig),
  put(
    '/queues/:name/config',
    async (c) => {
      const name = queueNameIn(c);
      const change = parseQueueConfig(await readBody(c));
      await mayCreate(c, [name]);
      return json(c, {
        name,
        config: renderQueueConfig(unwrap(await queueObject(c.env, name).configure(change, mayPurge(c)))),
      });
    },
    { audit: 'queue.configure' },
  ),
  get('/queues/:name/priority-stats', async (c) => {
    const queue = queueNameIn(c);
    return json(c, { queue, distribution: await queueObject(c.env, queue).priorities() });
  }),
];

/** All known queues by name, a page at a time. */
export async function listQueues(c: AppContext): Promise<Response> {
  const paging = readPaging(c);
  const page = await listKnown(c.env, paging);
  const stats = await statsOfEach(c.env, page.queues);
  const queues = page.queues.map((queue, index) => ({
    ...renderStatus(queue.name, stats[index] as QueueStats),
    ...createdAt(queue),
  }));
  return json(c, { queues, items: queues, total: page.total, pagination: pagination(paging, page) });
}

async function show(c: AppContext): Promise<Response> {
  const name = queueNameIn(c);
  const stats = await statsOf(c.env, name);
  if (!stats.exists) throw notFound('queue', name);
  const config = renderQueueConfig(unwrap(await queueObject(c.env, name).config()));
  const queue = { ...renderStatus(name, stats), state: modeOf(stats), ...createdAt(stats) };
  const counts = renderCounts(stats);
  const { depth, active: running } = counts;
  return json(c, { queue, ...queue, depth, running, config, stats: counts });
}

async function showStats(c: AppContext): Promise<Response> {
  const name = queueNameIn(c);
  const to = Date.now();
  const [stats, points] = await Promise.all([
    statsOf(c.env, name),
    readPoints(c.env, name, { from: to - HOUR_MS, to, period_ms: MINUTE_MS }),
  ]);
  const flat = { ...renderStatus(name, stats), ...stats.counts };
  const counts = renderCounts(stats);
  const { depth, dead } = counts;
  const answer = {
    ...flat,
    stats: { ...counts, ...lastHour(points, to) },
    computed_at: formatInstant(stats.computed_at),
  };
  // SDKs read the name of the queue there, and every number beside it.
  if (saysVersion(c)) return json(c, { queue: name, ...answer, ...createdAt(stats), depth, dead_letter: dead });
  return json(c, { queue: flat, ...answer });
}

async function showConfig(c: AppContext): Promise<Response> {
  const name = queueNameIn(c);
  const { own, effective, declared } = unwrap(await queueObject(c.env, name).settings());
  return json(c, {
    name,
    config: renderQueueConfig(own),
    ...(declared && { declared: renderQueueConfig(declared) }),
    effective: renderQueueConfig(withBuiltIns(effective)),
  });
}

function setMode(verb: 'pause' | 'resume', timeName: string) {
  return async (c: AppContext): Promise<Response> => {
    const name = queueNameIn(c);
    await readOptionalBody(c);
    await mayCreate(c, [name]);
    const status = unwrap(await queueObject(c.env, name)[verb]());
    if (status.unchanged) c.set('unchanged', true);
    const rendered = renderStatus(name, status);
    return json(c, { queue: rendered, ...rendered, [timeName]: formatInstant(status.changed_at) });
  };
}
