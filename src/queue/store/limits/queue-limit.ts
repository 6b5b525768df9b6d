/** The queue's own limits (`rate_limit`): concurrency and starts in a period. They close it like a pause. */
import type { Limits } from '../../../job/limits/policy';
import type { Configured, Stored } from '../parts';
import type { Limiter } from './limiter';
import { QUEUE_KEY } from './limiters';

function limiterOfQueue(q: Stored & Configured): Limiter | undefined {
  const { rate_limit } = q.config.settings;
  if (!rate_limit) return undefined;
  const limiter = q.store.limiters.get(QUEUE_KEY);
  limiter.limits = rate_limit;
  return limiter;
}

/** How many jobs of any kind may start now. */
export function startsLeft(q: Stored & Configured, now: number): number {
  const running = q.store.leases.active.size;
  const room = limiterOfQueue(q)?.room(running, now) ?? Number.POSITIVE_INFINITY;
  return Math.min(room, q.store.leases.mostAtOnce - running);
}

/** When the queue's rate lets the next job start, epoch ms; undefined if no rate delays jobs. */
export function queueOpensAt(q: Stored & Configured, now: number): number | undefined {
  const limiter = limiterOfQueue(q);
  const opensAt = limiter?.usage.opensAt(limiter.limits, now);
  return opensAt !== undefined && opensAt > now ? opensAt : undefined;
}

/** The queue's own limit while it lets no job start; undefined while one may. */
export function queueStandstill(
  q: Stored & Configured,
  now: number,
): { limits: Limits; running: number; opensAt?: number } | undefined {
  const limiter = limiterOfQueue(q);
  const running = q.store.leases.active.size;
  if (!limiter || limiter.room(running, now) > 0) return undefined;
  const opensAt = queueOpensAt(q, now);
  return { limits: limiter.limits, running, ...(opensAt !== undefined && { opensAt }) };
}

/** Notes starts. One row written where the queue's starts are counted. */
export function noteQueueStarts(q: Stored & Configured, count: number, now: number): void {
  const limiter = count > 0 ? limiterOfQueue(q) : undefined;
  if (!limiter) return;
  limiter.started(count, now);
  if (limiter.isChanged) q.store.limiters.save(limiter);
}

export function forgetQueueStarts(q: Stored): void {
  const limiter = q.store.limiters.find(QUEUE_KEY);
  if (limiter) q.store.limiters.remove(limiter);
}
