/** The webhooks, and how their deliveries go. */
import type { Webhook } from '../../../client/webhooks';
import { ageText, definePage, pageQuery, stateCell } from '../page';
import { foreign } from '../text';
import { count } from './queue-list';

export const webhooks = definePage<{ items: readonly Webhook[]; total: number }>({
  id: 'webhooks',
  title: 'Webhooks',
  key: 'h',
  scope: 'admin:read',
  load: (api, place) => api.get(`/webhooks/subscriptions?${pageQuery(place)}`),
  show: ({ items, total }, _, now) => ({
    facts: [],
    columns: [
      { label: 'URL', rank: 0, most: 60 },
      { label: 'STATUS', rank: 0 },
      { label: 'EVENTS', rank: 4, most: 40 },
      { label: 'LAST', end: true, rank: 1 },
      { label: 'SAID', rank: 2 },
      { label: 'SENT', end: true, rank: 5 },
      { label: 'FAILED', end: true, rank: 2 },
      { label: 'PENDING', end: true, rank: 3 },
    ],
    rows: items.map((one) => ({
      id: one.id,
      thing: { kind: 'webhook', id: one.id, called: one.url, state: one.active ? 'active' : 'off' },
      cells: [
        foreign(one.url),
        one.active ? 'on' : stateCell(one.disabledReason ? `off: ${one.disabledReason}` : 'off'),
        foreign(one.events.join(',')),
        ageText(one.lastDeliveryAt, now),
        foreign(String(one.lastDeliveryStatus ?? '')),
        count(one.successCount),
        count(one.failureCount, true),
        count(one.pendingCount),
      ],
    })),
    total,
    empty: 'No webhooks.',
  }),
  hear: (_, events) => (events.some(({ type }) => type === 'webhook.disabled') ? { reload: true } : {}),
});
