import type { MaintenanceState } from '../../../client/maintenance';
import type { TargetStatus } from '../../../client/targets';
import type { WorkerCounts } from '../../../client/workers';
import { JOB_STATES } from '../../states';
import type { Api } from '../api';
import { ageText, bad, definePage, type Fact, lastsText, numberText, warn } from '../page';
import { foreign } from '../text';
import { askQueues, byDepth, hearQueues, listQueues, loadQueues, percent, type QueuesAnswer } from './queue-list';

interface Overview extends QueuesAnswer {
  maintenance: MaintenanceState;
  targets: readonly TargetStatus[];
  workers: WorkerCounts;
}

async function load(api: Api): Promise<Overview> {
  const [queues, maintenance, { targets }, { summary }] = await Promise.all([
    loadQueues(api),
    api.get<MaintenanceState>('/admin/maintenance'),
    api.get<Pick<Overview, 'targets'>>('/targets'),
    api.get<{ summary: Overview['workers'] }>('/admin/workers?limit=1'),
  ]);
  return { ...queues, maintenance, targets, workers: summary };
}

/** Events after which more than queues may be different. */
const ELSEWHERE = /^(worker\.(started|stopped|quiet)|queue\.push_)/;

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
  hear: (answer, events) =>
    events.some(({ type }) => ELSEWHERE.test(type)) ? { reload: true } : hearQueues(answer, events),
  ask: async (api, names) => {
    const change = await askQueues(api, names);
    return (answer) => ({ ...answer, ...change(answer) });
  },
});

function factsOf({ items, total, maintenance, targets, workers }: Overview, now: number): Fact[] {
  const sum = (read: (item: (typeof items)[number]) => number) => items.reduce((all, item) => all + read(item), 0);
  const states = JOB_STATES.map((state) => `${state} ${numberText(sum(({ counts }) => counts[state] ?? 0))}`);
  const done = sum(({ throughput }) => throughput.processedPerMinute);
  const failed = sum(({ throughput }) => throughput.failedPerMinute);
  const enqueued = sum(({ throughput }) => throughput.enqueuedPerMinute);
  const oldest = items.flatMap(({ oldestAvailableAt: at }) => at ?? []).sort()[0];
  const share = done + failed === 0 ? 0 : failed / (done + failed);
  const down = targets.filter(({ state }) => state !== 'up');
  const errors = percent(share);
  const { enabled, reason, startedAt, endsAt } = maintenance;
  const since = `since ${ageText(startedAt, now)}${endsAt ? `, ends ${ageText(endsAt, now)}` : ''}`;
  return [
    ...(enabled
      ? [{ name: 'maintenance', value: warn([since, reason && foreign(reason)].filter(Boolean).join(': ')) }]
      : []),
    { name: 'jobs', value: states.join(' · ') },
    {
      name: 'per minute',
      value: `${numberText(enqueued)} enqueued · ${numberText(done)} done · ${numberText(failed)} failed`,
    },
    { name: 'errors', value: errors },
    { name: 'oldest waits', value: oldest === undefined ? '–' : lastsText(oldest, now) },
    ...(items.length < total
      ? [{ name: 'counted', value: warn(`${items.length} of ${numberText(total)} queues`) }]
      : []),
    {
      name: 'workers',
      value: `${workers.total - workers.stale} at work${workers.stale > 0 ? `, ${workers.stale} stale` : ''}`,
    },
    ...down.map(({ name, state, lastError }) => ({
      name: 'handler down',
      value: bad(foreign([name, state, lastError].filter(Boolean).join('  '))),
    })),
  ];
}
