/** How a key that limits jobs is shown: one key, with the sums over all queues, and the queues one by one. */
import type { LimitKey } from '../../across/limits';
import { formatDuration } from '../../job/duration';
import { defined, given } from '../../job/envelope/fields';
import type { LimitOverride } from '../../job/limits/policy';
import { formatInstant } from '../../job/time';
import type { RateLimitView } from '../../rpc/limits';

export function renderRateLimit({ key, views, override }: LimitKey): Record<string, unknown> {
  const limits = views[0] ?? override ?? {};
  const shown = override ?? views.find((view) => view.override)?.override;
  const waiting = sum(views, ({ waiting }) => waiting);
  return {
    key,
    ...limitsOf(limits),
    active: sum(views, ({ active }) => active),
    ...(limits.concurrency !== undefined && {
      available: views.length > 0 ? sum(views, availableIn) : limits.concurrency,
    }),
    current_count: sum(views, ({ current_count }) => current_count),
    window_resets_at: latestReset(views),
    waiting,
    waiting_count: waiting,
    ...(shown && { override: renderOverride(shown) }),
    queues: views.map((view) => ({
      queue: view.queue,
      ...limitsOf(view),
      active: view.active,
      current_count: view.current_count,
      waiting: view.waiting,
    })),
  };
}

function limitsOf({
  concurrency,
  limit,
  period_ms,
  throttled,
}: Partial<Pick<RateLimitView, 'concurrency' | 'limit' | 'period_ms' | 'throttled'>>) {
  return defined({ concurrency, limit, period: given(period_ms, formatDuration), throttled: throttled || undefined });
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

function renderOverride(override: LimitOverride): Record<string, unknown> {
  return { ...limitsOf(override), ...defined({ expires_at: given(override.expires_at, formatInstant) }) };
}
