/**
 * Reads one layer as a user wrote it (`docs/guides/retries.md`): aliases, `_ms` twins, presets and durations become the
 * fields of a {@link RetryLayer}. A field not given stays absent, so that it can be inherited.
 */

import { MAX_DURATION_MS, parseDuration } from '../duration';
import {
  inPolicy,
  isObject,
  type Reader,
  readBoolean,
  reader,
  readInteger,
  readMeaning,
  readNumber,
  readWord,
} from '../envelope/fields';
import { type Members, nullable, readMembers } from '../envelope/members';
import { ApiError, invalidPolicy, invalidRequest } from '../errors';
import { notKnown } from '../near-miss';
import type { RetryInput } from '../record';
import { type BackoffStrategy, DEFAULT_JITTER, type Jitter, type RetryLayer } from './policy';
import { PRESETS } from './presets';

/** A duration in any accepted form → ms. */
const readDuration = reader(
  parseDuration,
  'must be a duration of at most 36500 days, such as 1500 (ms), "12.5s" or "PT5M"',
);

/** A field ending in `_ms`: an integer and nothing else → ms. */
const readMs = reader(
  (value) => (typeof value === 'number' ? parseDuration(value) : undefined),
  `must be an integer number of milliseconds from 0 to ${MAX_DURATION_MS}`,
);

const MAX_FACTOR = 10;
const DEFAULT_SHARE = 0.25;

const readKind = readWord(['multiply', 'symmetric', 'additive', 'per_attempt', 'fraction']);

/** An object with these members, beside `kind` and `deterministic`. */
const readKindOf = <M extends Members>(members: M) =>
  readMembers({ kind: readKind, ...members, deterministic: readBoolean }, (path) =>
    invalidPolicy(path, notKnown(path, Object.keys(members))),
  );

const AMOUNT = { amount: readDuration, amount_ms: readMs };
const readMultiply = readKindOf({ min: readNumber(0, MAX_FACTOR), max: readNumber(0, MAX_FACTOR) });
const readAmount = readKindOf(AMOUNT);
const readPerAttempt = readKindOf({ ...AMOUNT, step: readDuration, step_ms: readMs });
const readFraction = readKindOf({ of: readNumber(0, 1) });

/**
 * Reads `jitter`. Members of another kind are unknown members. One bad member makes the whole unusable: a jitter is
 * replaced as a whole and never completed from below.
 * @throws {ApiError} 400; 422 for a member that the kind does not have
 */
function readJitter(value: unknown, path: string): Jitter | false {
  if (typeof value === 'boolean') return value ? DEFAULT_JITTER : false;
  if (!isObject(value)) throw invalidRequest(path, `${path} must be true, false or an object with a kind.`);
  const kind = readKind(value.kind, `${path}.kind`);
  /** A duration under one of its two names. */
  const duration = (name: string, plain: number | undefined, twin: number | undefined) => {
    if (plain !== undefined && twin !== undefined)
      throw invalidPolicy(`${path}.${name}_ms`, `repeats ${name}: use one`);
    return plain ?? twin;
  };
  const amountOf = ({ amount, amount_ms }: { amount?: number; amount_ms?: number }): number => {
    const read = duration('amount', amount, amount_ms);
    if (read === undefined) throw invalidPolicy(`${path}.amount`, `is required by jitter ${kind}`);
    return read;
  };
  switch (kind) {
    case 'multiply': {
      const { min: low, max = 1.5, deterministic = false } = readMultiply(value, path);
      const min = low ?? 0.5;
      if (min > max)
        throw invalidPolicy(
          `${path}.${low === undefined ? 'max' : 'min'}`,
          `min (${min}) must not exceed max (${max})`,
        );
      return { kind, min, max, deterministic };
    }
    case 'symmetric':
    case 'additive': {
      const { deterministic = false, ...rest } = readAmount(value, path);
      return { kind, amount: amountOf(rest), deterministic };
    }
    case 'per_attempt': {
      const { deterministic = false, step, step_ms, ...rest } = readPerAttempt(value, path);
      return { kind, amount: amountOf(rest), step: duration('step', step, step_ms) ?? 0, deterministic };
    }
    case 'fraction': {
      const { of = DEFAULT_SHARE, deterministic = false } = readFraction(value, path);
      return { kind, of, deterministic };
    }
  }
}

