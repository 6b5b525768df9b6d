/** Who did what, and to how many. */
import type { AuditEntry } from '../../../client/audit';
import { textOf } from '../../output';
import { ageText, bad, definePage, numberText, pageQuery } from '../page';
import { foreign } from '../text';

export const audit = definePage<{ items: readonly AuditEntry[]; total: number }>({
  id: 'audit',
  title: 'Audit',
  key: 'a',
  scope: 'admin:read',
  load: (api, place) => api.get(`/admin/audit?${pageQuery(place)}`),
  show: ({ items, total }, _, now) => ({
    facts: [],
    columns: [
      { label: 'WHEN', end: true, rank: 0 },
      { label: 'WHO', rank: 0, most: 24 },
      { label: 'ROLE', rank: 3 },
      { label: 'ACTION', rank: 0 },
      { label: 'TARGET', rank: 1, most: 40 },
      { label: 'JOBS', end: true, rank: 2 },
      { label: 'STATUS', end: true, rank: 4 },
      { label: 'FILTER', rank: 5, most: 40 },
      { label: 'REASON', rank: 6 },
    ],
    rows: items.map(({ id, at, actor, action, target, count, status, filter, reason }) => ({
      id,
      cells: [
        ageText(at, now),
        foreign(actor.name ?? actor.keyHint ?? 'anybody'),
        foreign(actor.role),
        foreign(action),
        foreign(target ?? ''),
        count === null ? '' : numberText(count),
        status >= 400 ? bad(String(status)) : String(status),
        filter === null ? '' : foreign(textOf(filter)),
        foreign(reason ?? ''),
      ],
    })),
    total,
    empty: 'No changes by operators.',
  }),
});
