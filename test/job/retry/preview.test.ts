import { describe, expect, it } from 'vitest';
import { previewRetry } from '../../../src/job/retry/preview';
import { refusal } from './vectors';

const context = { now: Date.UTC(2026, 0, 1) };

describe('a preview of a retry policy', () => {
  it('shows ten delays of the default policy for an empty request', () => {
    const preview = previewRetry({}, context);
    expect(preview.effective).toMatchObject({ max_attempts: 3, initial_interval: 'PT1S' });
    expect(preview.delays).toHaveLength(10);
    expect(preview.delays.slice(0, 3)).toEqual([
      { failed_executions: 1, delay_ms: 1000, min_ms: 500, max_ms: 1500, cumulative_ms: 1000 },
      { failed_executions: 2, delay_ms: 2000, min_ms: 1000, max_ms: 3000, cumulative_ms: 3000 },
      { failed_executions: 3, delay_ms: 4000, min_ms: 2000, max_ms: 6000, cumulative_ms: 7000 },
    ]);
    expect(preview).not.toHaveProperty('decision');
  });

  it('starts at the failure asked for, with the random value asked for', () => {
    const { delays } = previewRetry({ policy: { preset: 'ojs' }, from: 4, attempts: 2, random: 0 }, context);
    expect(delays.map((row) => [row.failed_executions, row.delay_ms, row.cumulative_ms])).toEqual([
      [4, 4000, 4000],
      [5, 8000, 12_000],
    ]);
  });

  it('answers the same for a deterministic jitter whatever the random value', () => {
    const rows = [0, 0.9].map((random) => previewRetry({ policy: { preset: 'zzz' }, random }, context).delays);
    expect(rows[0]).toEqual(rows[1]);
  });

  it('merges the layers of the request over the variables of the deployment', () => {
    const variables = { DEFAULT_RETRY_LIMIT: '9' };
    const layers = { queue: { offset: '1s' }, job_type: { jitter: false } };
    const preview = previewRetry({ layers, policy: { initial_interval: '2s' } }, { ...context, variables });
    expect(preview.effective).toMatchObject({ max_attempts: 10, offset: 'PT1S', jitter: false });
    expect(preview.delays[0]?.delay_ms).toBe(3000);
  });

  it('replaces the variables of the deployment by those of the request', () => {
    const variables = { DEFAULT_RETRY_LIMIT: '9' };
    expect(previewRetry({ layers: { variables: {} } }, { ...context, variables }).effective.max_attempts).toBe(3);
  });

  it.each([
    [{}, { outcome: 'retry', delay_ms: 2000 }],
    [{ kill: true }, { outcome: 'dead_letter', reason: 'killed' }],
    [{ code: 'discard' }, { outcome: 'discarded', reason: 'discard_code' }],
    [{ error_type: 'db.gone' }, { outcome: 'discarded', reason: 'non_retryable' }],
    [{ error_classes: ['UnrecoverableError'] }, { outcome: 'dead_letter', reason: 'unrecoverable' }],
    [
      { error_type: 'db.gone', retry_in: '9s' },
      { outcome: 'retry', delay_ms: 9000 },
    ],
    [{ retry_at: '2026-01-01T00:00:07Z' }, { outcome: 'retry', delay_ms: 7000 }],
    [{ visibility_expired: true }, { outcome: 'retry', delay_ms: 0 }],
    [{ no_handler: true }, { outcome: 'dead_letter', reason: 'no_handler' }],
    [{ retryable: false }, { outcome: 'discarded', reason: 'non_retryable' }],
    [
      { crash: true, kill: null },
      { outcome: 'retry', delay_ms: 2000 },
    ],
  ])('decides about the failure %j', (failure, decision) => {
    const policy = { jitter: false, non_retryable_errors: ['db.*'] };
    expect(previewRetry({ policy, from: 2, failure }, context).decision).toEqual(decision);
  });

  it('decides about the run that `from` names', () => {
    expect(previewRetry({ from: 3, failure: {} }, context).decision).toEqual({
      outcome: 'discarded',
      reason: 'retries_exhausted',
    });
  });

  it.each([
    [{ policies: {} }, 'policies'],
    [{ from: 0 }, 'from'],
    [{ from: 1.5 }, 'from'],
    [{ from: '1' }, 'from'],
    [{ from: 2_147_483_648 }, 'from'],
    [{ attempts: 0 }, 'attempts'],
    [{ attempts: 101 }, 'attempts'],
    [{ random: 1 }, 'random'],
    [{ random: -0.1 }, 'random'],
    [{ random: '0' }, 'random'],
    [{ layers: [] }, 'layers'],
    [{ layers: { job: {} } }, 'layers.job'],
    [{ layers: { variables: 'x' } }, 'layers.variables'],
    [{ layers: { variables: { DEFAULT_RETRIES: '1' } } }, 'layers.variables.DEFAULT_RETRIES'],
    [{ layers: { variables: { DEFAULT_RETRY_LIMIT: {} } } }, 'layers.variables.DEFAULT_RETRY_LIMIT'],
    [{ failure: 'x' }, 'failure'],
    [{ failure: { kill: 'yes' } }, 'failure.kill'],
    [{ failure: { code: 5 } }, 'failure.code'],
    [{ failure: { error_classes: ['a', 1] } }, 'failure.error_classes[1]'],
    [{ failure: { retry_in: 'soon' } }, 'failure.retry_in'],
    [{ failure: { retry_at: 'soon' } }, 'failure.retry_at'],
    [{ failure: { type: 'x' } }, 'failure.type'],
  ])('refuses %j', (request, field) => {
    const { data } = refusal(() => previewRetry(request, context));
    expect(data).toMatchObject({ status: 400, code: 'invalid_request', details: { field } });
  });

  it.each([
    [{ policy: { backoff_coefficient: 0.5 } }, 'retry.backoff_coefficient'],
    [{ policy: 5 }, 'retry'],
    [{ layers: { queue: { max_attempts: -1 } } }, 'layers.queue.max_attempts'],
    [{ layers: { job_type: { strategy: 'table' } } }, 'layers.job_type.table'],
    [{ layers: { queue: 'x' } }, 'layers.queue'],
  ])('refuses the policy in %j as an enqueue would', (request, field) => {
    const { data } = refusal(() => previewRetry(request, context));
    expect(data).toMatchObject({ status: 422, type: 'validation_error', details: { field } });
  });

  it('reports contradicting variables as an enqueue would', () => {
    const request = { layers: { variables: { DEFAULT_BACKOFF_JITTER: '1s' } } };
    expect(refusal(() => previewRetry(request, context)).data).toMatchObject({
      status: 500,
      code: 'invalid_configuration',
    });
  });

  it.each([[null], [[]], ['x'], [undefined]])('refuses a body of %j', (body) => {
    expect(refusal(() => previewRetry(body, context)).data).toMatchObject({ status: 400, code: 'invalid_payload' });
  });
});
