import { listKnown } from '../../across/queues';
import { activityOfEach, statsOf } from '../../across/statistics';
import { adminQueues, type InspectedQueue, type QueueConfiguration } from '../../contract/queues';
import { defined } from '../../job/envelope/fields';
import { notFound, unwrap } from '../../job/errors';
import { formatInstant } from '../../job/time';
import type { QueueReading } from '../../rpc/metrics';
import type { QueueStats } from '../../rpc/stats';
import { queueObject } from '../../rpc/stubs';
import { DEFAULT_WARNING, type QueueConfig } from '../../settings';
import { continuation, locationOf } from '../bulk/render';
import { type AppContext, json, mayPurge } from '../context';
import { readBody } from '../request/body';
import { requireConfirmation } from '../request/many-jobs';
import { pagination, readPaging } from '../request/pagination';
import { queueNameIn } from '../request/path';
import { listParam, oneOf, textParam } from '../request/query';
import { serve } from '../route';
import { parseQueueConfig, renderQueueConfig } from './config';
import { previewPurge, purgeJobs } from './manage';
import { createdAt, renderCounts, renderForOperators } from './render';
import { pause, resume } from './routes';

export const adminQueueRoutes = serve(adminQueues, {
  list,
  show: async (c) => json(c, await detailsOf(c, queueNameIn(c))),
  pause,
  resume,
  configure,
  purge,
});

/** Parts of a list of queues that are shown on request. */
const INCLUDED = ['recent'] as const;

const wantsRecent = (c: AppContext): boolean => oneOf(listParam(c, 'include'), INCLUDED, 'include') !== undefined;

async function list(c: AppContext) {
  const paging = readPaging(c, 'page');
  const page = await listKnown(c.env, paging, defined({ part: textParam(c, 'name'), names: c.get('queues') }));
  const stats = await activityOfEach(c.env, page.queues);
  const withRecent = wantsRecent(c);
  const items = page.queues.map(({ created_at }, index) => ({
    ...renderForOperators(stats[index] as QueueReading, withRecent),
    created_at: formatInstant(created_at),
  }));
  return json(c, { items, total: page.total, pagination: pagination(paging, page) });
}

async function configure(c: AppContext) {
  const name = queueNameIn(c);
  const given = await readBody(c);
  unwrap(await queueObject(c.env, name).configure(parseQueueConfig(given), mayPurge(c)));
  return json(c, { ...(await detailsOf(c, name)), config: given });
}

async function purge(c: AppContext) {
  const body = await readBody(c);
  const preview = await previewPurge(c, body);
  if (preview) return preview;
  requireConfirmation(body.confirm);
  const { summary, states } = await purgeJobs(c, body);
  const answer = { purged_count: summary.succeeded, states, ...continuation(summary) };
  return json(c, answer, summary.done ? 200 : 202, locationOf(summary));
}

/** The settings, and their effect on the queue. `threshold`: the depth from which on producers are warned. */
function renderConfiguration(config: QueueConfig, stats: QueueStats): QueueConfiguration {
  const { max_depth, overflow = 'reject', warning_threshold = DEFAULT_WARNING } = config;
  const { depth } = renderCounts(stats);
  const rendered = renderQueueConfig(config);
  const threshold = max_depth === undefined ? null : Math.ceil(max_depth * warning_threshold);
  const isFull = max_depth !== undefined && depth >= max_depth;
  const isNearlyFull = threshold !== null && depth >= threshold;
  return {
    ...rendered,
    backpressure: {
      ...rendered.backpressure,
      enabled: max_depth !== undefined,
      strategy: overflow,
      threshold,
      current_depth: depth,
      state: isFull ? 'critical' : isNearlyFull ? 'warning' : 'normal',
    },
  };
}

async function detailsOf(c: AppContext, name: string): Promise<InspectedQueue> {
  const queue = queueObject(c.env, name);
  const stats = await statsOf(c.env, name);
  if (!stats.exists) throw notFound('queue', name);
  return {
    ...renderForOperators({ ...stats, ...(await queue.activity()) }, wantsRecent(c)),
    ...createdAt(stats),
    configuration: renderConfiguration(unwrap(await queue.settings()).effective, stats),
  };
}
