/** The keys that limit jobs. The same name in several queues is shown as one key, with the numbers of each queue beside it. */
import { listLimitKeys, overrideLimit, readLimitKey, readLimitKeys, removeOverride } from '../../across/limits';
import { readTime } from '../../job/envelope/parse';
import { invalidRequest, notFound } from '../../job/errors';
import { isLimitKey, KEY_RULE, readLimitOverride } from '../../job/limits/policy';
import { type AppContext, json } from '../context';
import { readBody } from '../request/body';
import { pageByName, readPaging } from '../request/pagination';
import { pathParam } from '../request/path';
import { del, get, put, type Route } from '../route';
import { renderRateLimit } from './render';

/** Routes below `/ojs/v1`. */
export const rateLimitRoutes: readonly Route[] = [
  get('/rate-limits', list),
  get('/rate-limits/:key', show),
  put('/rate-limits/:key', override),
  put('/rate-limits/:key/override', override),
  del('/rate-limits/:key/override', restore),
];

async function list(c: AppContext): Promise<Response> {
  const paging = readPaging(c);
  const known = await listLimitKeys(c.env);
  const page = pageByName(known.keys, (key) => key, paging);
  const items = (await readLimitKeys(c.env, { ...known, keys: page.items })).map(renderRateLimit);
  return json(c, { items, rate_limits: items, total: known.keys.length, pagination: page.pagination });
}

async function show(c: AppContext): Promise<Response> {
  const key = keyIn(c);
  const shown = await readLimitKey(c.env, key);
  if (!shown) throw unknownKey(key);
  return json(c, renderRateLimit(shown));
}

/** Puts other limits in the place of those of the key. */
async function override(c: AppContext): Promise<Response> {
  const key = keyIn(c);
  const now = Date.now();
  const given = readLimitOverride(await readBody(c), (value, field) => {
    const time = readTime(now)(value, field);
    if (time > now) return time;
    throw invalidRequest(field, `${field} must lie in the future.`);
  });
  const { shown, untold } = await overrideLimit(c.env, key, given);
  return json(c, { ...renderRateLimit(shown), ...(untold > 0 && { pending_queues: untold }) });
}

/** Gives the key its own limits back. */
async function restore(c: AppContext): Promise<Response> {
  const key = keyIn(c);
  if (!(await removeOverride(c.env, key))) throw unknownKey(key);
  return c.body(null, 204);
}

function keyIn(c: AppContext): string {
  const key = pathParam(c, 'key');
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
