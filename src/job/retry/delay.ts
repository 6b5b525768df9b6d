/**
 * The delay after a failure, in doubles until one final rounding down: raw delay plus offset; cap (`max_interval`,
 * {@link HARD_LIMIT_MS}); jitter (only `multiply` is capped again); 0 … the hard limit, whole ms.
 */
import type { Jitter, RetryPolicy } from './policy';

/** No delay is longer: any present time plus this is still a valid date. */
export const HARD_LIMIT_MS = 4e15;

/** The longest pause that another server may ask for (`Retry-After`), ms, in case it is mistaken. */
export const LONGEST_ASKED_MS = 86_400_000;

/**
 * The delay before the next run, whole ms, 0 … {@link HARD_LIMIT_MS}.
 * @param failedExecutions n ≥ 1 @param jobId seeds a deterministic jitter, together with n
 * @param random r in [0, 1); called once, or not at all when the jitter is off or deterministic
 */
export function retryDelay(policy: RetryPolicy, failedExecutions: number, random: () => number, jobId: string): number {
  const { jitter } = policy;
  const base = cappedDelay(policy, failedExecutions);
  if (!jitter) return whole(base);
  const r = jitter.deterministic ? deterministicRandom(jobId, failedExecutions) : random();
  return whole(jittered(policy, jitter, base, failedExecutions, r));
}

/** The range of {@link retryDelay}: `min` at r = 0; no r exceeds `max`, and r near 1 comes within 1 ms of it. */
export function delayBounds(policy: RetryPolicy, failedExecutions: number): { min: number; max: number } {
  const { jitter } = policy;
  const base = cappedDelay(policy, failedExecutions);
  if (!jitter) return { min: whole(base), max: whole(base) };
  // Every kind grows with r, so the ends of r are the ends of the delay.
  const min = whole(jittered(policy, jitter, base, failedExecutions, 0));
  if (jitter.kind === 'per_attempt' && jitter.step > 0) {
    // r stays below 1, so a last step that would need all of `amount` is never reached.
    const lastStep = Math.max(0, Math.ceil(jitter.amount / jitter.step) - 1) * jitter.step;
    return { min, max: whole(base + failedExecutions * lastStep) };
  }
  return { min, max: whole(jittered(policy, jitter, base, failedExecutions, 1)) };
}

function cappedDelay(policy: RetryPolicy, n: number): number {
  const cap = Math.min(policy.max_interval ?? Number.POSITIVE_INFINITY, HARD_LIMIT_MS);
  const raw = rawDelay(policy, n) + policy.offset;
  return Number.isNaN(raw) ? cap : Math.min(raw, cap);
}

function rawDelay(policy: RetryPolicy, n: number): number {
  const { initial_interval: interval, backoff_coefficient: coefficient, table } = policy;
  const k = n - 1 + policy.first_index;
  switch (policy.backoff_strategy) {
    case 'constant':
      return interval;
    case 'linear':
      return interval * k;
    case 'exponential':
      return interval * finitePower(coefficient, n - 1);
    case 'polynomial':
      return interval * finitePower(k, coefficient);
    case 'table':
      return table?.[Math.min(n, table.length) - 1] ?? interval;
  }
}

/** A power that stays finite, because an interval of 0 times infinity would be no number. */
const finitePower = (base: number, exponent: number): number => Math.min(base ** exponent, Number.MAX_VALUE);

function jittered(policy: RetryPolicy, jitter: Jitter, d: number, n: number, r: number): number {
  switch (jitter.kind) {
    case 'multiply':
      return Math.min(
        d * (jitter.min + r * (jitter.max - jitter.min)),
        policy.max_interval ?? Number.POSITIVE_INFINITY,
      );
    case 'symmetric':
      return d + (2 * r - 1) * jitter.amount;
    case 'additive':
      return d + r * jitter.amount;
    case 'per_attempt': {
      const { amount, step } = jitter;
      return d + n * (step > 0 ? Math.floor((r * amount) / step) * step : r * amount);
    }
    case 'fraction':
      return d + r * jitter.of * d;
  }
}

const whole = (d: number): number => Math.floor(Math.min(Math.max(d, 0), HARD_LIMIT_MS));

/**
 * A number in [0, 1) from job id and n by the avalanche steps of MurmurHash3 (Austin Appleby, public domain). Never
 * change it: promised delays depend on it.
 */
export function deterministicRandom(jobId: string, failedExecutions: number): number {
  const text = `${jobId}:${failedExecutions}`;
  let high = 0x9e3779b9;
  let low = 0x85ebca6b;
  for (let index = 0; index < text.length; index += 1) {
    const unit = text.charCodeAt(index);
    high = Math.imul(high ^ unit, 0x01000193);
    low = Math.imul(low ^ unit, 0xcc9e2d51);
    low = (low << 15) | (low >>> 17);
  }
  high = avalanche(high ^ text.length);
  low = avalanche(low ^ high);
  return ((high >>> 0) * 2 ** 21 + (low >>> 11)) / 2 ** 53;
}

function avalanche(hash: number): number {
  let h = hash;
  h = Math.imul(h ^ (h >>> 16), 0x85ebca6b);
  h = Math.imul(h ^ (h >>> 13), 0xc2b2ae35);
  return h ^ (h >>> 16);
}
