/**
 * The bounds of a queue on the wire. Each has two spellings, one at the top level and one in `backpressure`:
 *
 * | top level | in `backpressure` | value |
 * |---|---|---|
 * | `max_size` | `max_depth` | jobs that have not ended, 1 … 10000000 |
 * | `max_size_bytes` | | bytes of their bodies, 1 … 2^40 |
 * | `overflow_policy` | `strategy` | `reject` (default) or `drop_oldest` |
 * | | `warning_threshold` | part of `max_depth` from which on producers are warned, 0 … 1, default 0.8 |
 */
import { defined, type Reader, readInteger, readNumber, readObject } from '../../job/envelope/fields';
import { invalidRequest, unsupported } from '../../job/errors';
import { notKnown } from '../../job/near-miss';
import type { QueueConfig } from '../../job/settings';

const readStrategy: Reader<'reject' | 'drop_oldest'> = (value, field) => {
  if (value === 'reject' || value === 'drop_oldest') return value;
  if (value !== 'block') throw invalidRequest(field, `${field} must be reject or drop_oldest.`);
  throw unsupported(`${field} "block" is not supported: a request cannot wait for room. Use reject and try again.`, {
    field,
  });
};

/** A setting: its name in {@link QueueConfig}, and the reader of its wire form. */
export interface Setting {
  key: keyof QueueConfig;
  read: Reader<unknown>;
}

const depth: Setting = { key: 'max_depth', read: readInteger(1, 10_000_000) };
const overflow: Setting = { key: 'overflow', read: readStrategy };

/** By their wire names at the top level. */
export const BOUND_SETTINGS: Record<string, Setting> = {
  max_size: depth,
  max_size_bytes: { key: 'max_bytes', read: readInteger(1, 2 ** 40) },
  overflow_policy: overflow,
};

const NESTED: Record<string, Setting> = {
  max_depth: depth,
  strategy: overflow,
  warning_threshold: { key: 'warning_threshold', read: readNumber(0, 1) },
};

/**
 * Reads `backpressure` into settings; null returns all of them to their defaults.
 * @param change the settings of the top level
 * @throws {ApiError} 400 for a malformed member and where it contradicts the top level, 422 for one that is not offered
 */
export function readBackpressure(value: unknown, change: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const given = value === null ? { max_depth: null, strategy: null, warning_threshold: null } : value;
  const settings: Record<string, unknown> = {};
  for (const [name, member] of Object.entries(readObject(given, 'backpressure'))) {
    const field = `backpressure.${name}`;
    const setting = Object.hasOwn(NESTED, name) ? NESTED[name] : undefined;
    if (!setting) throw unsupported(`The queue setting ${field} ${notKnown(name, Object.keys(NESTED))}`, { field });
    const read = member === null ? null : setting.read(member, field);
    if (change[setting.key] !== undefined && change[setting.key] !== read) {
      throw invalidRequest(field, `${field} contradicts the same setting at the top level.`);
    }
    settings[setting.key] = read;
  }
  return settings;
}

/** The wire form, in both spellings. */
export function renderBounds({ max_depth, max_bytes, overflow, warning_threshold }: QueueConfig) {
  const nested = defined({ max_depth, strategy: overflow, warning_threshold });
  return defined({
    max_size: max_depth,
    max_size_bytes: max_bytes,
    overflow_policy: overflow,
    backpressure: Object.keys(nested).length > 0 ? nested : undefined,
  });
}
