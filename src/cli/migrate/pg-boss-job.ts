/** What jobs and schedules of pg-boss mean here. Pure: rows in, what is sent out. */
import { own } from '../../job/own';
import type { RetryPolicy } from '../../producer/envelope';
import { epochOf, type Finding, FOR_A_TIME, inRange, type Mapped, ranOf, startingAt, type WorkOptions } from './found';

/** A row as JSON. Versions before 10 have the same columns without underscores. */
export type Row = Readonly<Record<string, unknown>>;

export const REMARKS = {
  'priority out of range': 'Priorities are -100 to 100 here: it got the nearest.',
  'dead letter queue': 'After its last run it becomes a dead letter of its own queue: npx tocsin dead.',
  ...FOR_A_TIME,
  key_strict_fifo: 'Its key became its group. Set the groups of the queue to strict: PUT /queues/<queue>/config.',
  'group tiers': 'Groups have no tiers here: set weights or a concurrency of groups in the settings of the queue.',
  'expiry beyond a day': 'An attempt may take a day at most.',
} as const;

type Remark = keyof typeof REMARKS;

const DAY_MS = 86_400_000;
const MAX_DOUBLINGS = 16;

/** A column, under its name of either age. */
const column = (row: Row, name: string): unknown => own(row, name) ?? own(row, name.replaceAll('_', '')) ?? undefined;
const text = (row: Row, name: string): string | undefined => column(row, name) as string | undefined;
const number = (row: Row, name: string): number | undefined => {
  const value = column(row, name);
  return value === undefined ? undefined : Number(value);
};
const moment = (row: Row, name: string): number | undefined => {
  const value = text(row, name);
  return value === undefined ? undefined : epochOf(value);
};

/** The runs that are left, and their delays. @param made runs behind the job */
export function retryOf(row: Row, made: number): RetryPolicy {
  const maxAttempts = Math.max(1, (number(row, 'retry_limit') ?? 0) + 1 - made);
  const delay = (number(row, 'retry_delay') ?? 0) * 1000;
  const onExhaustion = text(row, 'dead_letter') === undefined ? {} : { onExhaustion: 'dead_letter' as const };
  if (column(row, 'retry_backoff') !== true) {
    const backoff: RetryPolicy =
      delay === 0 ? { backoffStrategy: 'none' } : { backoffStrategy: 'constant', initialInterval: delay };
    return { maxAttempts, ...(maxAttempts > 1 && { ...backoff, jitter: false }), ...onExhaustion };
  }
  // From half of it to all of it, doubled each time.
  const first = Math.max(delay, 1000) * 2;
  const most = number(row, 'retry_delay_max');
  const cap = most === undefined ? first * 2 ** (MAX_DOUBLINGS - 1) : most * 1000;
  const backoff: RetryPolicy = {
    backoffStrategy: 'exponential',
    initialInterval: Math.min(first * 2 ** made, cap),
    backoffCoefficient: 2,
    maxInterval: cap,
    jitter: { kind: 'multiply', min: 0.5, max: 1 },
  };
  return { maxAttempts, ...(maxAttempts > 1 && backoff), ...onExhaustion };
}

/** What its key and the policy of its queue ask for. */
export function keyOf(row: Row): Mapped<Remark> {
  const name = text(row, 'name') ?? '';
  const own = text(row, 'singleton_key');
  const key = own || name;
  // A job that waits for a retry may do so beside a new one with its key.
  const isNew = row.state !== 'retry';
  const waiting: WorkOptions = isNew
    ? { unique: { key, states: ['scheduled', 'available', 'retryable'], onConflict: 'ignore' } }
    : {};
  const alone: WorkOptions = { rateLimit: { key, concurrency: 1 } };
  switch (text(row, 'policy')) {
    case 'short':
      return { options: waiting, remarks: [] };
    case 'singleton':
      return { options: alone, remarks: [] };
    case 'stately':
      return { options: { ...waiting, ...alone }, remarks: [] };
    case 'exclusive':
      return { options: { unique: { key, onConflict: 'ignore' } }, remarks: [] };
    case 'key_strict_fifo':
      return { options: { group: key }, remarks: ['key_strict_fifo'] };
  }
  const isSlotted = column(row, 'singleton_on') !== undefined;
  // Versions before 10 have no policies: a key is always alone there.
  if (!isSlotted && row.singletonkey) return { options: { unique: { key, onConflict: 'ignore' } }, remarks: [] };
  return { options: {}, remarks: isSlotted ? ['unique for a time'] : [] };
}

