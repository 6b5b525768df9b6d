import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { PRESETS } from '../../../src/job/retry/presets';
import { describeRetry, resolveRetry } from '../../../src/job/retry/resolve';
import { checkRetry, checkRetryLayer } from '../../../src/job/retry/validate';
import { refusal } from './vectors';

const FORMULA = { DEFAULT_BACKOFF_BASE: '15s', DEFAULT_BACKOFF_EXPONENT: '0.5', DEFAULT_BACKOFF_JITTER: '30s' };

function field(action: () => unknown): unknown {
  return refusal(action).data.details?.field;
}

describe('checking a layer by its shape', () => {
  it('hands it back as written', () => {
    const layer = { strategy: 'none', initial_interval_ms: 5, jitter: null };
    expect(checkRetryLayer(layer)).toBe(layer);
  });

  it('takes an absent layer for an empty one', () => {
    expect(checkRetryLayer(undefined)).toEqual({});
    expect(checkRetryLayer(null)).toEqual({});
  });

  it.each([['5'], [5], [true], [[]]])('refuses %j, which is not an object', (input) => {
    expect(field(() => checkRetryLayer(input))).toBe('retry');
  });

  it('leaves to the merge what depends on other layers', () => {
    expect(() => checkRetryLayer({ strategy: 'table' })).not.toThrow();
    expect(() => checkRetryLayer({ backoff_coefficient: 0.5 })).not.toThrow();
  });

  it('names fields after the path it was given', () => {
    expect(field(() => checkRetryLayer({ table: [1, 'x'] }, 'layers.queue'))).toBe('layers.queue.table[1]');
    expect(field(() => checkRetry({ job: { strategy: 'table' } }, 'default_retry'))).toBe('default_retry.table');
  });

  it('takes a member called __proto__ for an unknown field', () => {
    expect(field(() => checkRetryLayer(JSON.parse('{"__proto__": {"max_attempts": 1}}')))).toBe('retry.__proto__');
  });

  it('counts characters of an error name, not code units', () => {
    expect(() => checkRetryLayer({ non_retryable_errors: ['😀'.repeat(255)] })).not.toThrow();
    expect(field(() => checkRetryLayer({ non_retryable_errors: ['😀'.repeat(256)] }))).toBe(
      'retry.non_retryable_errors[0]',
    );
  });

  it('refuses max_interval and its twin together also when one says "no cap"', () => {
    expect(field(() => checkRetryLayer({ max_interval: '5s', max_interval_ms: null }))).toBe('retry.max_interval_ms');
    expect(resolveRetry({ job: { max_interval_ms: null } }).max_interval).toBeNull();
  });
});

describe('checking a job over the layers below', () => {
  it('finds a table or a polynomial there', () => {
    expect(() => checkRetry({ queue: { table: ['1s'] }, job: { strategy: 'table' } })).not.toThrow();
    expect(() => checkRetry({ job_type: { strategy: 'polynomial' }, job: { backoff_coefficient: 0.5 } })).not.toThrow();
    expect(() => checkRetry({ variables: FORMULA, job: { backoff_coefficient: 0.1 } })).not.toThrow();
  });

  it('refuses a strategy that the inherited coefficient is too low for', () => {
    const action = (): void => checkRetry({ variables: FORMULA, job: { backoff_strategy: 'linear' } });
    expect(field(action)).toBe('retry.backoff_coefficient');
  });

  it('does not blame a job for what is wrong below it', () => {
    expect(() => checkRetry({ queue: { strategy: 'table' }, job: { max_attempts: 2 } })).not.toThrow();
    expect(() => checkRetry({ queue: { backoff_coefficient: 0.5 } })).not.toThrow();
  });

  it('reports the deployment variables even when the job has no policy', () => {
    const { data } = refusal(() => checkRetry({ variables: { DEFAULT_BACKOFF_BASE: '1s' } }));
    expect(data).toMatchObject({
      status: 500,
      code: 'invalid_configuration',
      message:
        'DEFAULT_BACKOFF_BASE, DEFAULT_BACKOFF_EXPONENT and DEFAULT_BACKOFF_JITTER form one formula: set all three or none',
      details: { missing: ['DEFAULT_BACKOFF_EXPONENT', 'DEFAULT_BACKOFF_JITTER'] },
    });
  });
});

