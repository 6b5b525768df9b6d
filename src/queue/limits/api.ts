/** The part of a queue object's RPC interface that is about limits. Times in epoch ms. */
import type { Outcome } from '../../job/errors';
import type { LimitOverride } from '../../job/limits/policy';

/** How much of its limits a key has left. */
export interface LimitStanding {
  /** Starts in a period; for a key that counts none, attempts at once. */
  limit: number;
  remaining: number;
  /** When more is left. */
  resets_at: number;
}

/** A key that limits jobs, as one queue knows it. */
export interface RateLimitView {
  key: string;
  queue: string;
  /** Attempts at once. */
  concurrency?: number;
  /** Attempts that run. */
  active: number;
  /** Starts in a period. */
  limit?: number;
  period_ms?: number;
  /** The starts are evenly spread. */
  throttled?: true;
  /** Starts in the period that ends now. */
  current_count: number;
  /** When the next start fits, if none does now; else when the oldest that counts leaves the period. */
  window_resets_at?: number;
  /** Jobs that wait for room. */
  waiting: number;
  override?: LimitOverride;
}

export interface LimitsApi {
  /** The keys that limit jobs here, in order, at most 10000. */
  limitKeys(queue: string): Promise<string[]>;
  /** Those of these keys that are known here. */
  rateLimits(queue: string, keys: string[]): Promise<RateLimitView[]>;
  /**
   * Puts other limits in the place of a key's own, or takes them back (null).
   * @returns null when the key is not known here; 400 for a limit whose period nobody said
   */
  overrideRateLimit(queue: string, key: string, override: LimitOverride | null): Promise<Outcome<RateLimitView | null>>;
}
