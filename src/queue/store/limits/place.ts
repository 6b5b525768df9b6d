/** Limits of a stored job: what it carries, and which key it counts under. */
import { type LimitPolicy, readLimitPolicy } from '../../../job/limits/policy';
import { bodyOf, type JobRow } from '../job-row';
import type { Named, Stored, Woken } from '../parts';
import type { Limiter } from './limiter';

/** Idle keys expire after this, ms. */
export const FORGET_AFTER_MS = 24 * 3_600_000;

/** The limits that a stored job carries; undefined if it has none that can be read. */
export function policyOf(q: Named, row: Pick<JobRow, 'body' | 'type'>): LimitPolicy | undefined {
  const written = bodyOf(row).rate_limit;
  if (written === undefined) return undefined;
  try {
    return readLimitPolicy(written, 'rate_limit', q.name);
  } catch {
    return undefined;
  }
}

/** The key of a stored job. An expired key is made again from the job. */
export function limiterOf(
  q: Named & Stored,
  row: Pick<JobRow, 'limit_key' | 'body' | 'type' | 'enqueued_at'>,
): Limiter {
  const key = row.limit_key as string;
  const known = q.store.limiters.find(key);
  if (known) return known;
  const limiter = q.store.limiters.get(key);
  limiter.limits = policyOf(q, row)?.limits ?? {};
  if (limiter.holder) limiter.holder.declared ??= { limits: limiter.limits, at: row.enqueued_at };
  return limiter;
}

export const runningOf = (q: Stored, key: string): number => q.store.leases.runningByKey.get(key) ?? 0;

export function learn(q: Stored & Woken, policy: LimitPolicy, now: number): void {
  const { key, limits } = policy;
  const limiter = q.store.limiters.get(key);
  if (limits && (JSON.stringify(limits) !== JSON.stringify(limiter.limits) || limiter.holder?.differs(limits))) {
    limiter.limits = limits;
    limiter.holder?.name(limits, now);
    limiter.isChanged = true;
    q.store.limiters.touch(key);
  }
  if (limiter.holder) {
    limiter.hasArrived = true;
    q.store.limiters.touch(key);
  }
  if (limiter.checkAt === null) {
    limiter.setCheck(now + FORGET_AFTER_MS);
    q.wake.at(now + FORGET_AFTER_MS);
  }
  q.store.limiters.save(limiter);
}
