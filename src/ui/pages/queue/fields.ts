/** The settings of a queue as fields of a form: where each stands in the configuration, and how its text is read. */
import type { QueueConfig } from '../../../contract/queues';
import { parseExact, stringifyExact } from '../../core/exact';
import { duration, number, span } from '../../core/format';

export interface SettingField {
  /** Where it stands: `retention.completed`. */
  path: string;
  label: string;
  /** `number` also for parts of one; `seconds`: a number of them, or a duration with its unit. */
  kind: 'number' | 'duration' | 'seconds' | 'list' | 'json' | 'choice';
  choices?: readonly string[];
  /** Unit, range, example. */
  hint: string;
  wide?: boolean;
}

export interface SettingGroup {
  title: string;
  fields: readonly SettingField[];
}

const DAYS = 'For example 12h or 30d; 0 keeps nothing';

export const GROUPS: readonly SettingGroup[] = [
  {
    title: 'Concurrency and time',
    fields: [
      { path: 'concurrency', label: 'Pushed jobs at once', kind: 'number', hint: '1 to 10,000' },
      { path: 'default_timeout', label: 'Execution limit', kind: 'seconds', hint: 'Seconds, or a duration such as 5m' },
      { path: 'visibility_timeout', label: 'Lease', kind: 'seconds', hint: 'Seconds, or a duration such as 30m' },
    ],
  },
  {
    title: 'Rate limit of the queue',
    fields: [
      { path: 'rate_limit.limit', label: 'Starts', kind: 'number', hint: 'In each period' },
      {
        path: 'rate_limit.period',
        label: 'Period',
        kind: 'duration',
        hint: 'second, minute, hour, day, or a duration such as 10s',
      },
      { path: 'rate_limit.concurrency', label: 'Running at once', kind: 'number', hint: 'Pushed and fetched together' },
    ],
  },
  {
    title: 'Groups',
    fields: [
      {
        ...{ path: 'groups.order', label: 'Order of groups', kind: 'choice' },
        ...{ choices: ['fair', 'strict'], hint: 'fair: in turns. strict: one job of a group at a time, in order' },
      },
      { path: 'groups.concurrency', label: 'Running of each group', kind: 'number', hint: 'At once, 1 to 10,000' },
      {
        ...{ path: 'groups.rate', label: 'Rate of each group', kind: 'json' },
        hint: 'Starts in a period, for example {"limit": 100, "period": "minute"}',
      },
      { path: 'groups.max_waiting', label: 'Waiting of each group', kind: 'number', hint: 'At most, 1 to 10,000,000' },
      {
        ...{ path: 'groups.overflow_policy', label: 'Beyond that', kind: 'choice' },
        ...{ choices: ['reject', 'drop_oldest'], hint: 'Refuse new jobs of the group, or discard its oldest' },
      },
      {
        ...{ path: 'groups.limits', label: 'Limits of some groups', kind: 'json', wide: true },
        hint: 'For example {"vip-*": {"concurrency": 50}}',
      },
      {
        ...{ path: 'groups.weights', label: 'Weights', kind: 'json', wide: true },
        hint: 'Shares from 1 to 100, for example {"vip-*": 5}',
      },
    ],
  },
  {
    title: 'Retries',
    fields: [
      {
        ...{ path: 'default_retry', label: 'Retry policy', kind: 'json', wide: true },
        hint: 'For example {"max_attempts": 5, "backoff": "exponential"}',
      },
    ],
  },
  {
    title: 'Retention',
    fields: [
      { path: 'retention.completed', label: 'Completed jobs', kind: 'duration', hint: DAYS },
      { path: 'retention.cancelled', label: 'Cancelled jobs', kind: 'duration', hint: DAYS },
      { path: 'retention.discarded', label: 'Discarded jobs', kind: 'duration', hint: DAYS },
      { path: 'dead_letter.retention.max_age', label: 'Dead letters, retention', kind: 'duration', hint: DAYS },
      {
        path: 'dead_letter.retention.max_count',
        label: 'Dead letters, maximum',
        kind: 'number',
        hint: 'The oldest are deleted',
      },
    ],
  },
  {
    title: 'Backpressure and storage',
    fields: [
      { path: 'max_size', label: 'Jobs that have not ended', kind: 'number', hint: 'At most' },
      { path: 'max_size_bytes', label: 'Bytes of their payloads', kind: 'number', hint: 'At most' },
      {
        ...{ path: 'overflow_policy', label: 'When it is full', kind: 'choice' },
        ...{ choices: ['reject', 'drop_oldest'], hint: 'What happens to a new job' },
      },
      {
        path: 'backpressure.warning_threshold',
        label: 'Warn producers from',
        kind: 'number',
        hint: 'Fraction of the maximum, 0 to 1',
      },
      { path: 'max_storage_bytes', label: 'Bytes stored in total', kind: 'number', hint: 'Including ended jobs' },
    ],
  },
  {
    title: 'Job types',
    fields: [
      {
        ...{ path: 'allowed_job_types', label: 'Accepted types', kind: 'list', wide: true },
        hint: 'Separated by commas; email.* matches all types with this prefix',
      },
      {
        ...{ path: 'schemas', label: 'Registered schemas', kind: 'choice' },
        ...{ choices: ['off', 'warn', 'strict'], hint: 'What happens to arguments that do not match' },
      },
    ],
  },
];

/** The setting at a path; undefined when it is not set. */
export function settingAt(config: QueueConfig | undefined, path: string): unknown {
  return path
    .split('.')
    .reduce<unknown>((at, name) => (at as Readonly<Record<string, unknown>> | undefined)?.[name], config);
}

/** A setting as the text of its field. */
export function textOf(value: unknown): string {
  if (value === undefined || value === null) return '';
  if (Array.isArray(value)) return value.join(', ');
  return typeof value === 'object' ? stringifyExact(value, 0) : String(value);
}

/** A setting as it is shown to a reader. */
export function wordsOf({ kind }: SettingField, value: unknown): string {
  if (kind === 'seconds' && typeof value === 'number') return duration(value * 1_000);
  if (kind === 'number' && typeof value === 'number') return number(value);
  return kind === 'duration' ? span(textOf(value)) : textOf(value);
}

/**
 * What the text of a field stands for; null: not set. What is not a number stays text, so that the server says what it
 * wants.
 */
function read({ kind }: SettingField, text: string): unknown {
  const given = text.trim();
  if (given === '') return null;
  if (kind === 'list') return given.split(/[\s,]+/).filter((part) => part !== '');
  if (kind === 'json') return parsed(given);
  const isNumber = kind === 'number' || kind === 'seconds' || (kind === 'duration' && given === '0');
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
