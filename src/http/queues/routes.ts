/** Queues: list, state, counts, pause, resume, settings. What changes a whole queue: `manage.ts`. */
import { readPoints } from '../../across/metrics';
import { listKnown } from '../../across/queues';
import { statsOf, statsOfEach } from '../../across/statistics';
import { queues } from '../../contract/queues';
import { defined } from '../../job/envelope/fields';
import { notFound, unwrap } from '../../job/errors';
import { formatInstant } from '../../job/time';
import { HOUR_MS, lastHour, MINUTE_MS } from '../../metrics/series';
import { saysVersion } from '../../ojs/answers';
import { also } from '../../ojs/names';
import type { QueueStats } from '../../rpc/stats';
import { queueObject } from '../../rpc/stubs';
import { withBuiltIns } from '../../settings';
import { type AppContext, json, mayPurge } from '../context';
import { readBody } from '../request/body';
import { mayCreate, mustExist } from '../request/new-queues';
import { pagination, readPaging } from '../request/pagination';
import { queueNameIn } from '../request/path';
import { serve } from '../route';
import { parseQueueConfig, renderQueueConfig } from './config';
import { renderGroup } from './groups';
import { createdAt, renderCounts, renderStatus } from './render';

const MAX_GROUPS = 100;

export const queueRoutes = serve(queues, {
  list: listQueues,
  show,
  stats: showStats,
  pause,
  resume,
  config: showConfig,
  configure,
  priorities,
  groups,
});

/** All known queues by name, a page at a time. */
export async function listQueues(c: AppContext) {
  const paging = readPaging(c);
  const page = await listKnown(c.env, paging, defined({ names: c.get('queues') }));
  const stats = await statsOfEach(c.env, page.queues);
  const items = page.queues.map((queue, index) => ({
    ...renderStatus(queue.name, stats[index] as QueueStats),
    created_at: formatInstant(queue.created_at),
  }));
  return json(c, also('QueueSummaryList', { items, total: page.total, pagination: pagination(paging, page) }));
}

async function show(c: AppContext) {
  const name = queueNameIn(c);
  const stats = await statsOf(c.env, name);
  if (!stats.exists) throw notFound('queue', name);
  const config = renderQueueConfig(unwrap(await queueObject(c.env, name).config()));
  const queue = { ...also('QueueMode', renderStatus(name, stats)), ...createdAt(stats) };
  const counts = renderCounts(stats);
  const { depth, active: running } = counts;
  return json(c, { queue, ...queue, depth, running, config, stats: counts });
}

async function showStats(c: AppContext) {
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
  // SDKs read the queue's name there, and its numbers.
  if (saysVersion(c)) return json(c, { queue: name, ...answer, ...createdAt(stats), depth, dead_letter: dead });
  return json(c, { queue: flat, ...answer });
}

async function showConfig(c: AppContext) {
  const name = queueNameIn(c);
  const { own, effective, declared } = unwrap(await queueObject(c.env, name).settings());
  return json(c, {
    name,
    config: renderQueueConfig(own),
    ...(declared && { declared: renderQueueConfig(declared) }),
    effective: renderQueueConfig(withBuiltIns(effective)),
  });
}

async function configure(c: AppContext) {
  const name = queueNameIn(c);
  const change = parseQueueConfig(await readBody(c));
  await mayCreate(c, [{ queue: name }]);
  const config = unwrap(await queueObject(c.env, name).configure(change, mayPurge(c)));
  return json(c, { name, config: renderQueueConfig(config) });
}

async function priorities(c: AppContext) {
  const queue = queueNameIn(c);
  return json(c, { queue, distribution: await queueObject(c.env, queue).priorities() });
}

async function groups(c: AppContext) {
  const queue = queueNameIn(c);
  const paging = readPaging(c);
  const { offset } = paging;
  const limit = Math.min(paging.limit, MAX_GROUPS);
  const found = unwrap(await queueObject(c.env, queue).groups({ offset, limit }));
  const { total, waiting, running, ungrouped, order, complete } = found;
  const items = found.groups.map(renderGroup);
  const place = { total, hasMore: total > offset + items.length, nextCursor: null };
  const list = { items, total, pagination: pagination({ ...paging, limit }, place) };
  return json(c, {
    ...{ queue, order: order ?? null, waiting, running, ungrouped },
    ...(!complete && { counts_are_exact: false as const }),
    ...also('QueueGroupList', list),
  });
}

/** Pauses a queue: it accepts jobs and hands none out. */
export async function pause(c: AppContext) {
  const { at, ...changed } = await setMode(c, 'pause');
  return json(c, { ...changed, paused_at: at });
}

export async function resume(c: AppContext) {
  const { at, ...changed } = await setMode(c, 'resume');
  return json(c, { ...changed, resumed_at: at });
}

export async function setMode(c: AppContext, verb: 'pause' | 'resume' | 'drain') {
  const name = queueNameIn(c);
  await mustExist(c, name);
  const status = unwrap(await queueObject(c.env, name)[verb]());
  if (status.unchanged) c.set('unchanged', true);
  const rendered = renderStatus(name, status);
  return { queue: rendered, ...rendered, at: formatInstant(status.changed_at) };
}
