/**
 * Queue settings between the wire and the queue object. On the wire `visibility_timeout` and `default_timeout` count
 * seconds when they are numbers; everywhere else a number is milliseconds.
 */
import type * as contract from '../../contract/queues';
import { formatDuration } from '../../job/duration';
import {
  defined,
  given,
  type Reader,
  reader,
  readInteger,
  readList,
  readNumber,
  readObject,
  readPositive,
  readWord,
} from '../../job/envelope/fields';
import { nullable, type Refuse, readMembers } from '../../job/envelope/members';
import { isJobType } from '../../job/envelope/names';
import { invalidRequest, unsupported } from '../../job/errors';
import { type GroupLimits, type GroupSettings, readGroupSettings } from '../../job/group';
import { readQueueLimits } from '../../job/limits/policy';
import { notKnown } from '../../job/near-miss';
import { ANY_NUMBER, readKept, renderCount, renderKept } from '../../job/retention';
import { checkRetryLayer } from '../../job/retry/validate';
import { SCHEMA_MODES } from '../../schemas/misfit';
import { type QueueConfig, type SettingsChange, STORAGE_BOUNDS } from '../../settings';

const readStrategy: Reader<'reject' | 'drop_oldest'> = (value, field) => {
  if (value === 'reject' || value === 'drop_oldest') return value;
  if (value !== 'block') throw invalidRequest(field, `${field} must be reject or drop_oldest.`);
  throw unsupported(`${field} "block" is not supported: a request cannot wait for room. Use reject and try again.`, {
    field,
  });
};

/** A setting: its name in {@link QueueConfig}, the reader of its wire form, and what writes that. */
interface Setting {
  key: keyof QueueConfig;
  read: Reader<unknown>;
  write(value: unknown): unknown;
}

const setting = <Key extends keyof QueueConfig>(
  key: Key,
  read: Reader<QueueConfig[Key] | object>,
  write: (value: NonNullable<QueueConfig[Key]>) => unknown = (value) => value,
): Setting => ({ key, read, write: write as Setting['write'] });

const depth = setting('max_depth', readInteger(1, 10_000_000));
const overflow = setting('overflow', readStrategy);

/** By their wire names, in `backpressure`. */
const NESTED: Record<string, Setting> = {
  max_depth: depth,
  strategy: overflow,
  warning_threshold: setting('warning_threshold', readNumber(0, 1)),
};

/**
 * Reads `backpressure` into settings; null returns all of them to their defaults.
 * @param change the settings of the top level
 * @throws {ApiError} 400 for a malformed member and where it contradicts the top level, 422 for one that is not offered
 */
