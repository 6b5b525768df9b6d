/** A job's `rate_limit` (`docs/guides/limits.md`): its key, its limits, and what happens when one is reached. */
import { MAX_DURATION_MS } from '../duration';
import {
  defined,
  describe,
  described,
  type Reader,
  readDuration,
  readInteger,
  readObject,
  readPositive,
  readText,
  readWord,
} from '../envelope/fields';
import { notMember, type Refuse, readMembers, required } from '../envelope/members';
import { invalidRequest } from '../errors';

export interface Quota {
  limit: number;
  period_ms: number;
}

/** The limits of a key. Absent members are not limited. */
export interface Limits {
  concurrency?: number;
  /** Starts in any period of this length. */
  rate?: Quota;
  /** Starts are at least `period_ms / limit` apart. */
  throttle?: Quota;
}

/** What happens to a job whose turn comes while its limit is reached. */
export const ON_LIMIT = ['wait', 'reschedule', 'drop'] as const;
export type OnLimit = (typeof ON_LIMIT)[number];

/** Where the jobs of a key count together: in one queue, or in all queues. A key is another one in each scope. */
export const LIMIT_SCOPES = ['queue', 'deployment'] as const;
export type LimitScope = (typeof LIMIT_SCOPES)[number];

export interface LimitPolicy {
  /** The key with its scope, as a queue stores it: {@link scopedKey}. */
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
export const MAX_STARTS = 1_000_000;

const PERIOD_WORDS: Readonly<Record<string, number>> = {
  second: 1_000,
  minute: 60_000,
  hour: 3_600_000,
  day: 86_400_000,
};

export const KEY_RULE =
  'must be letters, digits, ".", "_", ":" and "-", starting with a letter or digit, at most 255 characters';

export function isLimitKey(text: string): boolean {
  return text.length <= MAX_KEY_LENGTH && KEY.test(text);
}

/** Before a key that counts in all queues, where a queue stores it. No key has a space. */
const DEPLOYMENT = 'deployment ';

/** What a queue calls a key of this scope. */
export const scopedKey = (key: string, scope: LimitScope): string => (scope === 'deployment' ? DEPLOYMENT + key : key);

export const scopeOf = (scoped: string): LimitScope => (scoped.startsWith(DEPLOYMENT) ? 'deployment' : 'queue');

/** The key as its users call it. */
export const plainKey = (scoped: string): string =>
  scoped.startsWith(DEPLOYMENT) ? scoped.slice(DEPLOYMENT.length) : scoped;

const readKey = readText(isLimitKey, KEY_RULE, { pattern: KEY.source, maxLength: MAX_KEY_LENGTH });

const readStarts = readInteger(1, MAX_STARTS);

/** The length of a period: a positive duration, or one of the words second, minute, hour, day; returns ms. */
export const readPeriod: Reader<number> = described(
  () => ({ anyOf: [describe(readDuration), { enum: Object.keys(PERIOD_WORDS) }] }),
  (value, field) => {
    if (typeof value === 'string' && Object.hasOwn(PERIOD_WORDS, value)) return PERIOD_WORDS[value] as number;
    return readPositive(value, field);
  },
);

/** A reader of `{limit, period}`, both required. @param refuse the error for another member */
export function quotaReader(readLimit: Reader<number>, refuse: Refuse): Reader<Quota> {
  const read = readMembers({ limit: required(readLimit), period: required(readPeriod) }, refuse);
  return described(
    () => describe(read),
    (value, field) => {
      const { limit, period } = read(value, field);
      return { limit, period_ms: period };
    },
  );
}

const readQuota = quotaReader(readStarts, notMember);

/** A number, whose period is next to it, or both in one. */
const readRate: Reader<number | Quota> = described(
  () => ({ anyOf: [describe(readStarts), describe(readQuota)] }),
  (value, field) => (typeof value === 'number' ? readStarts : readQuota)(value, field),
);

const readPolicy = readMembers(
  {
    key: readKey,
    scope: readWord(LIMIT_SCOPES),
    concurrency: readInteger(1, MAX_CONCURRENCY),
    max_per_second: readStarts,
    rate: readRate,
    period: readPeriod,
    throttle: readQuota,
    on_limit: readWord(ON_LIMIT),
  },
  notMember,
);

export const LIMIT_POLICY_SCHEMA = () => describe(readPolicy);

/** Reads a job's limits. @param queue the default key @throws {ApiError} 400 naming the member at fault */
export function readLimitPolicy(value: unknown, field: string, queue: string): LimitPolicy {
  const { key, scope = 'queue', concurrency, throttle, on_limit = 'wait', ...rates } = readPolicy(value, field);
  const limits: Limits = defined({ concurrency, rate: rateOf(rates, field), throttle });
  const limited = Object.keys(limits).length > 0;
  if (!limited && key === undefined) {
    throw invalidRequest(field, `${field} has no limit: it needs concurrency, max_per_second, rate or throttle.`);
  }
  if (key === undefined && scope === 'deployment') {
    throw invalidRequest(`${field}.key`, `${field}.key is required: a limit of the deployment has a name of its own.`);
  }
  return { key: scopedKey(key ?? queue, scope), ...(limited && { limits }), on_limit };
}

/** The three spellings of a rate, of which one at most may be used. */
function rateOf(
  { max_per_second, rate, period }: Pick<ReturnType<typeof readPolicy>, 'max_per_second' | 'rate' | 'period'>,
  field: string,
): Quota | undefined {
  if (max_per_second !== undefined && rate !== undefined) {
    const path = `${field}.max_per_second`;
    throw invalidRequest(path, `${path} cannot be combined with ${field}.rate: both limit how many jobs may start.`);
  }
  if (period !== undefined && typeof rate !== 'number') {
    const path = `${field}.period`;
    const why = rate ? 'the period is part of it' : 'without a number in it the period has no meaning';
    throw invalidRequest(path, `${path} belongs to ${field}.rate, and ${why}.`);
  }
  if (max_per_second !== undefined) return { limit: max_per_second, period_ms: 1_000 };
  if (typeof rate !== 'number') return rate;
  if (period === undefined) throw invalidRequest(`${field}.period`, `${field}.period is required.`);
  return { limit: rate, period_ms: period };
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

/** Reads what replaces a key's limits. @param readTime reads the moment until which it holds */
export const limitOverride = (readTime: Reader<number>) =>
  readMembers(
    {
      concurrency: readInteger(0, MAX_CONCURRENCY),
      limit: readInteger(0, MAX_STARTS),
      period: readPeriod,
      expires_at: readTime,
    },
    notMember,
  );

/** Reads an operator's override of a key's limits. @throws {ApiError} 400 naming the member */
export function readLimitOverride(input: Record<string, unknown>, readTime: Reader<number>): LimitOverride {
  const { period, ...members } = limitOverride(readTime)(input, '');
  const override: LimitOverride = { ...members, ...defined({ period_ms: period }) };
  if (override.concurrency === undefined && override.limit === undefined) {
    throw invalidRequest('concurrency', 'concurrency or limit is required.');
  }
  if (override.limit === undefined && override.period_ms !== undefined) {
    throw invalidRequest('period', 'period belongs to limit, which is missing.');
  }
  return override;
}

/** The limits under an override: it replaces members; a limit without a period keeps the replaced limit's period. */
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
