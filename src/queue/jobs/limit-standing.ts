/** What is left of a key's limits, for producers. */
import type { LimitStanding } from '../../rpc/limits';
import { runningOf } from '../store/limits/place';
import type { Stored } from '../store/parts';

/** What is left of a key, for the producer that has just enqueued a job under it. */
export function standingOf(q: Stored, key: string, now: number): LimitStanding | undefined {
  const limiter = q.store.limiters.get(key);
  const limits = limiter.inForce(now);
  const limit = limits.rate?.limit ?? limits.throttle?.limit ?? limits.concurrency;
  if (limit === undefined) return undefined;
  return {
    limit,
    remaining: Math.min(limit, limiter.room(runningOf(q, key), now)),
    resets_at: limiter.usage.resetsAt(limits, now) ?? now,
  };
}
