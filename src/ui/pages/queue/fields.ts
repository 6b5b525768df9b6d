/** The settings of a queue as fields of a form: where each stands in the configuration, and how its text is read. */
import type { QueueConfig } from '../../../contract/queues';
import { parseExact, stringifyExact } from '../../core/exact';
import { duration, number, span } from '../../core/format';

export interface SettingField {
  /** Where it stands: `retention.completed`. */
  path: string;
  label: string;
  /** `number` also for parts of one; `count`: one without a bound, too; `seconds`: also a duration with its unit. */
  kind: 'number' | 'count' | 'duration' | 'seconds' | 'list' | 'json' | 'choice';
  choices?: readonly string[];
  /** Unit, range, example. */
  hint: string;
  wide?: boolean;
}

export interface SettingGroup {
  title: string;
  fields: readonly SettingField[];
}

const ORDER = 'fair: in turns. strict: one job of a group at a time, in order';
const TYPES = 'Separated by commas; email.* matches all types with this prefix';
const SCHEMAS = 'What happens to arguments that do not match';
const DAYS = 'For example 12h, 30d or forever; 0 keeps nothing';
const UNLIMITED = 'unlimited';

type Kind = SettingField['kind'];
type More = Pick<SettingField, 'wide' | 'choices'>;

/** A part of the form. @param prefix of the paths of its fields */
function group(title: string, prefix: string, ...fields: [name: string, label: string, Kind, hint: string, More?][]) {
  return {
    title,
    fields: fields.map(([name, label, kind, hint, more]): SettingField => {
      return { path: prefix + name, label, kind, hint, ...more };
    }),
  };
}

const WIDE: More = { wide: true };
const OVERFLOW: More = { choices: ['reject', 'drop_oldest'] };

export const GROUPS: readonly SettingGroup[] = [
  group(
    'Concurrency and time',
    '',
    ['concurrency', 'Pushed jobs at once', 'number', '1 to 10,000'],
    ['default_timeout', 'Execution limit', 'seconds', 'Seconds, or a duration such as 5m'],
    ['visibility_timeout', 'Lease', 'seconds', 'Seconds, or a duration such as 30m'],
  ),
  group(
    'Rate limit of the queue',
    'rate_limit.',
    ['limit', 'Starts', 'number', 'In each period'],
    ['period', 'Period', 'duration', 'second, minute, hour, day, or a duration such as 10s'],
    ['concurrency', 'Running at once', 'number', 'Pushed and fetched together'],
  ),
  group(
    'Groups',
    'groups.',
    ['order', 'Order of groups', 'choice', ORDER, { choices: ['fair', 'strict'] }],
    ['concurrency', 'Running of each group', 'number', 'At once, 1 to 10,000'],
    ['rate', 'Rate of each group', 'json', 'Starts in a period, for example {"limit": 100, "period": "minute"}'],
    ['max_waiting', 'Waiting of each group', 'number', 'At most, 1 to 10,000,000'],
    ['overflow_policy', 'Beyond that', 'choice', 'Refuse new jobs of the group, or discard its oldest', OVERFLOW],
    ['limits', 'Limits of some groups', 'json', 'For example {"vip-*": {"concurrency": 50}}', WIDE],
    ['weights', 'Weights', 'json', 'Shares from 1 to 100, for example {"vip-*": 5}', WIDE],
  ),
  group('Retries', '', [
    'default_retry',
    'Retry policy',
    'json',
    'For example {"max_attempts": 5, "backoff": "exponential"}',
    WIDE,
  ]),
  group(
    'Retention',
    '',
    ['retention.completed', 'Completed jobs', 'duration', DAYS],
    ['retention.cancelled', 'Cancelled jobs', 'duration', DAYS],
    ['retention.discarded', 'Discarded jobs', 'duration', DAYS],
    ['dead_letter.retention.max_age', 'Dead letters, retention', 'duration', DAYS],
    [
      'dead_letter.retention.max_count',
      'Dead letters, maximum',
      'count',
      `The oldest are deleted, unless ${UNLIMITED}`,
    ],
  ),
  group(
    'Backpressure and storage',
    '',
    ['max_size', 'Jobs that have not ended', 'number', 'At most'],
    ['max_size_bytes', 'Bytes of their payloads', 'number', 'At most'],
    ['overflow_policy', 'When it is full', 'choice', 'What happens to a new job', OVERFLOW],
    ['backpressure.warning_threshold', 'Warn producers from', 'number', 'Fraction of the maximum, 0 to 1'],
    ['max_storage_bytes', 'Bytes stored in total', 'number', 'Including ended jobs'],
  ),
  group(
    'Job types',
    '',
    ['allowed_job_types', 'Accepted types', 'list', TYPES, WIDE],
    ['schemas', 'Registered schemas', 'choice', SCHEMAS, { choices: ['off', 'warn', 'strict'] }],
  ),
];

