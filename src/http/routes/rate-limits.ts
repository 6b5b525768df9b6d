/**
 * Routes about the keys that limit jobs. A key counts within its queue; the same name in several queues is shown as one,
 * with the numbers of each queue beside it, and changed in all of them.
 */
import { Hono } from 'hono';
import { formatDuration } from '../../job/duration';
import { readTime } from '../../job/envelope/parse';
import { invalidRequest, notFound, unwrap } from '../../job/errors';
import { isLimitKey, KEY_RULE, type LimitOverride, readLimitOverride } from '../../job/limits/policy';
import { formatInstant } from '../../job/time';
import type { RateLimitView } from '../../queue/limits/api';
import { inParallel, knownQueues, queueObject } from '../../routing/objects';
import { readBody } from '../body';
import type { AppContext, AppEnv } from '../context';
import { pageByName, readPaging } from '../pagination';
import { json } from '../respond';

/** Routes below `/ojs/v1`. */
export function rateLimitRoutes(): Hono<AppEnv> {
  const routes = new Hono<AppEnv>();

  routes.get('/rate-limits', async (c) => {
    const paging = readPaging(c);
    const queues = await knownQueues(c.env);
    const named = await inParallel(queues, (name) => queueObject(c.env, name).limitKeys(name));
    const keys = [...new Set(named.flat())].sort();
    const page = pageByName(keys, (key) => key, paging);
    const holders = queues.filter((_, index) => named[index]?.length);
    const items = (await viewsOf(c, page.items, holders)).map(render);
    return json(c, { items, rate_limits: items, total: keys.length, pagination: page.pagination });
  });

  routes.get('/rate-limits/:key', async (c) => {
    const key = keyIn(c);
    const [views] = await viewsOf(c, [key], await knownQueues(c.env));
    if (!views) throw unknownKey(key);
    return json(c, render(views));
  });

  routes.put('/rate-limits/:key', putOverride);
  routes.put('/rate-limits/:key/override', putOverride);

  routes.delete('/rate-limits/:key/override', async (c) => {
    await change(c, keyIn(c), null);
    return c.body(null, 204);
  });

  return routes;
}

async function putOverride(c: AppContext): Promise<Response> {
  const now = Date.now();
  const override = readLimitOverride(await readBody(c), (value, field) => {
    const time = readTime(now)(value, field);
    if (time > now) return time;
    throw invalidRequest(field, `${field} must lie in the future.`);
  });
  return json(c, render(await change(c, keyIn(c), override)));
}

/** Changes the override of the key wherever it is known. @throws {ApiError} 404 when that is nowhere */
async function change(c: AppContext, key: string, override: LimitOverride | null): Promise<RateLimitView[]> {
  const answers = await inParallel(await knownQueues(c.env), (name) =>
    queueObject(c.env, name).overrideRateLimit(name, key, override),
  );
  const views = answers.flatMap((answer) => unwrap(answer) ?? []);
  if (views.length === 0) throw unknownKey(key);
  return views;
}

function keyIn(c: AppContext): string {
  const key = c.req.param('key') ?? '';
  if (isLimitKey(key)) return key;
  throw invalidRequest('key', `key ${KEY_RULE}.`);
}

function unknownKey(key: string) {
  return notFound(
    'rate limit',
    key,
    'A key is known from the first job that counts under it until a day after the last.',
  );
}

/** What the queues say of these keys: one list for each key that is known. */
async function viewsOf(c: AppContext, keys: readonly string[], queues: readonly string[]): Promise<RateLimitView[][]> {
  if (keys.length === 0) return [];
  const answers = await inParallel(queues, (name) => queueObject(c.env, name).rateLimits(name, [...keys]));
  const byKey = new Map<string, RateLimitView[]>();
  for (const view of answers.flat()) byKey.set(view.key, [...(byKey.get(view.key) ?? []), view]);
  return keys.flatMap((key) => {
    const views = byKey.get(key);
    return views ? [views] : [];
  });
}

/** One key: the limits that hold in each queue, the sums over all, and the queues one by one. */
function render(views: readonly RateLimitView[]): Record<string, unknown> {
  const [first] = views as [RateLimitView, ...RateLimitView[]];
  const waiting = sum(views, ({ waiting }) => waiting);
  return {
    key: first.key,
    ...limitsOf(first),
    active: sum(views, ({ active }) => active),
    ...(first.concurrency !== undefined && { available: sum(views, availableIn) }),
    current_count: sum(views, ({ current_count }) => current_count),
    window_resets_at: latestReset(views),
    waiting,
    waiting_count: waiting,
    ...(first.override && { override: renderOverride(first.override) }),
    queues: views.map((view) => ({
      queue: view.queue,
      ...limitsOf(view),
      active: view.active,
      current_count: view.current_count,
      waiting: view.waiting,
    })),
  };
}

function limitsOf({ concurrency, limit, period_ms, throttled }: RateLimitView) {
  return {
    ...(concurrency !== undefined && { concurrency }),
    ...(limit !== undefined && { limit }),
    ...(period_ms !== undefined && { period: formatDuration(period_ms) }),
    ...(throttled && { throttled }),
  };
}

function availableIn({ concurrency = 0, active }: RateLimitView): number {
  return Math.max(0, concurrency - active);
}

function sum(views: readonly RateLimitView[], number: (view: RateLimitView) => number): number {
  return views.reduce((total, view) => total + number(view), 0);
}

function latestReset(views: readonly RateLimitView[]): string | null {
  const times = views.flatMap(({ window_resets_at }) => window_resets_at ?? []);
  return times.length === 0 ? null : formatInstant(Math.max(...times));
}

function renderOverride({ concurrency, limit, period_ms, expires_at }: LimitOverride): Record<string, unknown> {
  return {
    ...(concurrency !== undefined && { concurrency }),
    ...(limit !== undefined && { limit }),
    ...(period_ms !== undefined && { period: formatDuration(period_ms) }),
    ...(expires_at !== undefined && { expires_at: formatInstant(expires_at) }),
  };
}
