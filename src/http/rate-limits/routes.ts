/**
 * Routes about the keys that limit jobs. A key counts within its queue; the same name in several queues is shown as one,
 * with the numbers of each queue beside it. What an operator puts in the place of its limits holds in all queues, also in
 * those that have not met the key yet: it is kept in the directory, and is enough for the key to be known.
 */
import { Hono } from 'hono';
import { knownQueues } from '../../across/queues';
import { inParallel } from '../../durable/parallel';
import { readTime } from '../../job/envelope/parse';
import { invalidRequest, notFound, unwrap } from '../../job/errors';
import { isLimitKey, KEY_RULE, type LimitOverride, readLimitOverride } from '../../job/limits/policy';
import type { RateLimitView } from '../../rpc/limits';
import { directoryObject, queueObject } from '../../rpc/stubs';
import type { AppContext, AppEnv } from '../context';
import { readBody } from '../request/body';
import { pageByName, readPaging } from '../request/pagination';
import { json } from '../respond';
import { renderRateLimit } from './render';

/** Routes below `/ojs/v1`. */
export function rateLimitRoutes(): Hono<AppEnv> {
  const routes = new Hono<AppEnv>();
  routes.get('/rate-limits', list);
  routes.get('/rate-limits/:key', async (c) => {
    const key = keyIn(c);
    const [shown] = await show(c, [key], await knownQueues(c.env), await overridesByKey(c));
    if (!shown) throw unknownKey(key);
    return json(c, shown);
  });
  routes.put('/rate-limits/:key', putOverride);
  routes.put('/rate-limits/:key/override', putOverride);
  routes.delete('/rate-limits/:key/override', removeOverride);
  return routes;
}

async function list(c: AppContext): Promise<Response> {
  const paging = readPaging(c);
  const [queues, overrides] = await Promise.all([knownQueues(c.env), overridesByKey(c)]);
  const named = await inParallel(queues, (name) => queueObject(c.env, name).limitKeys());
  const keys = [...new Set([...named.flat(), ...overrides.keys()])].sort();
  const page = pageByName(keys, (key) => key, paging);
  const holders = queues.filter((_, index) => named[index]?.length);
  const items = await show(c, page.items, holders, overrides);
  return json(c, { items, rate_limits: items, total: keys.length, pagination: page.pagination });
}

async function putOverride(c: AppContext): Promise<Response> {
  const key = keyIn(c);
  const now = Date.now();
  const given = readLimitOverride(await readBody(c), (value, field) => {
    const time = readTime(now)(value, field);
    if (time > now) return time;
    throw invalidRequest(field, `${field} must lie in the future.`);
  });
  const override = await withPeriod(c, key, given);
  const { untold } = unwrap(await directoryObject(c.env).overrideLimit(key, override));
  const [shown] = await show(c, [key], await knownQueues(c.env), new Map([[key, override]]));
  return json(c, { ...shown, ...(untold > 0 && { pending_queues: untold }) });
}

async function removeOverride(c: AppContext): Promise<Response> {
  const key = keyIn(c);
  const { existed } = unwrap(await directoryObject(c.env).overrideLimit(key, null));
  const views = (await viewsOf(c, [key], await knownQueues(c.env))).get(key) ?? [];
  if (!existed && views.length === 0) throw unknownKey(key);
  const own = views.filter(({ has_own_override }) => has_own_override);
  await inParallel(own, async ({ queue }) => unwrap(await queueObject(c.env, queue).removeOwnOverride(key)));
  return c.body(null, 204);
}

/**
 * A limit without a period keeps, in each queue, the period that the key has there; where it has none, that of another queue.
 * @throws {ApiError} 400 when neither the override nor any queue says over which period the starts count
 */
async function withPeriod(c: AppContext, key: string, override: LimitOverride): Promise<LimitOverride> {
  if (!override.limit || override.period_ms !== undefined) return override;
  const views = (await viewsOf(c, [key], await knownQueues(c.env))).get(key) ?? [];
  const usual = views.find(({ own_period_ms }) => own_period_ms !== undefined)?.own_period_ms;
  if (usual !== undefined) return { ...override, usual_period_ms: usual };
  throw invalidRequest('period', `period is required: the key ${key} has no rate whose period could be kept.`);
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
    'A key is known from the first job that counts under it until a day after the last, and while an override holds.',
  );
}

async function overridesByKey(c: AppContext): Promise<Map<string, LimitOverride>> {
  return new Map(Object.entries(await directoryObject(c.env).limitOverrides()));
}

/** Those of these keys that are known, as they are shown. */
async function show(
  c: AppContext,
  keys: readonly string[],
  queues: readonly string[],
  overrides: ReadonlyMap<string, LimitOverride>,
): Promise<Record<string, unknown>[]> {
  const views = await viewsOf(c, keys, queues);
  return keys
    .filter((key) => views.has(key) || overrides.has(key))
    .map((key) => renderRateLimit(key, views.get(key) ?? [], overrides.get(key)));
}

/** What the queues say of these keys, by key. */
async function viewsOf(
  c: AppContext,
  keys: readonly string[],
  queues: readonly string[],
): Promise<Map<string, RateLimitView[]>> {
  const byKey = new Map<string, RateLimitView[]>();
  if (keys.length === 0) return byKey;
  const answers = await inParallel(queues, (name) => queueObject(c.env, name).rateLimits([...keys]));
  for (const view of answers.flat()) byKey.set(view.key, [...(byKey.get(view.key) ?? []), view]);
  return byKey;
}
