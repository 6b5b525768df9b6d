/**
 * Reads one layer as a user wrote it (`docs/guides/retries.md`): aliases, `_ms` twins, presets and durations become the
 * fields of a {@link RetryLayer}. A field not given stays absent, so that it can be inherited.
 */
import { inPolicy, type Reader, reader, readInteger, readMeaning, readNumber, readWord } from '../envelope/fields';
import { nullable } from '../envelope/members';
import { ApiError, invalidPolicy } from '../errors';
import { notKnown } from '../near-miss';
import type { RetryInput } from '../record';
import { readDuration, readJitter, readMs } from './jitter';
import type { BackoffStrategy, RetryLayer } from './policy';
import { PRESETS } from './presets';

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

function isGiven({ read }: Field, value: unknown): boolean {
  return value !== undefined && (value !== null || read.nullable === true);
}
