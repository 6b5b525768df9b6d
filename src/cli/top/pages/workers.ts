/** Who does the work: the workers that pull, and the handlers that jobs are pushed to. */
import type { TargetStatus } from '../../../client/targets';
import type { WorkerList } from '../../../contract/workers';
import type { Named } from '../../../producer/names';
import { ago, type Column } from '../../views';
import { definePage, listOf, pageQuery, type Thing } from '../page';

interface WorkersAnswer extends Named<WorkerList> {
  targets: readonly TargetStatus[];
}

export const workers = definePage<WorkersAnswer>({
  ...{ id: 'workers', title: 'Workers', key: 'k', scope: 'admin:read' },
  load: async (api, place) => {
    const [found, { targets }] = await Promise.all([
      api.get<Omit<WorkersAnswer, 'targets'>>(`/admin/workers?${pageQuery(place)}`),
      api.get<Pick<WorkersAnswer, 'targets'>>('/targets'),
    ]);
    return { ...found, targets };
  },
  show: ({ items, pagination, targets, summary }, _, now) => ({
    facts: [
      {
        name: 'workers',
        value: Object.entries(summary)
          .map(([state, number]) => `${state} ${number}`)
          .join(' · '),
      },
    ],
    ...listOf<Shown>([...targets.map(targetRow), ...items.map(workerRow)], COLUMNS, now, ({ thing }) => ({
      ...{ id: `${thing.kind} ${thing.id}`, thing },
    })),
    total: pagination.total + targets.length,
    empty: 'No workers and no handlers.',
  }),
  hear: (_, events) =>
    events.some(({ type }) => /^worker\.(started|stopped|quiet)|^queue\.push_/.test(type)) ? { reload: true } : {},
});

/** A worker or a handler, as rows show it. */
interface Shown {
  thing: Thing & { state: string };
  takes: readonly string[];
  running?: number | string;
  seen: string | null | undefined;
  tells: string | undefined;
}

const COLUMNS: readonly Column<Shown>[] = [
  ['WORKER', ({ thing }) => thing.id, { most: 40 }],
  ['STATE', ({ thing }) => thing.state, { is: 'state' }],
  ['TAKES', ({ takes }) => takes.join(','), { rank: 2, most: 30 }],
  ['RUNNING', ({ running }) => running, { rank: 1, end: true }],
  ['LAST SEEN', ({ seen }, now) => ago(seen, now), { rank: 1, end: true }],
  ['TELLS', ({ tells }) => tells, { rank: 3 }],
];

const workerRow = (worker: WorkersAnswer['items'][number]): Shown => ({
  thing: { kind: 'worker', id: worker.id, state: worker.state },
  takes: worker.queues,
  running: worker.concurrency === null ? worker.activeJobs : `${worker.activeJobs}/${worker.concurrency}`,
  seen: worker.lastHeartbeatAt,
  tells: [worker.hostname, worker.pid, worker.version].filter((part) => part !== null).join(' '),
});

const targetRow = ({ name, state, patterns, lastError, since }: TargetStatus): Shown => ({
  thing: { kind: 'target', id: name, state },
  ...{ takes: patterns, seen: since, tells: lastError },
});
