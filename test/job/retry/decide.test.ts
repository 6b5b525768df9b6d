import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { AttemptFailure } from '../../../src/job/attempt/outcome';
import { type Decision, decideFailure, matchesNonRetryable } from '../../../src/job/retry/decide';
import { HARD_LIMIT_MS } from '../../../src/job/retry/delay';
import { resolveRetry } from '../../../src/job/retry/resolve';

const NOW = Date.UTC(2026, 0, 1);
const context = { now: NOW, random: () => 0.5, jobId: 'job' };

function decide(failure: AttemptFailure, policy: Record<string, unknown> = {}, n = 1): Decision {
  return decideFailure(resolveRetry({ job: { max_attempts: 5, jitter: false, ...policy } }), failure, n, context);
}

function retry(delay: number): Decision {
  return { outcome: 'retry', delay_ms: delay, run_at: NOW + delay };
}

describe('retryable: false', () => {
  it('ends the job as the policy says', () => {
    expect(decide({ retryable: false })).toEqual({ outcome: 'discarded', reason: 'non_retryable' });
    expect(decide({ retryable: false }, { on_exhaustion: 'dead_letter' })).toEqual({
      outcome: 'dead_letter',
      reason: 'non_retryable',
    });
  });

  it('is not undone by retry_in', () => {
    expect(decide({ retryable: false, retry_in: '5s' })).toMatchObject({ reason: 'non_retryable' });
  });

  it('is overridden by the code RETRY in any case, but not beyond the last run', () => {
    expect(decide({ retryable: false, code: 'RETRY' })).toEqual(retry(1000));
    expect(decide({ retryable: false, code: 'Retry' })).toEqual(retry(1000));
    expect(decide({ retryable: false, code: 'RETRY' }, {}, 5)).toMatchObject({ reason: 'retries_exhausted' });
  });

  it('means nothing when it is true: the list still applies', () => {
    expect(decide({ retryable: true, type: 'Fatal' }, { non_retryable_errors: ['Fatal'] })).toMatchObject({
      reason: 'non_retryable',
    });
  });
});

describe('retry_at', () => {
  it('is taken as it is, from RFC 3339 or epoch ms, and wins over retry_in', () => {
    expect(decide({ retry_at: '2026-01-01T01:00:00Z', retry_in: '5s' })).toEqual(retry(3_600_000));
    expect(decide({ retry_at: NOW + 1234, retry_in: '5s' })).toEqual(retry(1234));
  });

  it('in the past means at once', () => {
    expect(decide({ retry_at: '2020-01-01T00:00:00Z' })).toEqual(retry(0));
    expect(decide({ retry_at: 0 })).toEqual(retry(0));
  });

  it('in the far future ends at the hard limit', () => {
    expect(decide({ retry_at: 8e15 })).toEqual(retry(HARD_LIMIT_MS));
  });

  it('keeps a listed error alive, but buys no run beyond the last', () => {
    const policy = { non_retryable_errors: ['Fatal'] };
    expect(decide({ type: 'Fatal', retry_at: NOW + 5 }, policy)).toEqual(retry(5));
    expect(decide({ type: 'Fatal', retry_at: NOW + 5 }, policy, 5)).toMatchObject({ reason: 'retries_exhausted' });
  });

  it.each([['soon'], ['2026-02-30T00:00:00Z'], [Number.POSITIVE_INFINITY], [null], [{}]])(
    'that cannot be read (%j) is ignored, and retry_in is used instead',
    (retryAt) => {
      expect(decide({ retry_at: retryAt, retry_in: '5s' })).toEqual(retry(5000));
      expect(decide({ retry_at: retryAt })).toEqual(retry(1000));
    },
  );
});

describe('retry_in', () => {
  it.each([['later'], [-5], ['-5s'], [1.5], ['P1Y'], [null], [[]]])(
    'that cannot be read (%j) is ignored',
    (retryIn) => {
      expect(decide({ retry_in: retryIn })).toEqual(retry(1000));
      expect(decide({ retry_in: retryIn, type: 'Fatal' }, { non_retryable_errors: ['Fatal'] })).toMatchObject({
        reason: 'non_retryable',
      });
    },
  );
});

