/**
 * Plays retry vectors (format `tocsin-retry-vectors/1`): data that says which delay, decision, merged policy or
 * validation error follows from which policy.
 */

import { expect, it } from 'vitest';
import type { AttemptFailure } from '../../../src/job/attempt/outcome';
import { ApiError } from '../../../src/job/errors';
import { decideFailure } from '../../../src/job/retry/decide';
import { delayBounds, retryDelay } from '../../../src/job/retry/delay';
import type { RetryPolicy } from '../../../src/job/retry/policy';
import { type RetryLayers, resolveRetry } from '../../../src/job/retry/resolve';
import { checkRetry } from '../../../src/job/retry/validate';

interface Base {
  id: string;
  policy: Record<string, unknown>;
}
interface DelayVector extends Base {
  kind: 'delay';
  failed_executions: number;
  random?: number;
  expected_ms?: number;
  min_ms?: number;
  max_ms?: number;
}
interface DecisionVector extends Base {
  kind: 'decision';
  failed_executions: number;
  failure: Record<string, unknown>;
  random?: number;
  expected: { outcome: string; reason?: string; delay_ms?: number };
}
interface ResolveVector extends Base {
  kind: 'resolve';
  layers: RetryLayers;
  expected_policy?: Record<string, unknown>;
  expected_error?: { code: string; missing?: string[]; variable?: string };
}
interface ValidateVector extends Base {
  kind: 'validate';
  expected: { status: 'ok' | number; field?: string };
}
type Vector = DelayVector | DecisionVector | ResolveVector | ValidateVector;

const NOW = Date.UTC(2026, 0, 1);
const JOB_ID = '019b7a5e-7c00-7000-8000-000000000001';

/** Declares one test for each vector. */
export function runVectors(vectors: readonly unknown[]): void {
  for (const vector of vectors as readonly Vector[]) {
    it(`${vector.kind} vector ${vector.id} holds`, () => {
      switch (vector.kind) {
        case 'delay':
          return playDelay(vector);
        case 'decision':
          return playDecision(vector);
        case 'resolve':
          return playResolve(vector);
        case 'validate':
          return playValidate(vector);
        default:
          throw new Error(`unknown kind of vector: ${JSON.stringify(vector)}`);
      }
    });
  }
}

function playDelay(vector: DelayVector): void {
  checkRetry({ job: vector.policy });
  const policy = resolveRetry({ job: vector.policy });
  const n = vector.failed_executions;
  if (vector.expected_ms !== undefined) {
    const r = vector.random ?? 0.5;
    expect(retryDelay(policy, n, () => r, JOB_ID)).toBe(vector.expected_ms);
    return;
  }
  const min = vector.min_ms ?? 0;
  const max = vector.max_ms ?? 0;
  expect(delayBounds(policy, n)).toEqual({ min, max });
  for (let job = 0; job < 50; job += 1) expectWithin(policy, n, job / 50, `job-${job}`, min, max);

  // Both ends are reached by the random source, also where the policy as written does not ask it.
  const random = withRandom(policy);
  expect(retryDelay(random, n, () => 0, JOB_ID)).toBe(min);
  const nearEnd = retryDelay(random, n, () => 0.9999, JOB_ID);
  expect(nearEnd).toBeLessThanOrEqual(max);
  expect(max - nearEnd).toBeLessThanOrEqual(Math.max(1, (max - min) * 0.001));
}

function expectWithin(policy: RetryPolicy, n: number, r: number, jobId: string, min: number, max: number): void {
  const delay = retryDelay(policy, n, () => r, jobId);
  expect(delay).toBeGreaterThanOrEqual(min);
  expect(delay).toBeLessThanOrEqual(max);
}

function withRandom(policy: RetryPolicy): RetryPolicy {
  return policy.jitter ? { ...policy, jitter: { ...policy.jitter, deterministic: false } } : policy;
}

function playDecision(vector: DecisionVector): void {
  checkRetry({ job: vector.policy });
  const { error_type: type, error_classes: classes, ...rest } = vector.failure;
  const failure: AttemptFailure = {
    ...rest,
    ...(type ? { type: String(type) } : {}),
    ...(classes ? { classes: classes as string[] } : {}),
  };
  const decision = decideFailure(resolveRetry({ job: vector.policy }), failure, vector.failed_executions, {
    now: NOW,
    random: () => vector.random ?? 0.5,
    jobId: JOB_ID,
  });
  expect(decision).toMatchObject(vector.expected);
  if (decision.outcome === 'retry') expect(decision.run_at).toBe(NOW + decision.delay_ms);
}

function playResolve(vector: ResolveVector): void {
  const { expected_error: error, expected_policy: expected } = vector;
  if (error) {
    for (const use of [resolveRetry, checkRetry]) {
      const data = refusal(() => use(vector.layers)).data;
      expect(data.code).toBe(error.code);
      expect(data.status).toBe(500);
      if (error.missing) expect(new Set(data.details?.missing as string[])).toEqual(new Set(error.missing));
      if (error.variable) expect(data.details?.variable).toBe(error.variable);
    }
    return;
  }
  checkRetry(vector.layers);
  const policy = resolveRetry(vector.layers);
  expect(expected).toBeDefined();
  for (const [name, value] of Object.entries(expected ?? {})) {
    const field = name as keyof RetryPolicy;
    // The expectation is written as a user would; read alone it says what the value means.
    expect({ [name]: policy[field] }).toEqual({ [name]: meaning(field, value) });
  }
}

function meaning(field: keyof RetryPolicy, value: unknown): unknown {
  if (field === 'backoff_strategy') return resolveRetry({ job: { [field]: value, table: [0] } })[field];
  return resolveRetry({ job: { [field]: value } })[field];
}

function playValidate(vector: ValidateVector): void {
  const check = (): void => checkRetry({ job: vector.policy });
  if (vector.expected.status === 'ok') {
    expect(check).not.toThrow();
    return;
  }
  const { data } = refusal(check);
  expect(data.status).toBe(vector.expected.status);
  expect(data.type).toBe('validation_error');
  expect(data.details?.field).toBe(vector.expected.field);
  expect(data.message).toContain(vector.expected.field);
}

/** The error that `action` throws. Fails when it throws none, or another one. */
export function refusal(action: () => unknown): ApiError {
  try {
    action();
  } catch (error) {
    if (error instanceof ApiError) return error;
    throw error;
  }
  throw new Error('nothing was refused');
}
