/**
 * Reads one layer as a user wrote it: aliases, `_ms` twins, presets and durations become the fields of a
 * {@link RetryLayer}. Defaults are not filled in here; a field not given stays absent so that it can be inherited.
 *
 * | field | other names | value |
 * |---|---|---|
 * | `preset` | | `ojs` `zzz` `chasqui` `zizq` `sidekiq`; the other fields of the layer override it |
 * | `max_attempts` | | integer, 0 … 2147483647 |
 * | `backoff_strategy` | `backoff_type`, `strategy`, … | `exponential` `linear` `constant` `polynomial` `table` |
 * | | | also `backoff`; `none` and `fixed` mean `constant`, `custom` means `table` |
 * | `initial_interval`, `max_interval`, `offset` | with `_ms` | duration; `max_interval` null: no cap |
 * | `backoff_coefficient` | | 0 … 1000; below 1 only with `polynomial`, checked after merging |
 * | `first_index` | | 0, 1 |
 * | `table` | | 1 … 1000 durations |
 * | `jitter` | | see `jitter.ts` |
 * | `non_retryable_errors` | | up to 100 strings of 1 … 255 characters |
 * | `on_exhaustion`, `on_crash` | | `discard` / `retry`, or `dead_letter` |
 */
import { notKnown } from '../near-miss';
import type { RetryInput } from '../record';
import {
  nullable,
  type Reader,
  type Report,
  readArray,
  readDuration,
  reader,
  readInteger,
  readMs,
  readNumber,
  readText,
  readWord,
  words,
} from './fields';
import { readJitter } from './jitter';
import type { BackoffStrategy, RetryLayer } from './policy';
import { PRESETS } from './presets';

/** The largest number of runs. */
export const MAX_ATTEMPTS = 2_147_483_647;
/** The largest coefficient. */
export const MAX_COEFFICIENT = 1000;

const STRATEGY_WORDS: ReadonlyMap<string, BackoffStrategy> = new Map<string, BackoffStrategy>([
  ['exponential', 'exponential'],
  ['linear', 'linear'],
  ['constant', 'constant'],
  ['none', 'constant'],
  ['fixed', 'constant'],
  ['polynomial', 'polynomial'],
  ['table', 'table'],
  ['custom', 'table'],
]);

const readPreset = readWord(words('ojs', 'zzz', 'chasqui', 'zizq', 'sidekiq'));
const readStrategy = readWord(STRATEGY_WORDS);
const readFirstIndex = reader<0 | 1>((value) => ([0, 1] as const).find((index) => index === value), '0 or 1');

interface Field {
  /** Names of the same field that take precedence over this one. */
  rivals: readonly string[];
  /** Is null a value of its own instead of "not given"? */
  takesNull: boolean;
  read(layer: RetryLayer, value: unknown, path: string, report: Report): void;
}

const FIELDS = new Map<string, Field>();

/** @param aliases other names of the field; each gives way to those before it */
function define<K extends keyof RetryLayer>(
  target: K,
  reader: Reader<Exclude<RetryLayer[K], undefined>>,
  aliases: Readonly<Record<string, typeof reader>> = {},
  takesNull = false,
): void {
  Object.entries({ [target]: reader, ...aliases }).forEach(([name, read], index, names) => {
    FIELDS.set(name, {
      rivals: names.slice(0, index).map(([rival]) => rival),
      takesNull,
      read(layer, value, path, report) {
        const parsed = read(value, path, report);
        if (parsed !== undefined) layer[target] = parsed;
      },
    });
  });
}

define('max_attempts', readInteger(0, MAX_ATTEMPTS));
define('backoff_strategy', readStrategy, { backoff_type: readStrategy, strategy: readStrategy, backoff: readStrategy });
define('initial_interval', readDuration, { initial_interval_ms: readMs });
define('backoff_coefficient', readNumber(0, MAX_COEFFICIENT));
define('max_interval', nullable(readDuration), { max_interval_ms: nullable(readMs) }, true);
define('offset', readDuration, { offset_ms: readMs });
define('first_index', readFirstIndex);
define('table', readArray(readDuration, 1, 1000));
define('jitter', readJitter);
define('non_retryable_errors', readArray(readText(1, 255), 0, 100));
define('on_exhaustion', readWord(words('discard', 'dead_letter')));
define('on_crash', readWord(words('retry', 'dead_letter')));

/**
 * Reads one layer. Mistakes go to `report` under the name that was written, below `path`; a field with a mistake is
 * left out when `report` returns.
 */
export function readLayer(input: RetryInput, path: string, report: Report): RetryLayer {
  const written: RetryLayer = {};
  let preset: RetryLayer | undefined;
  for (const name of Object.keys(input)) {
    const at = `${path}.${name}`;
    const value = input[name];
    if (name === 'preset') {
      const known = value === null || value === undefined ? undefined : readPreset(value, at, report);
      if (known) preset = PRESETS[known];
      continue;
    }
    const field = FIELDS.get(name);
    if (!field) {
      report(at, notKnown(name, [...FIELDS.keys(), 'preset']));
      continue;
    }
    if (!isGiven(field, value)) continue;
    const rival = field.rivals.find((other) => Object.hasOwn(input, other) && isGiven(field, input[other]));
    if (rival) report(at, `repeats ${rival}: use one of the two`);
    else field.read(written, value, at, report);
  }
  return preset ? { ...preset, ...written } : written;
}

function isGiven(field: Field, value: unknown): boolean {
  return value !== undefined && (value !== null || field.takesNull);
}