export const MAX_ATTEMPTS = 2_147_483_647;
export const MAX_COEFFICIENT = 1000;

const readStrategy = readMeaning<BackoffStrategy>({
  ...{ exponential: 'exponential', linear: 'linear', constant: 'constant', none: 'constant', fixed: 'constant' },
  ...{ polynomial: 'polynomial', table: 'table', custom: 'table' },
});
const readPreset = readMeaning(PRESETS);
const readFirstIndex = reader<0 | 1>((value) => ([0, 1] as const).find((index) => index === value), 'must be 0 or 1');

const readEntries = <T>(min: number, max: number, read: Reader<T>): Reader<T[]> => {
  const readArray = reader(
    (value) => (Array.isArray(value) && value.length >= min && value.length <= max ? value : undefined),
    `must be an array of ${min} to ${max} entries`,
  );
  return (value, path) => readArray(value, path).map((entry: unknown, index) => read(entry, `${path}[${index}]`));
};

/** The name or code of an error, counted in characters. */
const readErrorName = reader((value) => {
  if (typeof value !== 'string' || value.length > 2 * 255) return undefined;
  return [...value].length <= 255 && value !== '' ? value : undefined;
}, 'must be a string of 1 to 255 characters');

interface Field {
  target: keyof RetryLayer;
  /** Names of the same field that take precedence over this one. */
  rivals: readonly string[];
  read: Reader<unknown> & { nullable?: true };
}

const FIELDS = new Map<string, Field>();

/** @param aliases other names of the field; each gives way to those before it */
function define<K extends keyof RetryLayer>(
  target: K,
  reader: Reader<Exclude<RetryLayer[K], undefined>>,
  aliases: Readonly<Record<string, typeof reader>> = {},
): void {
  Object.entries({ [target]: reader, ...aliases }).forEach(([name, read], index, names) => {
    FIELDS.set(name, { target, rivals: names.slice(0, index).map(([rival]) => rival), read });
  });
}

define('max_attempts', readInteger(0, MAX_ATTEMPTS));
define('backoff_strategy', readStrategy, { backoff_type: readStrategy, strategy: readStrategy, backoff: readStrategy });
define('initial_interval', readDuration, { initial_interval_ms: readMs });
define('backoff_coefficient', readNumber(0, MAX_COEFFICIENT));
define('max_interval', nullable(readDuration), { max_interval_ms: nullable(readMs) });
define('offset', readDuration, { offset_ms: readMs });
define('first_index', readFirstIndex);
define('table', readEntries(1, 1000, readDuration));
define('jitter', readJitter);
define('non_retryable_errors', readEntries(0, 100, readErrorName));
define('on_exhaustion', readWord(['discard', 'dead_letter']));
define('on_crash', readWord(['retry', 'dead_letter']));

/** Reads one layer. @param lenient leave out wrong fields @throws {ApiError} 422 naming the first below `path` */
export function readLayer(input: RetryInput, path: string, lenient = false): RetryLayer {
  const written: RetryLayer = {};
  let preset: RetryLayer | undefined;
  const read = (name: string, at: string): void => {
    const value = input[name];
    if (name === 'preset') {
      if (value !== null && value !== undefined) preset = inPolicy(readPreset)(value, at);
      return;
    }
    const field = FIELDS.get(name);
    if (!field) throw invalidPolicy(at, notKnown(name, [...FIELDS.keys(), 'preset']));
    if (!isGiven(field, value)) return;
    const rival = field.rivals.find((other) => Object.hasOwn(input, other) && isGiven(field, input[other]));
    if (rival) throw invalidPolicy(at, `repeats ${rival}: use one of the two`);
    Object.assign(written, { [field.target]: inPolicy(field.read)(value, at) });
  };
  for (const name of Object.keys(input)) {
    try {
      read(name, `${path}.${name}`);
    } catch (error) {
      if (!lenient || !(error instanceof ApiError)) throw error;
    }
  }
  return preset ? { ...preset, ...written } : written;
}

const isGiven = ({ read }: Field, value: unknown): boolean =>
  value !== undefined && (value !== null || read.nullable === true);
