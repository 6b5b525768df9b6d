/** Keys that jobs count under: what is allowed, in use, and waits. */
import type { RateLimitStatus } from '../../../client/rate-limits';
import { type Column, LIMITS } from '../../views';
import { definePage, listOf, pageQuery } from '../page';

const COLUMNS: readonly Column<RateLimitStatus>[] = [
  ...LIMITS,
  ['QUEUES', ({ queues }) => queues.map(({ queue }) => queue).join(','), { rank: 4, most: 40 }],
];

export const limits = definePage<{ items: readonly RateLimitStatus[]; total: number }>({
  ...{ id: 'limits', title: 'Limits', key: 'l', scope: 'data:read' },
  load: (api, place) => api.get(`/rate-limits?${pageQuery(place)}`),
  show: ({ items, total }, _, now) => ({
    ...{ facts: [], total, empty: 'No limit keys in use.' },
    ...listOf(items, COLUMNS, now, ({ key }) => ({ id: key })),
  }),
});
