/** Failed jobs in groups, by what went wrong. */
import type { FailureGroup, FailureGroups } from '../../../client/failures';
import { ageText, definePage, numberText, type Row, warn } from '../page';
import { foreign } from '../text';
import { count } from './queue-list';

/** Events after which there are more failures, or fewer. */
const FAILED = /^job\.(failed|discarded|retrying|expired)$/;

export const failures = definePage<FailureGroups>({
  id: 'failures',
  title: 'Failures',
  key: 'f',
  scope: 'admin:read',
  states: ['dead', 'discarded', 'retrying'],
  load: (api, { state }) => api.get(`/admin/failures?limit=200${state ? `&state=${state}` : ''}`),
  show: ({ items, total, searched, more }, _, now) => ({
    facts: more ? [{ name: 'searched', value: warn(`the newest ${numberText(searched)} jobs; there are more`) }] : [],
    columns: [
      { label: 'JOBS', end: true, rank: 0 },
      { label: 'DEAD', end: true, rank: 3 },
      { label: 'RETRYING', end: true, rank: 4 },
      { label: 'TYPE', rank: 0, most: 28 },
      { label: 'QUEUES', rank: 5, most: 20 },
      { label: 'FIRST', end: true, rank: 6 },
      { label: 'LAST', end: true, rank: 2 },
      { label: 'ERROR', rank: 0 },
    ],
    rows: items.map((group) => groupRow(group, now)),
    total,
    empty: 'No failures.',
  }),
  // To search every queue again at each failure would wake those that sleep.
  hear: (_, events) => ({ newer: events.filter(({ type }) => FAILED.test(type)).length }),
});

function groupRow(group: FailureGroup, now: number): Row {
  const { fingerprint, type, error, dead, retrying, queues, firstSeenAt, lastSeenAt } = group;
  const called = `${group.count} × ${error.type}: ${error.message}`;
  return {
    id: fingerprint,
    thing: { kind: 'group', id: fingerprint, called },
    opens: { page: 'jobs', fingerprint },
    cells: [
      count(group.count, true),
      count(dead),
      count(retrying),
      foreign(type),
      foreign(queues.join(',')),
      ageText(firstSeenAt, now),
      ageText(lastSeenAt, now),
      foreign(`${error.type}: ${error.message}`),
    ],
  };
}
