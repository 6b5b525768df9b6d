/** Who does the work: the workers that pull, and the handlers that jobs are pushed to. */
import type { TargetStatus } from '../../../client/targets';
import type { WorkerList } from '../../../contract/workers';
import type { Named } from '../../../producer/names';
import { ageText, definePage, pageQuery, type Row, stateCell } from '../page';
import { foreign } from '../text';

interface WorkersAnswer extends Named<WorkerList> {
  targets: readonly TargetStatus[];
}

export const workers = definePage<WorkersAnswer>({
  id: 'workers',
  title: 'Workers',
  key: 'k',
  scope: 'admin:read',
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
    columns: [
      { label: 'WORKER', rank: 0, most: 40 },
      { label: 'STATE', rank: 0 },
      { label: 'TAKES', rank: 2, most: 30 },
      { label: 'RUNNING', end: true, rank: 1 },
      { label: 'LAST SEEN', end: true, rank: 1 },
      { label: 'TELLS', rank: 3 },
    ],
    rows: [...targets.map((target) => targetRow(target, now)), ...items.map((worker) => workerRow(worker, now))],
    total: pagination.total + targets.length,
    empty: 'No workers and no handlers.',
  }),
  hear: (_, events) =>
    events.some(({ type }) => /^worker\.(started|stopped|quiet)|^queue\.push_/.test(type)) ? { reload: true } : {},
});

function workerRow(worker: WorkersAnswer['items'][number], now: number): Row {
  const { id, state, queues, activeJobs, concurrency, lastHeartbeatAt, hostname, pid, version } = worker;
  return {
    id: `worker ${id}`,
    thing: { kind: 'worker', id, state },
    cells: [
      foreign(id),
      stateCell(state),
      foreign(queues.join(',')),
      concurrency === null ? activeJobs : `${activeJobs}/${concurrency}`,
      ageText(lastHeartbeatAt, now),
      foreign([hostname, pid, version].filter((part) => part !== null).join(' ')),
    ],
  };
}

function targetRow({ name, state, patterns, lastError, since }: TargetStatus, now: number): Row {
  return {
    id: `target ${name}`,
    thing: { kind: 'target', id: name, state },
    cells: [
      foreign(name),
      stateCell(state),
      foreign(patterns.join(',')),
      '',
      ageText(since, now),
      foreign(lastError ?? ''),
    ],
  };
}
