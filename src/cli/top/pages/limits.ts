/** Keys that jobs count under: what is allowed, in use, and waits. */
import type { RateLimitStatus } from '../../../client/rate-limits';
import { ageText, definePage, pageQuery } from '../page';
import { foreign } from '../text';
import { count } from './queue-list';

export const limits = definePage<{ items: readonly RateLimitStatus[]; total: number }>({
  id: 'limits',
  title: 'Limits',
  key: 'l',
  scope: 'data:read',
  load: (api, place) => api.get(`/rate-limits?${pageQuery(place)}`),
  show: ({ items, total }, _, now) => ({
    facts: [],
    columns: [
      { label: 'KEY', rank: 0, most: 40 },
      { label: 'RUNNING', end: true, rank: 0 },
      { label: 'STARTS', end: true, rank: 1 },
      { label: 'WAITING', end: true, rank: 0 },
      { label: 'OVERRIDE', rank: 2 },
      { label: 'QUEUES', rank: 3, most: 40 },
    ],
    rows: items.map(({ key, concurrency, active, limit, period, currentCount, waiting, override, queues }) => ({
      id: key,
      cells: [
        foreign(key),
        concurrency === undefined ? count(active) : `${active}/${concurrency}`,
        limit === undefined ? count(currentCount) : `${currentCount}/${limit} ${period ?? ''}`,
        count(waiting),
        override
          ? foreign(`${JSON.stringify({ ...override, expiresAt: undefined })} ends ${ageText(override.expiresAt, now)}`)
          : '',
        foreign(queues.map(({ queue }) => queue).join(',')),
      ],
    })),
    total,
    empty: 'No limit keys in use.',
  }),
});
