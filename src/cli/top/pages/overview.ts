import type { Alert } from '../../../client/alerts';
import type { QueueEvent } from '../../../client/follow';
import type { MaintenanceState } from '../../../client/maintenance';
import { pathTo } from '../../../client/requests';
import type { TargetStatus } from '../../../client/targets';
import type { WorkerCounts } from '../../../client/workers';
import type { QueueStanding } from '../../../contract/queues';
import type { Named } from '../../../producer/names';
import { lengthText, readable } from '../../output';
import { type Column, JOB_STATES } from '../../views';
import type { Api } from '../api';
import {
  ageText,
  bad,
  type Cell,
  type Change,
  countsText,
  definePage,
  type Fact,
  faint,
  lastsText,
  listOf,
  msText,
  numberText,
  warn,
} from '../page';
import { foreign } from '../text';

export type QueueItem = Named<QueueStanding>;

export interface QueuesAnswer {
  items: readonly QueueItem[];
  total: number;
}

/** No more queues than a follower of everything may have. */
const MOST_PAGES = 2;
const PER_REQUEST = 100;

export async function loadQueues(api: Api): Promise<QueuesAnswer> {
  const items: QueueItem[] = [];
  let total = 0;
  for (let page = 1; page <= MOST_PAGES; page++) {
    const found = await api.get<QueuesAnswer>(`/admin/queues?page=${page}&per_page=${PER_REQUEST}`);
    items.push(...found.items);
    total = found.total;
    if (items.length >= total || found.items.length === 0) break;
  }
  return { items, total };
}

/** With more queues in a batch of events than this, the list is loaded instead. */
const MOST_ASKED = 12;

const queuesIn = (events: readonly QueueEvent[]): string[] => [
  ...new Set(events.flatMap(({ data }) => (typeof data.queue === 'string' ? [data.queue] : []))),
];

export function receiveQueues({ items, total }: QueuesAnswer, events: readonly QueueEvent[]): Change<never> {
  const names = queuesIn(events);
  if (names.length === 0) return {};
  const known = new Set(items.map(({ name }) => name));
  const isNew = names.some((name) => !known.has(name)) && items.length >= total;
  return isNew || names.length > MOST_ASKED ? { reload: true } : { ask: names.filter((name) => known.has(name)) };
}

export async function askQueues(api: Api, names: readonly string[]): Promise<(list: QueuesAnswer) => QueuesAnswer> {
  const found = await Promise.all(names.map((name) => api.get<QueueItem>(pathTo`/admin/queues/${name}`)));
  const byName = new Map(found.map((item) => [item.name, item]));
  return ({ items, total }) => ({ total, items: items.map((item) => byName.get(item.name) ?? item) });
}

const QUEUE_COLUMNS: readonly Column<QueueItem>[] = [
  ['QUEUE', ({ name }) => name, { most: 40 }],
  ['STATUS', ({ status }) => status, { rank: 1, is: 'mode' }],
  ['AVAILABLE', ({ counts: { available = 0 } }) => available, { end: true }],
  [
    'ACTIVE',
    ({ counts: { active = 0 }, concurrency: { limit } }) =>
      limit === null ? active : `${numberText(active)}/${numberText(limit)}`,
    { rank: 2, end: true },
  ],
  ['LATER', ({ counts: { scheduled = 0, pending = 0 } }) => scheduled + pending, { rank: 5, end: true }],
  ['RETRYING', ({ counts: { retryable = 0 } }) => retryable, { rank: 4, end: true }],
  ['DISCARDED', ({ counts: { discarded = 0 } }) => discarded, { rank: 3, end: true, is: 'bad' }],
  ['DONE/MIN', ({ throughput }) => throughput.processedPerMinute, { rank: 6, end: true }],
  ['ERRORS', ({ errorRate }) => percent(errorRate), { rank: 7, end: true }],
  ['P95', ({ latencyMs }) => msText(latencyMs.p95), { rank: 9, end: true }],
  ['OLDEST', ({ oldestAvailableAt }, now) => lastsText(oldestAvailableAt, now), { rank: 8, end: true }],
];

export const listQueues = (items: readonly QueueItem[], now: number) =>
  listOf(items, QUEUE_COLUMNS, now, ({ name, status }) => ({
    id: name,
    thing: { kind: 'queue', id: name, state: status },
    opens: { page: 'queue', name },
  }));

export const paceText = (enqueued: number, done: number, failed: number): string =>
  `${numberText(enqueued)} enqueued · ${numberText(done)} done · ${numberText(failed)} failed`;

export function percent(share: number): Cell {
  const text = `${Math.round(share * 1000) / 10} %`;
  if (share === 0) return faint(text);
  return share >= 0.05 ? bad(text) : text;
}

/** Jobs that have not ended, the most first. */
export const byDepth = (a: QueueItem, b: QueueItem): number => depth(b) - depth(a) || (a.name < b.name ? -1 : 1);

