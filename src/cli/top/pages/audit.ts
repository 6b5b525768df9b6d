import type { AuditEntry } from '../../../client/audit';
import { ago, type Column } from '../../views';
import { bad, definePage, listOf, pageQuery } from '../page';
import { valueText } from '../text';

const COLUMNS: readonly Column<AuditEntry>[] = [
  ['WHEN', ({ at }, now) => ago(at, now), { end: true }],
  ['WHO', ({ actor }) => actor.name ?? actor.keyHint ?? 'anybody', { most: 24 }],
  ['ROLE', ({ actor }) => actor.role, { rank: 3 }],
  ['ACTION', ({ action }) => action],
  ['TARGET', ({ target }) => target, { rank: 1, most: 40 }],
  ['JOBS', ({ count }) => count, { rank: 2, end: true }],
  ['STATUS', ({ status }) => (status >= 400 ? bad(String(status)) : String(status)), { rank: 4, end: true }],
  ['FILTER', ({ filter }) => (filter === null ? '' : valueText(filter)), { rank: 5, most: 40 }],
  ['REASON', ({ reason }) => reason, { rank: 6 }],
];

export const audit = definePage<{ items: readonly AuditEntry[]; total: number }>({
  ...{ id: 'audit', title: 'Audit', key: 'a', scope: 'admin:read' },
  load: (api, place) => api.get(`/admin/audit?${pageQuery(place)}`),
  show: ({ items, total }, _, now) => ({
    ...{ facts: [], total, empty: 'No changes by operators.' },
    ...listOf(items, COLUMNS, now, ({ id }) => ({ id })),
  }),
});