/** Ms, of seconds, or of an interval as older versions have it: `00:15:00`. */
function expiryOf(row: Row): number | undefined {
  const seconds = number(row, 'expire_seconds');
  if (seconds !== undefined) return seconds * 1000;
  const [, hours, minutes, rest] = /^(\d+):(\d\d):(\d\d(?:\.\d+)?)$/.exec(text(row, 'expire_in') ?? '') ?? [];
  return hours === undefined ? undefined : (Number(hours) * 3600 + Number(minutes) * 60 + Number(rest)) * 1000;
}

/** All that a job of this row may do. @param made runs behind it */
function optionsOf(row: Row, made: number): Mapped<Remark> {
  const priority = number(row, 'priority') ?? 0;
  const expiry = expiryOf(row);
  const kept = number(row, 'deletion_seconds');
  const group = text(row, 'group_id');
  const heartbeat = number(row, 'heartbeat_seconds');
  const key = keyOf(row);
  const found: [Remark, boolean][] = [
    ['priority out of range', inRange(priority) !== priority],
    ['dead letter queue', text(row, 'dead_letter') !== undefined],
    ['group tiers', text(row, 'group_tier') !== undefined],
    ['expiry beyond a day', expiry !== undefined && expiry > DAY_MS],
  ];
  return {
    options: {
      retry: retryOf(row, made),
      ...(priority !== 0 && { priority: inRange(priority) }),
      ...(expiry !== undefined && expiry > 0 && { timeoutMs: Math.min(expiry, DAY_MS) }),
      ...(kept && { retention: { completed: kept * 1000, discarded: kept * 1000 } }),
      ...(heartbeat && { visibilityTimeoutMs: heartbeat * 1000 }),
      ...(group !== undefined && { group }),
      ...key.options,
    },
    remarks: [...found.flatMap(([what, isSo]) => (isSo ? [what] : [])), ...key.remarks],
  };
}

function errorOf(output: unknown): string | undefined {
  if (output === null || output === undefined) return undefined;
  const { message, value } = output as { message?: unknown; value?: { message?: unknown } };
  const text = message ?? value?.message;
  return typeof text === 'string' ? text : JSON.stringify(output);
}

export function jobOf(row: Row, now: number): Finding {
  const [id, name] = [text(row, 'id') ?? '', text(row, 'name') ?? ''];
  const made = row.state === 'retry' ? (number(row, 'retry_count') ?? 0) + 1 : 0;
  const { options, remarks } = optionsOf(row, made);
  const keepUntil = moment(row, 'keep_until') ?? Number.POSITIVE_INFINITY;
  return {
    ...{ kind: 'job', id, queue: name, name, args: [row.data ?? null], remarks },
    createdAt: moment(row, 'created_on') ?? 0,
    options: {
      ...options,
      ...startingAt(moment(row, 'start_after') ?? 0, now),
      ...(keepUntil < Number.POSITIVE_INFINITY && { expiresAt: new Date(Math.max(0, keepUntil)) }),
    },
    ran: ranOf(made, errorOf(row.output)),
  };
}

const SEND_OPTIONS: Readonly<Record<string, string>> = {
  priority: 'priority',
  retryLimit: 'retry_limit',
  retryDelay: 'retry_delay',
  retryBackoff: 'retry_backoff',
  retryDelayMax: 'retry_delay_max',
  expireInSeconds: 'expire_seconds',
  deleteAfterSeconds: 'deletion_seconds',
  heartbeatSeconds: 'heartbeat_seconds',
  deadLetter: 'dead_letter',
  singletonKey: 'singleton_key',
};

/** A schedule. @param queue the row of its queue, where the version has one */
export function scheduleOf(row: Row, queue: Row): Finding {
  const name = text(row, 'name') ?? '';
  const id = text(row, 'key') || name;
  if (row.kind === 'rrule') {
    const message = 'it has a recurrence rule; write it as a cron expression: npx tocsin crons set';
    return { kind: 'broken', of: 'schedule', id, queue: name, name, message };
  }
  const given = (row.options ?? {}) as Row;
  const sendOptions = Object.entries(SEND_OPTIONS).flatMap(([option, ours]) =>
    own(given, option) == null ? [] : [[ours, own(given, option)]],
  );
  const group = given.group as { id?: string; tier?: string } | undefined;
  const sent = { ...queue, name, group_id: group?.id, group_tier: group?.tier, ...Object.fromEntries(sendOptions) };
  const { options, remarks } = optionsOf(sent, 0);
  return {
    ...{ kind: 'schedule', id, queue: name, name, args: [row.data ?? null], options, remarks },
    expression: text(row, 'cron') ?? '',
    timezone: text(row, 'timezone'),
    missedPolicy: given.missed === 'once' ? 'fire_once' : 'skip',
  };
}
