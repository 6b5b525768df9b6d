/** Merges the layers of a policy, field by field. Only the job layer is stored; the others are read at each failure. */
import { formatDuration } from '../duration';
import { isObject } from '../envelope/fields';
import type { LowerLayers, RetryInput } from '../record';
import { readLayer } from './layer';
import type { Jitter, RetryLayer, RetryPolicy } from './policy';
import { PRESETS } from './presets';
import { type RetryVariables, variablesLayer } from './variables';

/** The layers as they were written; an absent one is empty. */
export interface RetryLayers extends LowerLayers {
  variables?: RetryVariables;
  job?: RetryInput;
}

/** Merges normalised layers, the lowest first, over the Open Job Spec defaults. */
export const mergeLayers = (...layers: readonly Readonly<RetryLayer>[]): RetryPolicy =>
  Object.assign({ ...PRESETS.ojs, non_retryable_errors: [] }, ...layers);

/** Reads a layer that was checked when it was written; members that are unreadable by now count as absent. */
export const lenientLayer = (input: RetryInput | undefined): RetryLayer =>
  isObject(input) ? readLayer(input, 'retry', true) : {};

/** The effective policy; `table` without a table is `constant`. @throws {ApiError} 500, see {@link variablesLayer} */
export function resolveRetry(layers: RetryLayers): RetryPolicy {
  const policy = mergeLayers(
    variablesLayer(layers.variables),
    lenientLayer(layers.queue),
    lenientLayer(layers.job_type),
    lenientLayer(layers.job),
  );
  if (policy.backoff_strategy === 'table' && !policy.table) policy.backoff_strategy = 'constant';
  return policy;
}

/** `retry_effective`: durations in ISO 8601, `max_interval` null: no cap. It is a valid layer for the same policy. */
export const describeRetry = (policy: RetryPolicy): Record<string, unknown> => ({
  max_attempts: policy.max_attempts,
  backoff_strategy: policy.backoff_strategy,
  initial_interval: formatDuration(policy.initial_interval),
  backoff_coefficient: policy.backoff_coefficient,
  max_interval: policy.max_interval === null ? null : formatDuration(policy.max_interval),
  offset: formatDuration(policy.offset),
  first_index: policy.first_index,
  ...(policy.table && { table: policy.table.map(formatDuration) }),
  jitter: policy.jitter && describeJitter(policy.jitter),
  non_retryable_errors: [...policy.non_retryable_errors],
  on_exhaustion: policy.on_exhaustion,
  on_crash: policy.on_crash,
});

function describeJitter(jitter: Jitter): Record<string, unknown> {
  const { deterministic, ...rest } = jitter;
  const members: Record<string, unknown> = { ...rest };
  if ('amount' in rest) members.amount = formatDuration(rest.amount);
  if ('step' in rest) {
    if (rest.step > 0) members.step = formatDuration(rest.step);
    else delete members.step;
  }
  return deterministic ? { ...members, deterministic } : members;
}
