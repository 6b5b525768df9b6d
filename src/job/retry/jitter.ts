/** Reads the `jitter` field: `true`, `false`, or an object whose members depend on its `kind`. */
import { MAX_DURATION_MS, parseDuration } from '../duration';
import { isObject, readBoolean, reader, readNumber, readWord } from '../envelope/fields';
import { type Members, readMembers } from '../envelope/members';
import { invalidPolicy, invalidRequest } from '../errors';
import { notKnown } from '../near-miss';
import { DEFAULT_JITTER, type Jitter } from './policy';

/** A duration in any accepted form → ms. */
export const readDuration = reader(
  parseDuration,
  'must be a duration of at most 36500 days, such as 1500 (ms), "12.5s" or "PT5M"',
);

/** A field ending in `_ms`: an integer and nothing else → ms. */
export const readMs = reader(
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
export function readJitter(value: unknown, path: string): Jitter | false {
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
