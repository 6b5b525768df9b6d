import { LIMIT_SCOPES, type LimitScope, plainKey, scopedKey } from '../../../job/limits/policy';
import type { RateLimitView } from '../../../rpc/limits';
import { waitingUnder } from '../../read/available';
import type { Limiter, WaitingJobs } from '../../store/limits/limiter';
import { runningOf } from '../../store/limits/place';
import type { Named, Stored } from '../../store/parts';

const MAX_KEYS = 10_000;

export const limitKeys = (q: Stored): string[] => [...new Set(q.store.limiters.known(MAX_KEYS).map(plainKey))].sort();

/** Those of these keys that are known, in each scope. */
export function rateLimits(q: Named & Stored, keys: readonly string[], now: number): RateLimitView[] {
  const known = keys.flatMap((key) =>
    LIMIT_SCOPES.flatMap((scope) => {
      const limiter = key === '' ? undefined : q.store.limiters.find(scopedKey(key, scope));
      return limiter ? [{ limiter, scope }] : [];
    }),
  );
  const { counts, isAll } = waitingUnder(q, new Set(known.map(({ limiter }) => limiter.key)), now);
  return known.map(({ limiter, scope }) => ({
    ...view(q, limiter, scope, counts.get(limiter.key), now),
    ...(!isAll && { complete: false as const }),
  }));
}

function view(
  q: Named & Stored,
  limiter: Limiter,
  scope: LimitScope,
  waiting: WaitingJobs | undefined,
  now: number,
): RateLimitView {
  const { key, usage } = limiter;
  const { concurrency, rate, throttle } = limiter.inForce(now);
  const quota = rate ?? throttle;
  const running = runningOf(q, key);
  const resetsAt = limiter.resetsAt(now);
  const override = limiter.overrideAt(now);
  const ownPeriod = (limiter.limits.rate ?? limiter.limits.throttle)?.period_ms;
  return {
    key: limiter.name,
    scope,
    queue: q.name,
    ...(concurrency !== undefined && { concurrency }),
    active: running,
    ...(quota && { limit: quota.limit, period_ms: quota.period_ms }),
    ...(!rate && throttle && { throttled: true as const }),
    current_count: usage.startsIn(quota, now),
    ...(resetsAt !== undefined && { window_resets_at: resetsAt }),
    waiting: waiting ? limiter.withoutRoom(waiting, running, now) : 0,
    ...(ownPeriod !== undefined && { own_period_ms: ownPeriod }),
    ...(override && { override }),
  };
}
