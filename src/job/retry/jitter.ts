/** Reads the `jitter` field: `true`, `false`, or an object whose members depend on its `kind`. */
import { notKnown } from '../near-miss';
import {
  isObject,
  type Reader,
  type Report,
  readBoolean,
  readDuration,
  readMs,
  readNumber,
  readWord,
  words,
} from './fields';
import { DEFAULT_JITTER, type Jitter } from './policy';

/** Members of each kind, beside `kind` and `deterministic`. */
const MEMBERS: Readonly<Record<Jitter['kind'], readonly string[]>> = {
  multiply: ['min', 'max'],
  symmetric: ['amount', 'amount_ms'],
  additive: ['amount', 'amount_ms'],
  per_attempt: ['amount', 'amount_ms', 'step', 'step_ms'],
  fraction: ['of'],
};

const MAX_FACTOR = 10;
const DEFAULT_MULTIPLY = { min: 0.5, max: 1.5 };
const DEFAULT_SHARE = 0.25;

const readKind = readWord(words('multiply', 'symmetric', 'additive', 'per_attempt', 'fraction'));
const readFactor = readNumber(0, MAX_FACTOR);
const readShare = readNumber(0, 1);

/**
 * Reads `jitter`. Members of another kind are unknown members. One bad member makes the whole unusable: a jitter is
 * replaced as a whole and never completed from below.
 */
export const readJitter: Reader<Jitter | false> = (value, path, report) => {
  if (typeof value === 'boolean') return value ? DEFAULT_JITTER : false;
  if (!isObject(value)) {
    report(path, 'must be true, false or an object with a kind');
    return undefined;
  }
  let usable = true;
  const jitter = readObject(value, path, (field, message) => {
    usable = false;
    report(field, message);
  });
  return usable ? jitter : undefined;
};

function readObject(source: Record<string, unknown>, path: string, report: Report): Jitter | undefined {
  const kind = readKind(source.kind, `${path}.kind`, report);
  if (!kind) return undefined;
  for (const name of Object.keys(source)) {
    if (name === 'kind' || name === 'deterministic' || MEMBERS[kind].includes(name)) continue;
    report(`${path}.${name}`, notKnown(name, MEMBERS[kind]));
  }
  const given = <T>(name: string, read: Reader<T>): T | undefined =>
    source[name] === undefined || source[name] === null ? undefined : read(source[name], `${path}.${name}`, report);
  const duration = (name: string): number | undefined => {
    const plain = given(name, readDuration);
    const twin = given(`${name}_ms`, readMs);
    if (plain !== undefined && twin !== undefined) report(`${path}.${name}_ms`, `repeats ${name}: use one`);
    return plain ?? twin;
  };
  const amount = (): number => {
    const read = duration('amount');
    if (read === undefined) report(`${path}.amount`, `is required by jitter ${kind}`);
    return read ?? 0;
  };

  const deterministic = given('deterministic', readBoolean) ?? false;
  switch (kind) {
    case 'multiply': {
      const low = given('min', readFactor);
      const high = given('max', readFactor);
      const min = low ?? DEFAULT_MULTIPLY.min;
      const max = high ?? DEFAULT_MULTIPLY.max;
      if (min > max)
        report(`${path}.${low === undefined ? 'max' : 'min'}`, `min (${min}) must not exceed max (${max})`);
      return { kind, min, max, deterministic };
    }
    case 'symmetric':
    case 'additive':
      return { kind, amount: amount(), deterministic };
    case 'per_attempt':
      return { kind, amount: amount(), step: duration('step') ?? 0, deterministic };
    case 'fraction':
      return { kind, of: given('of', readShare) ?? DEFAULT_SHARE, deterministic };
  }
}
