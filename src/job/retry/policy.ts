/** The effective retry policy: every field present, aliases resolved, durations in ms. */

export type BackoffStrategy = 'exponential' | 'linear' | 'constant' | 'polynomial' | 'table';
export type PresetName = 'ojs' | 'zzz' | 'chasqui' | 'zizq' | 'sidekiq';

/** How randomness changes a delay d, with r in [0, 1). `deterministic`: r is computed from job id and n. */
export type Jitter =
  /** d · (min + r · (max − min)), capped again. */
  | { kind: 'multiply'; min: number; max: number; deterministic: boolean }
  /** d + (2r − 1) · amount. */
  | { kind: 'symmetric'; amount: number; deterministic: boolean }
  /** d + r · amount. */
  | { kind: 'additive'; amount: number; deterministic: boolean }
  /** d + n · r · amount, with r · amount cut to whole steps unless `step` is 0. */
  | { kind: 'per_attempt'; amount: number; step: number; deterministic: boolean }
  /** d + r · of · d. */
  | { kind: 'fraction'; of: number; deterministic: boolean };

export interface RetryPolicy {
  /** Runs in all, the first included; 0 acts as 1. */
  max_attempts: number;
  backoff_strategy: BackoffStrategy;
  /** ms. */
  initial_interval: number;
  /** Base of `exponential`, exponent of `polynomial`. */
  backoff_coefficient: number;
  /** ms; null: no cap. */
  max_interval: number | null;
  /** ms, added before the cap. */
  offset: number;
  /** The number that `linear` and `polynomial` give the first failure. */
  first_index: 0 | 1;
  /** ms for each failure, the last one repeats. Used by strategy `table` only. */
  table?: number[];
  jitter: Jitter | false;
  /** Error types or codes, exact or as a prefix that ends in `.*`. */
  non_retryable_errors: string[];
  on_exhaustion: 'discard' | 'dead_letter';
  on_crash: 'retry' | 'dead_letter';
}

/** Some fields of a policy: those of one layer. */
export type RetryLayer = Partial<RetryPolicy>;

/** What `jitter: true` means. */
export const DEFAULT_JITTER: Jitter = { kind: 'multiply', min: 0.5, max: 1.5, deterministic: false };
