/** The part of a queue object's RPC interface that is about limits. Times in epoch ms. */
import type { RateLimitInQueue } from '../contract/rate-limits';
import type { LimitOverride, LimitScope } from '../job/limits/policy';

/** What is left of a key's limits. */
export interface LimitStanding {
  /** Starts in a period; for a key that counts none, attempts at once. */
  limit: number;
  remaining: number;
  /** When more is left. */
  resets_at: number;
}

/** A key that limits jobs, as one queue knows it. */
export interface RateLimitView extends Omit<RateLimitInQueue, 'scope' | 'period'> {
  key: string;
  scope: LimitScope;
  period_ms?: number;
  /** When the next start fits, if none does now; else when the oldest that counts leaves the period. */
  window_resets_at?: number;
  /** The key's own rate or throttle, even under an override. */
  own_period_ms?: number;
  override?: LimitOverride;
}