describe('resolving at failure time', () => {
  it('falls back to constant when the table is gone', () => {
    const policy = resolveRetry({ job: { strategy: 'table', initial_interval: '7s' } });
    expect(policy).toMatchObject({ backoff_strategy: 'constant', initial_interval: 7000 });
  });

  it('takes unreadable fields of any layer as not given', () => {
    const layers = { queue: { max_attempts: 'x', jitter: { kind: '?' }, nope: 1 }, job: { table: ['x'], offset: -1 } };
    expect(resolveRetry(layers)).toEqual(resolveRetry({}));
  });

  it('notices when the variables change', () => {
    expect(resolveRetry({ variables: { DEFAULT_RETRY_LIMIT: '4' } }).max_attempts).toBe(5);
    expect(resolveRetry({ variables: { DEFAULT_RETRY_LIMIT: '6' } }).max_attempts).toBe(7);
    expect(resolveRetry({ variables: { ...FORMULA } }).offset).toBe(15_000);
    expect(resolveRetry({}).max_attempts).toBe(3);
  });

  it('hands out policies that can be changed without touching the next one', () => {
    resolveRetry({}).non_retryable_errors.push('x');
    expect(resolveRetry({}).non_retryable_errors).toEqual([]);
  });

  it('never throws over what a layer contains', () => {
    const name = fc.constantFrom(
      'preset',
      'max_attempts',
      'strategy',
      'table',
      'jitter',
      'max_interval',
      'offset',
      'x',
    );
    const layer = fc.dictionary(name, fc.jsonValue());
    fc.assert(
      fc.property(layer, layer, layer, (queue, job_type, job) => {
        resolveRetry({ queue, job_type, job });
      }),
    );
  });
});

describe('the wire form of a policy', () => {
  it('shows every default', () => {
    expect(describeRetry(resolveRetry({}))).toEqual({
      max_attempts: 3,
      backoff_strategy: 'exponential',
      initial_interval: 'PT1S',
      backoff_coefficient: 2,
      max_interval: 'PT5M',
      offset: 'PT0S',
      first_index: 1,
      jitter: { kind: 'multiply', min: 0.5, max: 1.5 },
      non_retryable_errors: [],
      on_exhaustion: 'discard',
      on_crash: 'retry',
    });
  });

  it('resolves aliases and writes durations in ISO 8601', () => {
    const job = {
      preset: 'sidekiq',
      backoff: 'custom',
      table: [100, '2m'],
      jitter: { kind: 'fraction', deterministic: true },
    };
    expect(describeRetry(resolveRetry({ job }))).toMatchObject({
      backoff_strategy: 'table',
      table: ['PT0.1S', 'PT2M'],
      offset: 'PT15S',
      max_interval: null,
      jitter: { kind: 'fraction', of: 0.25, deterministic: true },
    });
    expect(describeRetry(resolveRetry({ job: { jitter: false } })).jitter).toBe(false);
  });

  it('is a valid layer that resolves to the same policy', () => {
    const ms = fc.integer({ min: 0, max: 1_000_000_000 });
    const amounts = fc.record({ kind: fc.constantFrom('symmetric', 'additive', 'per_attempt'), amount: ms });
    const stepped = fc.record({ kind: fc.constant('per_attempt'), amount: ms, step: ms, deterministic: fc.boolean() });
    const optional = fc.record(
      {
        preset: fc.constantFrom(...Object.keys(PRESETS)),
        max_attempts: fc.nat(),
        strategy: fc.constantFrom('exponential', 'linear', 'fixed', 'polynomial', 'custom'),
        initial_interval_ms: ms,
        max_interval: fc.option(ms),
        offset: ms,
        backoff_coefficient: fc.double({ min: 1, max: 1000, noNaN: true }),
        table: fc.array(ms, { minLength: 1, maxLength: 4 }),
        jitter: fc.oneof(fc.boolean(), amounts, stepped),
        non_retryable_errors: fc.array(fc.string({ minLength: 1, maxLength: 9 }), { maxLength: 3 }),
        on_exhaustion: fc.constantFrom('discard', 'dead_letter'),
        on_crash: fc.constantFrom('retry', 'dead_letter'),
      },
      { requiredKeys: ['table'] },
    );
    fc.assert(
      fc.property(optional, (job) => {
        const policy = resolveRetry({ job });
        const wire = JSON.parse(JSON.stringify(describeRetry(policy)));
        checkRetry({ job: wire });
        expect(resolveRetry({ queue: { preset: 'sidekiq' }, job: wire })).toEqual(policy);
      }),
    );
  });
});
