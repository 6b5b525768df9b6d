/** Schedules: when each fires next, and when it did. */
import type { CronStatus } from '../../../client/cron-status';
import { ageText, definePage, pageQuery, stateCell } from '../page';
import { foreign } from '../text';
import { count } from './queue-list';

export const schedules = definePage<{ items: readonly CronStatus[]; pagination: { total: number } }>({
  id: 'schedules',
  title: 'Schedules',
  key: 's',
  scope: 'data:read',
  load: (api, place) => api.get(`/crons?${pageQuery(place)}`),
  show: ({ items, pagination }, _, now) => ({
    facts: [],
    columns: [
      { label: 'NAME', rank: 0, most: 36 },
      { label: 'STATUS', rank: 1 },
      { label: 'EXPRESSION', rank: 2, most: 24 },
      { label: 'ZONE', rank: 6, most: 20 },
      { label: 'NEXT', end: true, rank: 0 },
      { label: 'LAST', end: true, rank: 3 },
      { label: 'RUNS', end: true, rank: 7 },
      { label: 'TYPE', rank: 4, most: 28 },
      { label: 'QUEUE', rank: 5, most: 20 },
    ],
    rows: items.map((one) => ({
      id: one.name,
      thing: { kind: 'schedule', id: one.name, state: one.status },
      ...(one.lastJobId !== undefined && { opens: { page: 'job' as const, name: one.lastJobId } }),
      cells: [
        foreign(one.name),
        stateCell(one.status === 'active' ? 'on' : one.status),
        foreign(one.expression),
        foreign(one.timezone),
        ageText(one.nextRunAt, now),
        ageText(one.lastRunAt, now),
        count(one.runCount),
        foreign(one.type),
        foreign(one.queue),
      ],
    })),
    total: pagination.total,
    empty: 'No schedules.',
  }),
  hear: (_, events) => (events.some(({ type }) => type.startsWith('cron.')) ? { reload: true } : {}),
});
