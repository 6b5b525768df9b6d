import type { LimitStanding } from '../../rpc/limits';
import { runningOf } from '../store/limits/place';
import type { Stored } from '../store/parts';

/** What is left of a key, for the producer that has just enqueued a job under it. */
export function standingOf(q: Stored, key: string, now: number): LimitStanding | undefined {
  const limiter = q.store.limiters.get(key);
  const limits = limiter.inForce(now);
  const limit = limits.rate?.limit ?? limits.throttle?.limit ?? limits.concurrency;
  const running = runningOf(q, key);
  if (limit === undefined || limiter.isUndecided(running, now)) return undefined;
  return {
    limit,
    remaining: Math.min(limit, limiter.room(running, now)),
    resets_at: limiter.resetsAt(now) ?? now,
  };
}
