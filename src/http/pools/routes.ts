/** Pools of queues, and how their jobs are spread over their queues. */
import { activeIn, noPool, putPool, removePool } from '../../across/pools';
import * as contract from '../../contract/pools';
import { inParallel } from '../../durable/parallel';
import { unwrap } from '../../job/errors';
import { formatInstant } from '../../job/time';
import { readPoolName } from '../../job/worker/pool-name';
import { also } from '../../ojs/names';
import { type Pool, readPool, weightOf } from '../../pools/pool';
import { directoryObject, poolObject, queueObject } from '../../rpc/stubs';
import { type AppContext, json } from '../context';
import { readBody } from '../request/body';
import { pageByName, readPaging } from '../request/pagination';
import { pathParam } from '../request/path';
import { textParam } from '../request/query';
import { serve } from '../route';

/** A queue with jobs that gave none for this long, while others of its pool gave some, is starved, ms. */
const STARVED_MS = 30_000;

/** Pools in one answer of the statistics. */
const MAX_TOLD = 10;

export const adminPoolRoutes = serve(contract.pools, {
  list,
  show: async (c) => json(c, { pool: await render(c, await named(c)) }),
  define,
  remove,
  stats,
});

const nameIn = (c: AppContext) => readPoolName(pathParam(c, 'name'), 'name');

async function named(c: AppContext, name = nameIn(c)): Promise<Pool> {
  const pool = (await directoryObject(c.env).pools()).find((each) => each.name === name);
  if (!pool) throw noPool(name);
  return pool;
}

async function list(c: AppContext) {
  const all = await directoryObject(c.env).pools();
  const page = pageByName(all, ({ name }) => name, readPaging(c, 'page'));
  const items = await inParallel(page.items, (pool) => render(c, pool));
  return json(c, also('PoolList', { ...page, items }));
}

async function define(c: AppContext) {
  const pool = readPool(nameIn(c), await readBody(c));
  const isNew = await putPool(c.env, pool);
  return json(c, { pool: await render(c, pool) }, isNew ? 201 : 200);
}

async function render(c: AppContext, pool: Pool): Promise<contract.QueuePool> {
  const { name, strategy, queues, concurrency } = pool;
  const [counts, active] = await Promise.all([poolObject(c.env, name).poolCounts(), activeIn(c.env, queues)]);
  const weights = Object.fromEntries(queues.map((queue) => [queue, weightOf(pool, queue)]));
  const now = { workers: counts.workers, active_jobs: active, concurrency: concurrency ?? null };
  return also('QueuePool', { name, strategy, queues, weights, ...now });
}

/** The statistics of the pool in `?pool=`, else of the first ones. */
async function stats(c: AppContext) {
  const wanted = textParam(c, 'pool');
  const all =
    wanted === undefined ? await directoryObject(c.env).pools() : [await named(c, readPoolName(wanted, 'pool'))];
  const told = all.slice(0, MAX_TOLD);
  const parts = await inParallel(told, (pool) => statsOf(c, pool));
  const queues = parts.flatMap((part) => part.queues);
  const strategies = new Set(told.map(({ strategy }) => strategy));
  const [strategy = 'strict'] = strategies;
  return json(c, {
    strategy: strategies.size > 1 ? ('mixed' as const) : strategy,
    queues,
    stats: {
      pools: all.length,
      pools_told: told.length,
      dispatched: queues.reduce((sum, { dispatched }) => sum + dispatched, 0),
      starved: queues.filter(({ starved }) => starved).length,
      since: Object.fromEntries(parts.map(({ pool, since }) => [pool, since])),
    },
  });
}

async function statsOf(c: AppContext, pool: Pool) {
  const now = Date.now();
  const { dispatched, since } = await poolObject(c.env, pool.name).poolCounts();
  const last = Math.max(0, ...Object.values(dispatched).map(({ at }) => at));
  const queues = await inParallel(pool.queues, async (name) => {
    const { count = 0, at = since } = Object.hasOwn(dispatched, name) ? (dispatched[name] ?? {}) : {};
    const isLate = last > at && now - at > STARVED_MS;
    const starved = isLate && unwrap(await queueObject(c.env, name).stats()).counts.available > 0;
    return { pool: pool.name, name, weight: weightOf(pool, name), dispatched: count, starved };
  });
  return { pool: pool.name, since: formatInstant(since), queues };
}

async function remove(c: AppContext) {
  await removePool(c.env, nameIn(c));
  return json(c, { deleted: true as const });
}
