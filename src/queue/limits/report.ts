/** What operators and producers see of a key, and the limits that operators put in the place of its own. */
import { invalidRequest } from '../../job/errors';
import type { LimitOverride } from '../../job/limits/policy';
import type { QueueState } from '../state';
import { FORGET_AFTER_MS, runningOf } from './admit';
import type { LimitStanding, RateLimitView } from './api';
import type { Limiter } from './limiter';

/** Keys named in one answer. */
const MAX_KEYS = 10_000;

/** The keys that are known, in order. */
export function limitKeys(q: QueueState): string[] {
  return q.limiters.known(MAX_KEYS);
}

/** Those of these keys that are known. */
export function rateLimits(q: QueueState, keys: readonly string[], now: number): RateLimitView[] {
  return keys.flatMap((key) => {
    const limiter = key === '' ? undefined : q.limiters.find(key);
    return limiter ? [view(q, limiter, now)] : [];
  });
}

function view(q: QueueState, limiter: Limiter, now: number): RateLimitView {
  const { key, usage } = limiter;
  const { concurrency, rate, throttle } = limiter.inForce(now);
  const quota = rate ?? throttle;
  const running = runningOf(q, key);
  const resetsAt = usage.resetsAt({ ...(rate && { rate }), ...(throttle && { throttle }) }, now);
  const override = limiter.overrideAt(now);
  const { n } = q.sql
    .exec<{ n: number }>('SELECT count(*) AS n FROM jobs WHERE limit_key = ? AND waits_since IS NOT NULL', key)
    .one();
  return {
    key,
    queue: q.name,
    ...(concurrency !== undefined && { concurrency }),
    active: running,
    ...(quota && { limit: quota.limit, period_ms: quota.period_ms }),
    ...(!rate && throttle && { throttled: true as const }),
    current_count: usage.startsIn(quota, now),
    ...(resetsAt !== undefined && { window_resets_at: resetsAt }),
    waiting: n + limiter.readyWithoutRoom(running, now),
    ...(override && { override }),
  };
}

/** How much a key has left, for whoever has just enqueued a job that counts under it. */
export function standingOf(q: QueueState, key: string, now: number): LimitStanding | undefined {
  const limiter = q.limiters.get(key);
  const limits = limiter.inForce(now);
  const limit = limits.rate?.limit ?? limits.throttle?.limit ?? limits.concurrency;
  if (limit === undefined) return undefined;
  return {
    limit,
    remaining: Math.min(limit, limiter.room(runningOf(q, key), now)),
    resets_at: limiter.usage.resetsAt(limits, now) ?? now,
  };
}

/**
 * Puts other limits in the place of a key's own, or takes them back.
 * @throws {ApiError} 400 when neither the override nor the key says over which period the starts count
 */
export function overrideRateLimit(
  q: QueueState,
  key: string,
  override: LimitOverride | null,
  now: number,
): RateLimitView | null {
  const limiter = key === '' ? undefined : q.limiters.find(key);
  if (!limiter) return null;
  const { rate, throttle } = limiter.limits;
  if (override?.limit && override.period_ms === undefined && !rate && !throttle) {
    throw invalidRequest('period', `period is required: the key ${key} has no rate whose period could be kept.`);
  }
  limiter.override = override ?? undefined;
  limiter.isChanged = true;
  if (!override && limiter.checkAt === null) limiter.setCheck(now + FORGET_AFTER_MS);
  q.limiters.save(limiter);
  q.limiters.touch(key);
  return view(q, limiter, now);
}