function readBackpressure(value: unknown, change: Readonly<Record<string, unknown>>): Record<string, unknown> {
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

/** A number of seconds, or a duration with its unit; gives milliseconds. */
const seconds: Reader<number> = (value, field) => {
  if (typeof value !== 'number') return readPositive(value, field);
  if (Number.isInteger(value)) return readPositive(value * 1000, field);
  throw invalidRequest(field, `${field} must be a whole number of seconds, or a duration such as "PT30S".`);
};

const notOffered: Refuse = (field, known) =>
  unsupported(`The queue setting ${field} ${notKnown(field, known)}`, { field });

const readEnd = nullable(readKept);
const readRetentions = readMembers({ completed: readEnd, discarded: readEnd, cancelled: readEnd }, notOffered);

/** Retention of ended jobs, by state; a duration alone holds for all of them. */
const readRetention: Reader<ReturnType<typeof readRetentions>> = (value, field) => {
  if (typeof value !== 'string') return readRetentions(value, field);
  const kept = readKept(value, field);
  return { completed: kept, discarded: kept, cancelled: kept };
};

const MAX_COUNT = 10_000_000;

/** Null means any number, so that a word returns it to the default. */
const readCount: ReturnType<typeof nullable<number>> = Object.assign(
  reader((value) => {
    if (value === null) return ANY_NUMBER;
    if (value === 'default') return null;
    return Number.isInteger(value) && Number(value) >= 0 && Number(value) <= MAX_COUNT ? Number(value) : undefined;
  }, `must be an integer from 0 to ${MAX_COUNT}, null for no bound, or "default"`),
  { nullable: true as const },
);

const readDeadLetter = readMembers(
  { retention: readMembers({ max_age: readEnd, max_count: readCount }, notOffered) },
  notOffered,
);

/** A job type, or its beginning followed by `*`. */
const readTypePattern: Reader<string> = (value, field) => {
  const type = typeof value === 'string' ? value.replace(/\*$/, 'x') : '';
  if (isJobType(type)) return value as string;
  throw invalidRequest(field, `${field} must be a job type, or a prefix of one followed by "*".`);
};

const inSeconds = (ms: number) => ms / 1000;

/** By their wire names at the top level. */
const SETTINGS: Record<string, Setting> = {
  concurrency: setting('concurrency', readInteger(1, 10_000)),
  visibility_timeout: setting('visibility_timeout_ms', seconds, inSeconds),
  default_timeout: setting('default_timeout_ms', seconds, inSeconds),
  max_size: depth,
  max_size_bytes: setting('max_bytes', readInteger(1, 2 ** 40)),
  overflow_policy: overflow,
  max_storage_bytes: setting('max_storage_bytes', readInteger(STORAGE_BOUNDS.min, STORAGE_BOUNDS.max)),
  rate_limit: setting('rate_limit', readQueueLimits, renderQueueLimits),
  groups: setting('groups', readGroupSettings, renderGroups),
  default_retry: setting('default_retry', (value, field) => checkRetryLayer(value, field)),
  retention: setting('retention', readRetention, (times) =>
    Object.fromEntries(Object.entries(times).map(([state, ms]) => [state, renderKept(ms)])),
  ),
  allowed_job_types: setting('allowed_job_types', readList(100, readTypePattern)),
  schemas: setting('schemas', readWord(SCHEMA_MODES)),
  dead_letter: setting(
    'dead_letter',
    (value, field) => readDeadLetter(value, field).retention ?? {},
    ({ max_age, max_count }) => ({
      retention: defined({ max_age: given(max_age, renderKept), max_count: given(max_count, renderCount) }),
    }),
  ),
};

/** Reads a partial configuration; null returns a setting to its default. @throws {ApiError} 400; 422: not offered */
export function parseQueueConfig(input: Record<string, unknown>): SettingsChange {
  const { backpressure, ...others } = input;
  const change: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(others)) {
    const setting = Object.hasOwn(SETTINGS, name) ? SETTINGS[name] : undefined;
    if (setting === undefined) throw notOffered(name, [...Object.keys(SETTINGS), 'backpressure']);
    change[setting.key] = value === null ? null : setting.read(value, name);
  }
  if (backpressure !== undefined) Object.assign(change, readBackpressure(backpressure, change));
  return change as SettingsChange;
}

/** The wire form of a configuration; unset members are left out. */
export function renderQueueConfig(config: QueueConfig): contract.QueueConfig {
  const backpressure = written(NESTED, config);
  return { ...written(SETTINGS, config), ...(Object.keys(backpressure).length > 0 && { backpressure }) };
}

function written(settings: Readonly<Record<string, Setting>>, config: QueueConfig): Record<string, unknown> {
  const all = Object.entries(settings).map(([name, { key, write }]) => [name, given(config[key], write)]);
  return defined(Object.fromEntries(all));
}

function renderGroups({ limits, weights, order, overflow, ...all }: GroupSettings): contract.QueueGroups {
  return {
    ...{ order, ...renderGroupLimits(all) },
    ...(overflow && { overflow_policy: overflow }),
    ...(limits && {
      limits: Object.fromEntries(Object.entries(limits).map(([name, own]) => [name, renderGroupLimits(own)])),
    }),
    ...(weights && { weights }),
  };
}

/** The wire form of what limits a group. */
export const renderGroupLimits = ({ concurrency, rate, max_waiting }: GroupLimits): contract.GroupLimits =>
  defined({
    concurrency,
    rate: given(rate, ({ limit, period_ms }) => ({ limit, period: formatDuration(period_ms) })),
    max_waiting,
  });

function renderQueueLimits({ concurrency, rate }: NonNullable<QueueConfig['rate_limit']>): contract.QueueLimits {
  return { ...defined({ concurrency }), ...(rate && { limit: rate.limit, period: formatDuration(rate.period_ms) }) };
}