describe('a target that rejects the delivery', () => {
  it('makes a dead letter whatever on_exhaustion says', () => {
    expect(decide({ target_rejected: true, retryable: false })).toEqual({
      outcome: 'dead_letter',
      reason: 'target_rejected',
    });
    expect(decide({ target_rejected: true, retry_in: '5s' })).toMatchObject({ reason: 'target_rejected' });
  });

  it('is overruled by what its answer says about retrying', () => {
    expect(decide({ target_rejected: true, code: 'DISCARD' })).toMatchObject({ reason: 'discard_code' });
    expect(decide({ target_rejected: true, code: 'RETRY' })).toEqual(retry(1000));
    expect(decide({ target_rejected: true, retryable: true })).toEqual(retry(1000));
  });
});

describe('an unrecoverable error', () => {
  it('is known by its type when no classes were sent', () => {
    expect(decide({ type: 'UnrecoverableError' })).toEqual({ outcome: 'dead_letter', reason: 'unrecoverable' });
  });

  it('is known by its classes otherwise', () => {
    expect(decide({ type: 'UnrecoverableError', classes: ['Soft', 'Error'] })).toEqual(retry(1000));
  });
});

describe('an expired lease', () => {
  it('has a code that can be on the list, too', () => {
    expect(decide({ visibility_expired: true }, { non_retryable_errors: ['visibility_timeout'] })).toMatchObject({
      reason: 'non_retryable',
    });
  });

  it('is not a crash, even if the handler died as well', () => {
    const policy = { on_crash: 'dead_letter' };
    expect(decide({ visibility_expired: true, crash: true }, policy)).toEqual(retry(0));
  });

  it('does not ask the random source', () => {
    const random = (): number => {
      throw new Error('asked');
    };
    const decision = decideFailure(resolveRetry({}), { visibility_expired: true }, 1, { ...context, random });
    expect(decision).toEqual(retry(0));
  });
});

describe('a lower bound on the delay', () => {
  it('lifts a computed delay, but not one that the answer asked for', () => {
    expect(decide({ at_least_ms: 30_000 })).toEqual(retry(30_000));
    expect(decide({ at_least_ms: 30 })).toEqual(retry(1000));
    expect(decide({ at_least_ms: 30_000, retry_in: 10 })).toEqual(retry(10));
  });
});

describe('the list of non-retryable errors', () => {
  it.each([
    ['auth.token_expired', 'auth.*', true],
    ['auth', 'auth.*', false],
    ['external.auth.failure', 'auth.*', false],
    ['auth', 'auth', true],
    ['auth.forbidden', 'auth', false],
    ['Auth.forbidden', 'auth.*', false],
    ['anything', '*', false],
    ['ab', 'a*', false],
    ['a*', 'a*', true],
  ])('type %s against entry %s: %s', (type, entry, expected) => {
    expect(matchesNonRetryable([entry], type)).toBe(expected);
    expect(matchesNonRetryable([entry], 'other', type)).toBe(expected);
  });

  it('matches nothing when there is neither type nor code', () => {
    expect(matchesNonRetryable(['.*', 'undefined', ''], undefined, undefined)).toBe(false);
  });
});

describe('a failure that contains anything at all', () => {
  const names = [
    'code',
    'type',
    'classes',
    'retryable',
    'kill',
    'retry_in',
    'retry_at',
    'crash',
    'visibility_expired',
    'no_handler',
    'target_rejected',
    'at_least_ms',
  ];
  const anything = fc.dictionary(
    fc.constantFrom(...names),
    fc.oneof(fc.jsonValue(), fc.boolean(), fc.date(), fc.double()),
  );

  it('is decided about without an exception, and any retry has a valid time', () => {
    fc.assert(
      fc.property(anything, fc.integer({ min: 1, max: 10 }), (failure, n) => {
        const decision = decide(failure as AttemptFailure, { non_retryable_errors: ['a.*', 'b'] }, n);
        if (decision.outcome !== 'retry') {
          expect(decision.reason).toMatch(/^[a-z_]+$/);
          return;
        }
        expect(n).toBeLessThan(5);
        expect(Number.isInteger(decision.delay_ms)).toBe(true);
        expect(decision.delay_ms).toBeGreaterThanOrEqual(0);
        expect(new Date(decision.run_at).getTime()).toBe(decision.run_at);
      }),
      { numRuns: 1000 },
    );
  });
});