export const settingAt = (config: QueueConfig | undefined, path: string): unknown =>
  path.split('.').reduce<unknown>((at, name) => (at as Readonly<Record<string, unknown>> | undefined)?.[name], config);

export function textOf(value: unknown): string {
  if (value === undefined) return '';
  if (value === null) return UNLIMITED;
  if (Array.isArray(value)) return value.join(', ');
  return typeof value === 'object' ? stringifyExact(value, 0) : String(value);
}

export function wordsOf({ kind }: SettingField, value: unknown): string {
  if (kind === 'seconds' && typeof value === 'number') return duration(value * 1_000);
  if ((kind === 'number' || kind === 'count') && typeof value === 'number') return number(value);
  return kind === 'duration' ? span(textOf(value)) : textOf(value);
}

/** The value of a field's text; null: not set. Non-numbers stay text, so that the server reports what it expects. */
function read({ kind }: SettingField, text: string): unknown {
  const given = text.trim();
  if (kind === 'count' && given === UNLIMITED) return null;
  if (given === '') return kind === 'count' ? 'default' : null;
  if (kind === 'list') return given.split(/[\s,]+/).filter((part) => part !== '');
  if (kind === 'json') return parsed(given);
  const isNumber =
    kind === 'number' || kind === 'count' || kind === 'seconds' || (kind === 'duration' && given === '0');
  return isNumber && /^\d*\.?\d+$/.test(given) ? Number(given) : given;
}

function parsed(text: string): unknown {
  try {
    return parseExact(text);
  } catch {
    return text;
  }
}

/** Settings that are replaced as a whole. */
const WHOLE: ReadonlySet<string> = new Set(['rate_limit', 'groups']);

/** What a form changes in the settings that a queue has of its own; undefined: nothing. */
export function changesOf(own: QueueConfig, form: FormData): Readonly<Record<string, unknown>> | undefined {
  const change: Record<string, unknown> = {};
  for (const { fields } of GROUPS) {
    for (const field of fields) {
      const text = form.get(field.path);
      if (typeof text !== 'string' || text.trim() === textOf(settingAt(own, field.path))) continue;
      const [first = ''] = field.path.split('.');
      if (WHOLE.has(first)) change[first] = wholeOf(first, fields, form);
      else put(change, field.path.split('.'), read(field, text));
    }
  }
  return Object.keys(change).length === 0 ? undefined : change;
}

function wholeOf(name: string, fields: readonly SettingField[], form: FormData): unknown {
  const members = fields.flatMap((field): [string, unknown][] => {
    const value = read(field, String(form.get(field.path) ?? ''));
    return value === null ? [] : [[field.path.slice(name.length + 1), value]];
  });
  return members.length === 0 ? null : Object.fromEntries(members);
}

function put(into: Record<string, unknown>, [name = '', ...rest]: readonly string[], value: unknown): void {
  if (rest.length === 0) {
    into[name] = value;
    return;
  }
  const held = (into[name] ?? {}) as Record<string, unknown>;
  into[name] = held;
  put(held, rest, value);
}
