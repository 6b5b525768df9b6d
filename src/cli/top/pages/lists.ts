import type { AuditEntry } from '../../../client/audit';
import type { CronStatus } from '../../../client/cron-entry';
import type { RateLimitStatus } from '../../../client/rate-limits';
import type { Webhook } from '../../../client/webhooks';
import type { WorkflowSummary } from '../../../client/workflows';
import { ago, type Column, CRONS, LIMITS, WEBHOOKS, WORKFLOWS } from '../../views';
import { bad, definePage, listOf, type Page, pageQuery, type Row } from '../page';
import { valueText } from '../text';

interface ListPage<Item> extends Pick<Page<unknown>, 'id' | 'title' | 'key' | 'scope' | 'states'> {
  path: string;
  columns: readonly Column<Item>[];
  row: (item: Item) => Omit<Row, 'cells'>;
  empty: string;
  /** Types of the events after which the list is read again. */
  changedBy?: RegExp;
}

const listPage = <Item>({ path, columns, row, empty, changedBy, ...page }: ListPage<Item>): Page<unknown> =>
  definePage<{ items: readonly Item[]; total: number }>({
    ...page,
    load: async (api, place) => {
      type Answer = { items: readonly Item[]; pagination: { total: number } };
      const { items, pagination } = await api.get<Answer>(`${path}?${pageQuery(place, { state: place.state })}`);
      return { items, total: pagination.total };
    },
    show: ({ items, total }, _, now) => ({ facts: [], total, empty, ...listOf(items, columns, now, row) }),
    ...(changedBy && {
      receive: (_, events) => (events.some(({ type }) => changedBy.test(type)) ? { reload: true } : {}),
    }),
  });

export const schedules = listPage<CronStatus>({
  ...{ id: 'schedules', title: 'Schedules', key: 's', scope: 'data:read' },
  ...{ path: '/crons', columns: CRONS, empty: 'No schedules.', changedBy: /^cron\./ },
  row: ({ name, status, lastJobId }) => ({
    id: name,
    thing: { kind: 'schedule', id: name, state: status },
    ...(lastJobId !== undefined && { opens: { page: 'job', name: lastJobId } }),
  }),
});

export const workflows = listPage<WorkflowSummary>({
  ...{ id: 'workflows', title: 'Workflows', key: 'w', scope: 'data:read' },
  states: ['running', 'completed', 'failed', 'cancelled'],
  ...{ path: '/workflows', columns: WORKFLOWS, empty: 'No workflows.', changedBy: /^workflow\./ },
  row: ({ id, name, state }) => ({
    id,
    thing: { kind: 'workflow', id, called: name || id, state },
    opens: { page: 'workflow', name: id },
  }),
});

export const limits = listPage<RateLimitStatus>({
  ...{ id: 'limits', title: 'Limits', key: 'l', scope: 'data:read', path: '/rate-limits' },
  columns: [...LIMITS, ['QUEUES', ({ queues }) => queues.map(({ queue }) => queue).join(','), { rank: 4, most: 40 }]],
  row: ({ key }) => ({ id: key }),
  empty: 'No limit keys in use.',
});

export const webhooks = listPage<Webhook>({
  ...{ id: 'webhooks', title: 'Webhooks', key: 'h', scope: 'admin:read', path: '/webhooks/subscriptions' },
  ...{ columns: WEBHOOKS, empty: 'No webhooks.', changedBy: /^webhook\.disabled$/ },
  row: ({ id, url, active }) => ({
    id,
    thing: { kind: 'webhook', id, called: url, state: active ? 'active' : 'off' },
  }),
});

export const audit = listPage<AuditEntry>({
  ...{ id: 'audit', title: 'Audit', key: 'a', scope: 'admin:read', path: '/admin/audit' },
  columns: [
    ['WHEN', ({ at }, now) => ago(at, now), { end: true }],
    ['WHO', ({ actor }) => actor.name ?? actor.keyHint ?? 'anybody', { most: 24 }],
    ['ROLE', ({ actor }) => actor.role, { rank: 3 }],
    ['ACTION', ({ action }) => action],
    ['TARGET', ({ target }) => target, { rank: 1, most: 40 }],
    ['JOBS', ({ count }) => count, { rank: 2, end: true }],
    ['STATUS', ({ status }) => (status >= 400 ? bad(String(status)) : String(status)), { rank: 4, end: true }],
    ['FILTER', ({ filter }) => (filter === null ? '' : valueText(filter)), { rank: 5, most: 40 }],
    ['REASON', ({ reason }) => reason, { rank: 6 }],
  ],
  row: ({ id }) => ({ id }),
  empty: 'No changes by operators.',
});
