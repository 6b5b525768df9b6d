import type { Alert } from '../../../client/alerts';
import type { MaintenanceState } from '../../../client/maintenance';
import type { TargetStatus } from '../../../client/targets';
import type { WorkerCounts } from '../../../client/workers';
import { lengthText, readable } from '../../output';
import { JOB_STATES } from '../../states';
import type { Api } from '../api';
import { ageText, bad, countsText, definePage, type Fact, lastsText, numberText, warn } from '../page';
import { foreign } from '../text';
import {
  askQueues,
  byDepth,
  listQueues,
  loadQueues,
  paceText,
  percent,
  type QueuesAnswer,
  receiveQueues,
} from './queue-list';

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

function alertFacts(alerts: readonly Alert[], now: number): Fact[] {
  return alerts.flatMap(({ name, metric, above, queues }) => {
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
}

function factsOf({ items, total, maintenance, alerts, targets, workers }: Overview, now: number): Fact[] {
  const sum = (read: (item: (typeof items)[number]) => number) => items.reduce((all, item) => all + read(item), 0);
  const counts = JOB_STATES.map((state) => [state, sum((item) => item.counts[state] ?? 0)]);
  const done = sum(({ throughput }) => throughput.processedPerMinute);
  const failed = sum(({ throughput }) => throughput.failedPerMinute);
  const enqueued = sum(({ throughput }) => throughput.enqueuedPerMinute);
  const oldest = items.flatMap(({ oldestAvailableAt: at }) => at ?? []).sort()[0];
  const share = done + failed === 0 ? 0 : failed / (done + failed);
  const down = targets.filter(({ state }) => state !== 'up');
  const stuck = items.flatMap(({ name, waitingFor }): Fact[] =>
    waitingFor && STUCK.test(waitingFor.reason)
      ? [['waits', warn(foreign(`${name}: ${readable(waitingFor.detail, now)}`))]]
      : [],
  );
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