function depth({ counts }: QueueItem): number {
  const { completed = 0, cancelled = 0, discarded = 0 } = counts;
  return Object.values(counts).reduce((all, one) => all + one, 0) - completed - cancelled - discarded;
}

interface Overview extends QueuesAnswer {
  maintenance: MaintenanceState;
  alerts: readonly Alert[];
  targets: readonly TargetStatus[];
  workers: WorkerCounts;
}

async function load(api: Api): Promise<Overview> {
  const [queues, maintenance, { alerts }, { targets }, { summary }] = await Promise.all([
    loadQueues(api),
    api.get<MaintenanceState>('/admin/maintenance'),
    api.get<Pick<Overview, 'alerts'>>('/admin/alerts?per_page=100'),
    api.get<Pick<Overview, 'targets'>>('/targets'),
    api.get<{ summary: Overview['workers'] }>('/admin/workers?limit=1'),
  ]);
  return { ...queues, maintenance, alerts, targets, workers: summary };
}

/** Events after which more than queues may be different. */
const ELSEWHERE = /^(alert\.|worker\.(started|stopped|quiet)|queue\.push_)/;

/** Reasons of a queue's oldest job that need an operator. */
const STUCK = /^(no_handler|handler_down|no_worker|queue_paused|group_paused|key_limit|queue_limit)$/;

const MOST_REASONS = 3;

export const overview = definePage<Overview>({
  ...{ id: 'overview', title: 'Overview', key: 'o', scope: 'admin:read' },
  load,
  show: (answer, _, now) => ({
    facts: factsOf(answer, now),
    ...listQueues([...answer.items].sort(byDepth), now),
    total: answer.total,
    empty: 'No queues yet. A queue is created by its first job.',
    subject: { kind: 'deployment', id: 'deployment', state: answer.maintenance.enabled ? 'maintenance' : 'running' },
  }),
  receive: (answer, events) =>
    events.some(({ type }) => ELSEWHERE.test(type)) ? { reload: true } : receiveQueues(answer, events),
  ask: async (api, names) => {
    const change = await askQueues(api, names);
    return (answer) => ({ ...answer, ...change(answer) });
  },
});

const alertFacts = (alerts: readonly Alert[], now: number): Fact[] =>
  alerts.flatMap(({ name, metric, above, queues }) => {
    const shown = (value: number) => {
      if (metric === 'error_rate') return `${Math.round(value * 1_000) / 10} %`;
      return metric === 'oldest_age' ? lengthText(value * 1_000) : numberText(value);
    };
    const firing = queues.filter(({ state }) => state === 'firing');
    return firing.map(({ queue, since, lastValue }) => {
      const text = `${name}: ${metric.replaceAll('_', ' ')} was ${shown(lastValue)}, above ${shown(above)}, in ${queue}`;
      return ['alert', bad(foreign(`${text}, fires since ${ageText(since, now)}`))] as const;
    });
  });

function factsOf({ items, total, maintenance, alerts, targets, workers }: Overview, now: number): Fact[] {
  const sum = (read: (item: (typeof items)[number]) => number) => items.reduce((all, item) => all + read(item), 0);
  const counts = JOB_STATES.map((state) => [state, sum((item) => item.counts[state] ?? 0)]);
  const done = sum(({ throughput }) => throughput.processedPerMinute);
  const failed = sum(({ throughput }) => throughput.failedPerMinute);
  const enqueued = sum(({ throughput }) => throughput.enqueuedPerMinute);
  const oldest = items.flatMap(({ oldestAvailableAt: at }) => at ?? []).sort()[0];
  const share = done + failed === 0 ? 0 : failed / (done + failed);
  const down = targets.filter(({ state }) => state !== 'up');
  const stuck = items.flatMap(({ name, waitingFor }): Fact[] => {
    if (!waitingFor || !STUCK.test(waitingFor.reason)) return [];
    return [['waits', warn(foreign(`${name}: ${readable(waitingFor.detail, now)}`))]];
  });
  const { enabled, reason, startedAt, endsAt } = maintenance;
  const since = `since ${ageText(startedAt, now)}${endsAt ? `, ends ${ageText(endsAt, now)}` : ''}`;
  return [
    ['maintenance', enabled ? warn([since, reason && foreign(reason)].filter(Boolean).join(': ')) : undefined],
    ...alertFacts(alerts, now),
    ...stuck.slice(0, MOST_REASONS),
    ['jobs', countsText(Object.fromEntries(counts))],
    ['per minute', paceText(enqueued, done, failed)],
    ['errors', percent(share)],
    ['oldest waits', lastsText(oldest, now)],
    ['counted', items.length < total ? warn(`${items.length} of ${numberText(total)} queues`) : undefined],
    ['workers', `${workers.total - workers.stale} at work${workers.stale > 0 ? `, ${workers.stale} stale` : ''}`],
    ...down.map(({ name, state, lastError }): Fact => {
      return ['handler down', bad(foreign([name, state, lastError].filter(Boolean).join('  ')))];
    }),
  ];
}
