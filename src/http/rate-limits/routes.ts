/** The keys that limit jobs. The same name in several queues is shown as one key, with the numbers of each queue. */

import { isPseudonym } from '../../access/redaction';
import {
  type LimitKey,
  listLimitKeys,
  overrideLimit,
  readLimitKey,
  readLimitKeys,
  removeOverride,
} from '../../across/limits';
import {
  type DeploymentLimit,
  type LimitsInForce,
  type OverrideInForce,
  type RateLimitStatus,
  rateLimits,
} from '../../contract/rate-limits';
import { formatDuration } from '../../job/duration';
import { defined, given } from '../../job/envelope/fields';
import { readTime } from '../../job/envelope/parse';
import { invalidRequest, notFound } from '../../job/errors';
import { isLimitKey, KEY_RULE, type LimitOverride, readLimitOverride } from '../../job/limits/policy';
import { formatInstant } from '../../job/time';
import { also } from '../../ojs/names';
import type { AllowanceView } from '../../rpc/allowances';
import type { RateLimitView } from '../../rpc/limits';
import { type AppContext, json, noContent } from '../context';
import { pendingQueues } from '../queues/render';
import { readBody } from '../request/body';
import { pageByName, readPaging } from '../request/pagination';
import { pathParam } from '../request/path';
import { queueParam } from '../request/query';
import { serve } from '../route';

export const rateLimitRoutes = serve(rateLimits, { list, show, override, overrideBelow: override, restore });

async function list(c: AppContext) {
  const paging = readPaging(c);
  const known = await listLimitKeys(c.env, queueParam(c, 'queues', 'queue'));
  // In the order of the list: the cursor of the next page names the last one.
  const shown = known.keys.map((key) => [shownKey(c, key), key] as const).sort(([a], [b]) => (a < b ? -1 : 1));
  const page = pageByName(shown, ([name]) => name, paging);
  const keys = page.items.map(([, key]) => key);
  const items = (await readLimitKeys(c.env, { ...known, keys })).map((limit) => renderRateLimit(c, limit));
  return json(c, also('RateLimitList', { ...page, items }));
}

async function show(c: AppContext) {
  const key = await keyIn(c);
  const shown = await readLimitKey(c.env, key, queueParam(c, 'queues', 'queue'));
  if (!shown) throw unknownKey(key);
  return json(c, renderRateLimit(c, shown));
}

async function override(c: AppContext) {
  const key = await keyIn(c);
  const now = Date.now();
  const given = readLimitOverride(await readBody(c), (value, field) => {
    const time = readTime(now)(value, field);
    if (time > now) return time;
    throw invalidRequest(field, `${field} must be in the future.`);
  });
  const { shown, untold } = await overrideLimit(c.env, key, given);
  return json(c, { ...renderRateLimit(c, shown), ...pendingQueues(untold) });
}

async function restore(c: AppContext) {
  const key = await keyIn(c);
  if (!(await removeOverride(c.env, key))) throw unknownKey(key);
  return noContent(c);
}

/** The key that the path names, or that its pseudonym stands for. @throws {ApiError} 400, 404 */
async function keyIn(c: AppContext): Promise<string> {
  const named = pathParam(c, 'key');
  if (isLimitKey(named)) return named;
  if (!isPseudonym(named) || !c.get('redact')?.limitKey) throw invalidRequest('key', `key ${KEY_RULE}.`);
  const { keys } = await listLimitKeys(c.env);
  const key = keys.find((one) => shownKey(c, one) === named);
  if (key === undefined) throw unknownKey(named);
  c.set('named', key);
  return key;
}

export const shownKey = (c: AppContext, key: string): string => c.get('redact')?.limitKey?.(key) ?? key;

const unknownKey = (key: string) =>
  notFound(
    'rate limit',
    key,
    'A key exists from the first job that uses it until a day after the last, and while it has an override.',
  );

/** One key, with the sums over all queues, and the queues one by one. */
function renderRateLimit(c: AppContext, { key, views, override, allowance }: LimitKey): RateLimitStatus {
  const deployment = allowance && renderAllowance(allowance, views);
  const limits = deployment ?? views[0] ?? override ?? {};
  const shown = override ?? views.find((view) => view.override)?.override;
  return also('RateLimitStatus', {
    key: shownKey(c, key),
    ...limitsOf(limits),
    active: sum(views, ({ active }) => active),
    ...(limits.concurrency !== undefined && {
      available: deployment?.available ?? (views.length > 0 ? sum(views, availableIn) : limits.concurrency),
    }),
    current_count:
      sum(views, ({ current_count }) => current_count) + sum(allowance?.leased ?? [], ({ starts }) => starts),
    window_resets_at: latestReset([...views, ...(allowance ? [{ window_resets_at: allowance.resets_at }] : [])]),
    waiting: sum(views, ({ waiting }) => waiting),
    ...(views.some(({ complete }) => complete === false) && { complete: false as const }),
    ...(shown && { override: renderOverride(shown) }),
    ...(deployment && { deployment }),
    queues: views.map(({ queue, scope, active, current_count, waiting, complete, ...view }) => ({
      ...{ queue, ...(scope === 'deployment' && { scope }), ...limitsOf(view) },
      ...{ active, current_count, waiting, ...defined({ complete }) },
    })),
  });
}

function renderAllowance(
  { limits: { concurrency, rate, throttle }, leased }: AllowanceView,
  views: readonly RateLimitView[],
): DeploymentLimit {
  const quota = rate ?? throttle;
  const throttled = !rate && throttle ? (true as const) : undefined;
  const running = sum(views, ({ scope, active }) => (scope === 'deployment' ? active : 0));
  return {
    ...limitsOf(defined({ concurrency, limit: quota?.limit, period_ms: quota?.period_ms, throttled })),
    ...(concurrency !== undefined && { available: Math.max(0, concurrency - running) }),
    leased,
  };
}

type Limited = Partial<Pick<RateLimitView, 'concurrency' | 'limit' | 'period_ms' | 'throttled'>>;

const limitsOf = ({ concurrency, limit, period_ms, throttled }: Limited): LimitsInForce =>
  defined({ concurrency, limit, period: given(period_ms, formatDuration), throttled: throttled || undefined });

const availableIn = ({ concurrency = 0, active }: RateLimitView): number => Math.max(0, concurrency - active);

const sum = <T>(all: readonly T[], number: (one: T) => number): number =>
  all.reduce((total, one) => total + number(one), 0);

function latestReset(views: readonly { window_resets_at?: number | undefined }[]): string | null {
  const times = views.flatMap(({ window_resets_at }) => window_resets_at ?? []);
  return times.length === 0 ? null : formatInstant(Math.max(...times));
}

export const renderOverride = (override: LimitOverride): OverrideInForce => ({
  ...limitsOf(override),
  ...defined({ expires_at: given(override.expires_at, formatInstant) }),
});
