/**
 * What a job says about its limits (`rate_limit`): the key it counts under, what that key allows, and what becomes of the
 * job when its turn comes and the limit is reached.
 *
 * | member | value |
 * |---|---|
 * | `key` | whose starts count together, within one queue; without it the queue's name |
 * | `concurrency` | attempts that may run at once, 1 … 10000 |
 * | `max_per_second` | starts in any second: the same as a `rate` with the period of a second |
 * | `rate`, `period` | starts in any period of this length (sliding); also `rate: {limit, period}` |
 * | `throttle` | `{limit, period}`: the same number, evenly spread |
 * | `on_limit` | `wait` (default), `reschedule` or `drop` |
 */
import { MAX_DURATION_MS } from '../duration';
import {
  defined,
  optional,
  type Reader,
  readDuration,
  readInteger,
  readObject,
  readText,
  readWord,
} from '../envelope/fields';
import { invalidRequest } from '../errors';

/** This many starts in a period, ms. */
export interface Quota {
  limit: number;
  period_ms: number;
}

/** The limits of a key. Absent members are not limited. */
export interface Limits {
  /** Attempts that may run at once. */
  concurrency?: number;
  /** Starts in any period of this length. */
  rate?: Quota;
  /** Starts are at least `period_ms / limit` apart. */
  throttle?: Quota;
}

/** What happens to a job whose turn comes while its limit is reached. */
export const ON_LIMIT = ['wait', 'reschedule', 'drop'] as const;
export type OnLimit = (typeof ON_LIMIT)[number];

/** A job's limits, read. */
export interface LimitPolicy {
  key: string;
  /** Absent: the present limits of the key. */
  limits?: Limits;
  on_limit: OnLimit;
}

/** Limits that replace a key's own until they are removed. Here 0 means "stop". */
export interface LimitOverride {
  concurrency?: number;
  limit?: number;
  period_ms?: number;
  /** For a limit without a period: the period where a queue's key has none of its own. */
  usual_period_ms?: number;
  /** Epoch ms; absent: until it is removed. */
  expires_at?: number;
}

const KEY = /^[a-zA-Z0-9][a-zA-Z0-9._:-]*$/;
const MAX_KEY_LENGTH = 255;
const MAX_CONCURRENCY = 10_000;
const MAX_STARTS = 1_000_000;

const MEMBERS = ['key', 'concurrency', 'max_per_second', 'rate', 'period', 'throttle', 'on_limit'];

const PERIOD_WORDS: Readonly<Record<string, number>> = {
  second: 1_000,
  minute: 60_000,
  hour: 3_600_000,
  day: 86_400_000,
};

/** What a key must look like, for messages. */
export const KEY_RULE =
  'must be letters, digits, ".", "_", ":" and "-", starting with a letter or digit, at most 255 characters';

/** Is this a key that jobs may count under? */
export function isLimitKey(text: string): boolean {
  return text.length <= MAX_KEY_LENGTH && KEY.test(text);
}

const readKey = readText(isLimitKey, KEY_RULE);

const readStarts = readInteger(1, MAX_STARTS);

/** The length of a period: a positive duration, or one of the words second, minute, hour, day; returns ms. */
export const readPeriod: Reader<number> = (value, field) => {
  if (typeof value === 'string' && Object.hasOwn(PERIOD_WORDS, value)) return PERIOD_WORDS[value] as number;
  const ms = readDuration(value, field);
  if (ms > 0) return ms;
  throw invalidRequest(field, `${field} must be longer than nothing.`);
};

/** `{limit, period}`, both required. */
const readQuota: Reader<Quota> = (value, field) => {
  const quota = readObject(value, field);
  refuseUnknown(quota, ['limit', 'period'], field);
  return {
    limit: readRequired(quota, 'limit', readStarts, field),
    period_ms: readRequired(quota, 'period', readPeriod, field),
  };
};

function readRequired<T>(members: Record<string, unknown>, name: string, reader: Reader<T>, field: string): T {
  const read = optional(members, name, reader, `${field}.`);
  if (read === undefined) throw invalidRequest(`${field}.${name}`, `${field}.${name} is required.`);
  return read;
}

function refuseUnknown(members: Record<string, unknown>, known: readonly string[], field: string): void {
  const name = Object.keys(members).find((member) => !known.includes(member));
  if (name === undefined) return;
  const path = field === '' ? name : `${field}.${name}`;
  throw invalidRequest(path, `${path} is not part of it; there are ${known.join(', ')}.`);
}

