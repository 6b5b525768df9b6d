import type { CronStatus } from '../../../client/cron-status';
import { CRONS } from '../../views';
import { definePage, listOf, pageQuery } from '../page';

export const schedules = definePage<{ items: readonly CronStatus[]; pagination: { total: number } }>({
  ...{ id: 'schedules', title: 'Schedules', key: 's', scope: 'data:read' },
  load: (api, place) => api.get(`/crons?${pageQuery(place)}`),
  show: ({ items, pagination: { total } }, _, now) => ({
    ...{ facts: [], total, empty: 'No schedules.' },
    ...listOf(items, CRONS, now, ({ name, status, lastJobId }) => ({
      id: name,
      thing: { kind: 'schedule', id: name, state: status },
      ...(lastJobId !== undefined && { opens: { page: 'job', name: lastJobId } }),
    })),
  }),
  hear: (_, events) => (events.some(({ type }) => type.startsWith('cron.')) ? { reload: true } : {}),
});
