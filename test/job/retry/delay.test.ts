import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { MAX_DURATION_MS } from '../../../src/job/duration';
import { delayBounds, deterministicRandom, HARD_LIMIT_MS, retryDelay } from '../../../src/job/retry/delay';
import type { Jitter, RetryPolicy } from '../../../src/job/retry/policy';
import { resolveRetry } from '../../../src/job/retry/resolve';

const duration = fc.oneof(fc.integer({ min: 0, max: 100_000 }), fc.integer({ min: 0, max: MAX_DURATION_MS }));
const r = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true });
const n = fc.oneof(fc.integer({ min: 1, max: 60 }), fc.integer({ min: 1, max: 2_147_483_647 }));
const deterministic = fc.boolean();
const factors = fc
  .tuple(fc.double({ min: 0, max: 10, noNaN: true }), fc.double({ min: 0, max: 10, noNaN: true }))
  .map(([a, b]) => ({ min: Math.min(a, b), max: Math.max(a, b) }));

const jitter: fc.Arbitrary<Jitter | false> = fc.oneof(
  fc.constant<false>(false),
  fc
    .record({ range: factors, deterministic })
    .map(({ range, ...rest }): Jitter => ({ kind: 'multiply', ...range, ...rest })),
  fc.record({ kind: fc.constantFrom('symmetric', 'additive'), amount: duration, deterministic }),
  fc.record({ kind: fc.constant('per_attempt'), amount: duration, step: duration, deterministic }),
  fc.record({ kind: fc.constant('fraction'), of: fc.double({ min: 0, max: 1, noNaN: true }), deterministic }),
);

const policy: fc.Arbitrary<RetryPolicy> = fc.record({
  max_attempts: fc.integer({ min: 0, max: 50 }),
  backoff_strategy: fc.constantFrom('exponential', 'linear', 'constant', 'polynomial', 'table'),
  initial_interval: duration,
  backoff_coefficient: fc.oneof(
    fc.double({ min: 1, max: 4, noNaN: true }),
    fc.double({ min: 1, max: 1000, noNaN: true }),
  ),
  max_interval: fc.option(duration),
  offset: duration,
  first_index: fc.constantFrom(0, 1),
  table: fc.array(duration, { minLength: 1, maxLength: 5 }),
  jitter,
  non_retryable_errors: fc.constant<string[]>([]),
  on_exhaustion: fc.constantFrom('discard', 'dead_letter'),
  on_crash: fc.constantFrom('retry', 'dead_letter'),
});

describe('a delay', () => {
  it('is a whole number of milliseconds within the bounds of its policy', () => {
    fc.assert(
      fc.property(policy, n, r, fc.string(), (p, failed, random, jobId) => {
        const delay = retryDelay(p, failed, () => random, jobId);
        const { min, max } = delayBounds(p, failed);
        expect(Number.isSafeInteger(delay)).toBe(true);
        expect(delay).toBeGreaterThanOrEqual(Math.max(0, min));
        expect(delay).toBeLessThanOrEqual(Math.min(max, HARD_LIMIT_MS));
      }),
      { numRuns: 1000 },
    );
  });

  it('asks the random source once, and not at all without jitter or with a deterministic one', () => {
    fc.assert(
      fc.property(policy, n, (p, failed) => {
        let calls = 0;
        const random = (): number => {
          calls += 1;
          return 0.5;
        };
        retryDelay(p, failed, random, 'job');
        expect(calls).toBe(p.jitter === false || p.jitter.deterministic ? 0 : 1);
      }),
    );
  });

  it('never exceeds the cap without jitter, nor with a jitter that multiplies', () => {
    fc.assert(
      fc.property(policy, n, r, duration, factors, (p, failed, random, cap, range) => {
        const capped = { ...p, max_interval: cap };
        expect(retryDelay({ ...capped, jitter: false }, failed, () => random, 'job')).toBeLessThanOrEqual(cap);
        const multiply: Jitter = { kind: 'multiply', ...range, deterministic: false };
        expect(retryDelay({ ...capped, jitter: multiply }, failed, () => random, 'job')).toBeLessThanOrEqual(cap);
      }),
    );
  });

  it('grows with the failures until it meets the cap, and with the cap', () => {
    fc.assert(
      fc.property(policy, fc.integer({ min: 1, max: 1000 }), duration, duration, (p, failed, a, b) => {
        fc.pre(p.backoff_strategy !== 'table');
        const at = (count: number, cap: number): number =>
          retryDelay({ ...p, jitter: false, max_interval: cap }, count, () => 0, 'job');
        expect(at(failed + 1, a)).toBeGreaterThanOrEqual(at(failed, a));
        expect(at(failed, Math.max(a, b))).toBeGreaterThanOrEqual(at(failed, Math.min(a, b)));
      }),
    );
  });

  it('may pass the cap by the width of a jitter that adds', () => {
    const p = resolveRetry({ job: { max_interval: '1s', jitter: { kind: 'additive', amount: '1s' } } });
    expect(retryDelay(p, 9, () => 0.5, 'job')).toBe(1500);
  });

  it('stays a valid date however large the numbers', () => {
    const p = resolveRetry({ job: { preset: 'zizq', backoff_coefficient: 1000 } });
    expect(retryDelay(p, 2_147_483_647, () => 0.999, 'job')).toBe(HARD_LIMIT_MS);
  });
});

describe('a deterministic jitter', () => {
  const p = resolveRetry({ job: { preset: 'zzz' } });
  const never = (): number => {
    throw new Error('the random source was asked');
  };

  it('gives the same job the same delay for the same failure', () => {
    expect(retryDelay(p, 3, never, 'job-a')).toBe(retryDelay(p, 3, never, 'job-a'));
    expect(retryDelay(p, 3, never, 'job-a')).not.toBe(retryDelay(p, 3, never, 'job-b'));
  });

  it('does not change between releases', () => {
    expect(deterministicRandom('019b7a5e-7c00-7000-8000-000000000001', 1)).toBe(0.7051325866127423);
    expect(deterministicRandom('019b7a5e-7c00-7000-8000-000000000001', 2)).toBe(0.6158309286455279);
  });

  it.each([1, 2, 17])('spreads consecutive job ids evenly after failure %i', (failed) => {
    const buckets = new Array<number>(20).fill(0);
    const jobs = 20_000;
    for (let job = 0; job < jobs; job += 1) {
      const id = `019b7a5e-7c00-7000-8000-${job.toString(16).padStart(12, '0')}`;
      const bucket = Math.floor(deterministicRandom(id, failed) * 20);
      buckets[bucket] = (buckets[bucket] ?? 0) + 1;
    }
    const expected = jobs / 20;
    const chiSquare = buckets.reduce((sum, count) => sum + (count - expected) ** 2 / expected, 0);
    // 19 degrees of freedom: 43.8 is exceeded once in a thousand for a fair source; these ids are fixed.
    expect(chiSquare).toBeLessThan(43.8);
  });

  it('spreads the failures of one job evenly', () => {
    let sum = 0;
    for (let failed = 1; failed <= 10_000; failed += 1) sum += deterministicRandom('job', failed);
    expect(Math.abs(sum / 10_000 - 0.5)).toBeLessThan(0.01);
  });
});
