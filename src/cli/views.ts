/** Columns of things in rows, for list commands and `top`. */

import type { CronStatus } from '../client/cron-entry';
import type { FailureGroup } from '../client/failures';
import type { LimitsInForce, RateLimitStatus } from '../client/rate-limits';
import type { Webhook } from '../client/webhooks';
import type { WorkflowSummary } from '../client/workflows';
import type { JobState } from '../job/states';
import type { JobEnvelope } from '../producer/envelope';
import { whenText } from './output';

export interface Layout {
  /** Narrow windows leave out columns, those with the highest number first; 0, the default, stays. */
  rank?: number;
  /** Stands at the end of its width, as numbers do. */
  end?: boolean;
  /** Widest, in columns of the window. */
  most?: number;
  /** What the cell is: a state, a mode of which `active` is the usual one, or a number of what went wrong. */
  is?: 'state' | 'mode' | 'bad';
}

export type Column<Item> = readonly [head: string, cell: (item: Item, now: number) => unknown, layout?: Layout];

/** Columns by their heads, each of a member or of what is made of the item. */
export const columns = <Item>(cells: Readonly<Record<string, keyof Item | Column<Item>[1]>>): Column<Item>[] =>
  Object.entries(cells).map(([head, cell]) => {
    return [head, typeof cell === 'function' ? cell : (item) => item[cell]] as const;
  });

/** How long ago a member was. */
export const since =
  <Name extends string>(name: Name, none?: string) =>
  (item: { readonly [_ in Name]?: string | null | undefined }, now: number) =>
    ago(item[name], now, none);

export const ago = (time: string | null | undefined, now: number, none = '') =>
  whenText(time ?? undefined, now) ?? none;

interface Failed {
  type?: string | undefined;
  message?: string | undefined;
}

const errorText = ({ type, message }: Failed) => `${type ?? ''}: ${message}`;

/** What rows show of a job, which its envelope and its summary have alike. */
type JobRow = Pick<JobEnvelope, 'id' | 'state' | 'queue' | 'type' | 'attempt' | 'maxAttempts' | 'createdAt'> & {
  error?: Failed | undefined;
};

export const JOBS: readonly Column<JobRow>[] = [
  ['ID', ({ id }) => id, { rank: 2 }],
  ['STATE', ({ state }) => state, { is: 'state' }],
  ['QUEUE', ({ queue }) => queue, { rank: 3, most: 24 }],
  ['TYPE', ({ type }) => type, { most: 32 }],
  ['ATTEMPT', ({ attempt, maxAttempts }) => `${attempt}/${maxAttempts}`, { rank: 4, end: true }],
  ['CREATED', ({ createdAt }, now) => ago(createdAt, now), { rank: 1, end: true }],
  ['LAST ERROR', ({ state, error }) => (error && state !== 'completed' ? errorText(error) : ''), { rank: 5 }],
];

export const FAILURES: readonly Column<FailureGroup>[] = [
  ['JOBS', ({ count }) => count, { end: true, is: 'bad' }],
  ['TYPE', ({ type }) => type, { most: 28 }],
  ['QUEUES', ({ queues }) => queues.join(','), { rank: 5, most: 20 }],
  ['LAST', ({ lastSeenAt }, now) => ago(lastSeenAt, now), { rank: 2, end: true }],
  ['ERROR', ({ error }) => errorText(error)],
];

export const CRONS: readonly Column<CronStatus>[] = [
  ['NAME', ({ name }) => name, { most: 36 }],
  ['STATUS', ({ status }) => status, { rank: 1, is: 'mode' }],
  ['EXPRESSION', ({ expression }) => expression, { rank: 2, most: 24 }],
  ['ZONE', ({ timezone }) => timezone, { rank: 6, most: 20 }],
  ['QUEUE', ({ queue }) => queue, { rank: 5, most: 20 }],
  ['TYPE', ({ type }) => type, { rank: 4, most: 28 }],
  ['NEXT', ({ nextRunAt }, now) => ago(nextRunAt, now), { end: true }],
  ['LAST', ({ lastRunAt }, now) => ago(lastRunAt, now, 'never'), { rank: 3, end: true }],
  ['FIRED', ({ fireCount }) => fireCount, { rank: 7, end: true }],
  ['SKIPPED', ({ skippedCount }) => skippedCount, { rank: 8, end: true }],
];

export const WORKFLOWS: readonly Column<WorkflowSummary>[] = [
  ['ID', ({ id }) => id, { rank: 2 }],
  ['STATE', ({ state }) => state, { is: 'state' }],
  ['FORM', ({ type }) => type, { rank: 3 }],
  ['NAME', ({ name }) => name, { most: 36 }],
  ['JOBS', ({ jobCount }) => jobCount, { end: true }],
  ['FAILED', ({ failedCount }) => failedCount, { rank: 4, end: true, is: 'bad' }],
  ['CREATED', ({ createdAt }, now) => ago(createdAt, now), { rank: 1, end: true }],
  ['ENDED', ({ completedAt, cancelledAt }, now) => ago(completedAt ?? cancelledAt, now), { rank: 5, end: true }],
];

export function limitsText({ concurrency, limit, period, throttled }: LimitsInForce): string {
  const rate = limit === undefined ? undefined : `${limit} in ${period ?? 'a period'}${throttled ? ', spread' : ''}`;
  return [concurrency === undefined ? undefined : `${concurrency} at once`, rate].filter(Boolean).join(', ');
}

export const LIMITS: readonly Column<RateLimitStatus>[] = [
  ['KEY', ({ key }) => key, { most: 40 }],
  ['LIMITS', limitsText, { rank: 1, most: 40 }],
  [
    'OVERRIDDEN',
    ({ override }, now) => override && (override.expiresAt ? ago(override.expiresAt, now) : 'yes'),
    { rank: 2 },
  ],
  ['RUNNING', ({ active }) => active, { end: true }],
  ['STARTS', ({ currentCount }) => currentCount, { rank: 3, end: true }],
  ['WAITING', ({ waiting }) => waiting, { end: true }],
];

export const WEBHOOKS: readonly Column<Webhook>[] = [
  ['STATUS', ({ active, disabledReason }) => (active ? 'on' : (disabledReason ?? 'off')), { is: 'state' }],
  ['URL', ({ url }) => url, { most: 60 }],
  ['EVENTS', ({ events }) => events.join(','), { rank: 4, most: 40 }],
  ['FORMAT', ({ format }) => (typeof format === 'object' ? 'template' : (format ?? 'event')), { rank: 6 }],
  ['SENT', ({ successCount }) => successCount, { rank: 5, end: true }],
  ['FAILED', ({ failureCount }) => failureCount, { rank: 2, end: true, is: 'bad' }],
  ['PENDING', ({ pendingCount }) => pendingCount, { rank: 3, end: true }],
  ['LAST', ({ lastDeliveryAt }, now) => ago(lastDeliveryAt, now, 'never'), { rank: 1, end: true }],
];

export const JOB_STATES: readonly JobState[] = [
  ...(['pending', 'scheduled', 'available', 'active'] as const),
  ...(['retryable', 'completed', 'cancelled', 'discarded'] as const),
];