/**
 * Reads a job's limits.
 * @param field their path as the client wrote it
 * @param queue name of the job's queue, the key of jobs that name none
 * @throws {ApiError} 400 naming the member that is malformed or contradicts another one
 */
export function readLimitPolicy(value: unknown, field: string, queue: string): LimitPolicy {
  const input = readObject(value, field);
  refuseUnknown(input, MEMBERS, field);
  const given = (name: string) => (input[name] ?? null) !== null;
  const read = <T>(name: string, reader: Reader<T>) => optional(input, name, reader, `${field}.`);

  const key = read('key', readKey);
  const concurrency = read('concurrency', readInteger(1, MAX_CONCURRENCY));
  const rate = readRate(input, field, given, read);
  const throttle = read('throttle', readQuota);
  const limits: Limits = defined({ concurrency, rate, throttle });
  const limited = Object.keys(limits).length > 0;
  if (!limited && key === undefined) {
    throw invalidRequest(field, `${field} limits nothing: it needs concurrency, max_per_second, rate or throttle.`);
  }
  const onLimit = read('on_limit', readWord(ON_LIMIT));
  return { key: key ?? queue, ...(limited && { limits }), on_limit: onLimit ?? 'wait' };
}

/** The three spellings of a rate, of which one at most may be used. */
function readRate(
  input: Record<string, unknown>,
  field: string,
  given: (name: string) => boolean,
  read: <T>(name: string, reader: Reader<T>) => T | undefined,
): Quota | undefined {
  if (given('max_per_second') && given('rate')) {
    const path = `${field}.max_per_second`;
    throw invalidRequest(path, `${path} cannot stand beside ${field}.rate: both say how many jobs may start.`);
  }
  const isNumber = typeof input.rate === 'number';
  if (given('period') && !isNumber) {
    const path = `${field}.period`;
    const why = given('rate') ? 'the period stands in it' : 'without a number in it the period means nothing';
    throw invalidRequest(path, `${path} belongs to ${field}.rate, and ${why}.`);
  }
  const perSecond = read('max_per_second', readStarts);
  if (perSecond !== undefined) return { limit: perSecond, period_ms: 1_000 };
  return read('rate', (value, path) => {
    if (!isNumber) return readQuota(value, path);
    return { limit: readStarts(value, path), period_ms: readRequired(input, 'period', readPeriod, field) };
  });
}

/** `{concurrency?, limit?, period?}`: the limits of a queue as a whole. At least one is required. */
export const readQueueLimits: Reader<Pick<Limits, 'concurrency' | 'rate'>> = (value, field) => {
  const { concurrency, ...rate } = readObject(value, field);
  const isLimited = (concurrency ?? null) !== null;
  return {
    ...(isLimited && { concurrency: readInteger(1, MAX_CONCURRENCY)(concurrency, `${field}.concurrency`) }),
    ...((!isLimited || Object.keys(rate).length > 0) && { rate: readQuota(rate, field) }),
  };
};

/**
 * Reads an operator's override of a key's limits.
 * @throws {ApiError} 400 naming the member
 */
export function readLimitOverride(input: Record<string, unknown>, readTime: Reader<number>): LimitOverride {
  refuseUnknown(input, ['concurrency', 'limit', 'period', 'expires_at'], '');
  const override: LimitOverride = defined({
    concurrency: optional(input, 'concurrency', readInteger(0, MAX_CONCURRENCY)),
    limit: optional(input, 'limit', readInteger(0, MAX_STARTS)),
    period_ms: optional(input, 'period', readPeriod),
    expires_at: optional(input, 'expires_at', readTime),
  });
  if (override.concurrency === undefined && override.limit === undefined) {
    throw invalidRequest('concurrency', 'concurrency or limit is required: what is to hold instead?');
  }
  if (override.limit === undefined && override.period_ms !== undefined) {
    throw invalidRequest('period', 'period belongs to limit, which is missing.');
  }
  return override;
}

/**
 * The limits in force under an override: it replaces the members that it names and leaves the rest. A limit without a
 * period keeps the period of the limit that it replaces.
 */
export function overridden(limits: Limits, override: LimitOverride | undefined): Limits {
  if (!override) return limits;
  const merged: Limits = { ...limits };
  if (override.concurrency !== undefined) merged.concurrency = override.concurrency;
  if (override.limit !== undefined) {
    const kind = limits.throttle && !limits.rate ? 'throttle' : 'rate';
    merged[kind] = {
      limit: override.limit,
      period_ms: override.period_ms ?? limits[kind]?.period_ms ?? override.usual_period_ms ?? MAX_DURATION_MS,
    };
  }
  return merged;
}
