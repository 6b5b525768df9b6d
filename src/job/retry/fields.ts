/**
 * Readers for single values of a policy. Each returns the normalised value, or calls `report` and returns undefined.
 * The reporter decides what a mistake means: an enqueue throws, at failure time the field counts as absent.
 */

import { MAX_DURATION_MS, parseDuration } from '../duration';
import { isRawNumber } from '../envelope/exact';

/** Called with a mistake: the field's path as written, and what was expected. May throw. */
export type Report = (field: string, message: string) => void;

/** Reads one value that is present. `path` names it for the report. */
export type Reader<T> = (value: unknown, path: string, report: Report) => T | undefined;

/** A JSON object: neither null nor an array, nor a number that is kept as it was written. */
export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value) && !isRawNumber(value);
}

/** A reader of values that `parse` takes; `expected` says which they are. */
export function reader<T>(parse: (value: unknown) => T | undefined, expected: string): Reader<T> {
  return (value, path, report) => {
    const parsed = parse(value);
    if (parsed === undefined) report(path, `must be ${expected}`);
    return parsed;
  };
}

/** A duration in any accepted form → ms. */
export const readDuration: Reader<number> = reader(
  parseDuration,
  'a duration of at most 36500 days, such as 1500 (ms), "12.5s" or "PT5M"',
);

/** A field ending in `_ms`: an integer and nothing else → ms. */
export const readMs: Reader<number> = reader(
  (value) => (typeof value === 'number' ? parseDuration(value) : undefined),
  `an integer number of milliseconds from 0 to ${MAX_DURATION_MS}`,
);

/** Like `read`, but null stands for "no limit". */
export function nullable<T>(read: Reader<T>): Reader<T | null> {
  return (value, path, report) => (value === null ? null : read(value, path, report));
}

/** An integer from `min` to `max`. */
export function readInteger(min: number, max: number): Reader<number> {
  return reader(
    (value) =>
      typeof value === 'number' && Number.isInteger(value) && value >= min && value <= max ? value + 0 : undefined,
    `an integer from ${min} to ${max}`,
  );
}

/** A number from `min` to `max`, fractions allowed. */
export function readNumber(min: number, max: number): Reader<number> {
  return reader(
    (value) => (typeof value === 'number' && value >= min && value <= max ? value + 0 : undefined),
    `a number from ${min} to ${max}`,
  );
}

export const readBoolean: Reader<boolean> = reader(
  (value) => (typeof value === 'boolean' ? value : undefined),
  'true or false',
);

/** One of the words of `meanings`, translated to its value. */
export function readWord<T>(meanings: ReadonlyMap<string, T>): Reader<T> {
  return reader(
    (value) => (typeof value === 'string' ? meanings.get(value) : undefined),
    `one of ${[...meanings.keys()].join(', ')}`,
  );
}

/** Words that stand for themselves. */
export function words<T extends string>(...all: T[]): ReadonlyMap<string, T> {
  return new Map(all.map((word) => [word, word]));
}

/** An array of `min` to `max` entries; a bad entry is reported as `path[index]`. */
export function readArray<T>(read: Reader<T>, min: number, max: number): Reader<T[]> {
  return (value, path, report) => {
    if (!Array.isArray(value) || value.length < min || value.length > max) {
      report(path, `must be an array of ${min} to ${max} entries`);
      return undefined;
    }
    const entries: T[] = [];
    for (const [index, entry] of value.entries()) {
      const parsed = read(entry, `${path}[${index}]`, report);
      if (parsed === undefined) return undefined;
      entries.push(parsed);
    }
    return entries;
  };
}

/** A string of `min` to `max` characters (code points). */
export function readText(min: number, max: number): Reader<string> {
  return reader((value) => {
    if (typeof value !== 'string' || value.length > 2 * max) return undefined;
    const length = [...value].length;
    return length >= min && length <= max ? value : undefined;
  }, `a string of ${min} to ${max} characters`);
}
