/** Failed jobs in groups, by what went wrong. */
import type { FailureGroup, FailureGroups } from '../../../client/failures';
import { ago, type Column, FAILURES } from '../../views';
import { definePage, listOf, numberText, warn } from '../page';

/** Events after which there are more failures, or fewer. */
const FAILED = /^job\.(failed|discarded|retrying|expired)$/;

const [jobs, ...others] = FAILURES as readonly [Column<FailureGroup>, ...Column<FailureGroup>[]];

const COLUMNS: readonly Column<FailureGroup>[] = [
  jobs,
  ['DEAD', ({ dead }) => dead, { rank: 3, end: true }],
  ['RETRYING', ({ retrying }) => retrying, { rank: 4, end: true }],
  ['FIRST', ({ firstSeenAt }, now) => ago(firstSeenAt, now), { rank: 6, end: true }],
  ...others,
];

export const failures = definePage<FailureGroups>({
  ...{ id: 'failures', title: 'Failures', key: 'f', scope: 'admin:read' },
  states: ['dead', 'discarded', 'retrying'],
  load: (api, { state }) => api.get(`/admin/failures?limit=200${state ? `&state=${state}` : ''}`),
  show: ({ items, total, searched, more }, _, now) => ({
    facts: more ? [{ name: 'searched', value: warn(`the newest ${numberText(searched)} jobs; there are more`) }] : [],
    ...listOf(items, COLUMNS, now, ({ fingerprint, count, error: { type, message } }) => ({
      id: fingerprint,
      thing: { kind: 'group', id: fingerprint, called: `${count} × ${type}: ${message}` },
      opens: { page: 'jobs', fingerprint },
    })),
    ...{ total, empty: 'No failures.' },
  }),
  // To search every queue again at each failure would wake those that sleep.
  hear: (_, events) => ({ newer: events.filter(({ type }) => FAILED.test(type)).length }),
});
