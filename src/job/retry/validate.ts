/** Refuses impossible retry policies when they are written: by their shape, then merged over the layers below. */
import { inPolicy, isObject, readInteger } from '../envelope/fields';
import { invalidPolicy } from '../errors';
import type { RetryInput } from '../record';
import { MAX_ATTEMPTS, readLayer } from './layer';
import type { RetryLayer } from './policy';
import { lenientLayer, mergeLayers, type RetryLayers } from './resolve';
import { variablesLayer } from './variables';

function strictLayer(input: unknown, path: string): RetryLayer {
  if (input === undefined || input === null) return {};
  if (!isObject(input)) throw invalidPolicy(path, 'must be an object, such as {"max_attempts": 5}');
  return readLayer(input, path);
}

/**
 * Checks the shape of one layer: names, types, ranges. null or undefined is an empty layer.
 *
 * @param path what the fields are named after in errors, e.g. `retry` gives `retry.jitter.amount`
 * @returns the layer as written
 * @throws {ApiError} 422
 */
export function checkRetryLayer(input: unknown, path = 'retry'): RetryInput {
  strictLayer(input, path);
  return isObject(input) ? input : {};
}

/** Checks the number of runs where it is next to the policy. @throws {ApiError} 422 */
export const checkMaxAttempts = inPolicy(readInteger(0, MAX_ATTEMPTS));

/**
 * Checks the job layer: its shape, and the policy that it makes of the layers below. To check another layer, pass it as
 * `job` with only the layers below it. A fault of the merged policy counts only if this layer sets one of the fields
 * involved; a layer is not refused for mistakes below it.
 * @throws {ApiError} 422 for the layer, 500 `invalid_configuration` for the variables
 */
export function checkRetry(layers: RetryLayers, path = 'retry'): void {
  const variables = variablesLayer(layers.variables);
  const job = strictLayer(layers.job, path);
  const merged = mergeLayers(variables, lenientLayer(layers.queue), lenientLayer(layers.job_type), job);
  const gives = (field: keyof RetryLayer): boolean => job[field] !== undefined;

  if (merged.backoff_strategy === 'table' && !merged.table && gives('backoff_strategy')) {
    throw invalidPolicy(`${path}.table`, 'is required by backoff_strategy table');
  }
  if (
    merged.backoff_coefficient < 1 &&
    merged.backoff_strategy !== 'polynomial' &&
    (gives('backoff_strategy') || gives('backoff_coefficient'))
  ) {
    throw invalidPolicy(
      `${path}.backoff_coefficient`,
      `must be at least 1 with backoff_strategy ${merged.backoff_strategy}`,
    );
  }
}
