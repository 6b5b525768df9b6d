import type { Webhook } from '../../../client/webhooks';
import { WEBHOOKS } from '../../views';
import { definePage, listOf, pageQuery } from '../page';

export const webhooks = definePage<{ items: readonly Webhook[]; total: number }>({
  ...{ id: 'webhooks', title: 'Webhooks', key: 'h', scope: 'admin:read' },
  load: (api, place) => api.get(`/webhooks/subscriptions?${pageQuery(place)}`),
  show: ({ items, total }, _, now) => ({
    ...{ facts: [], total, empty: 'No webhooks.' },
    ...listOf(items, WEBHOOKS, now, ({ id, url, active }) => ({
      id,
      thing: { kind: 'webhook', id, called: url, state: active ? 'active' : 'off' },
    })),
  }),
  hear: (_, events) => (events.some(({ type }) => type === 'webhook.disabled') ? { reload: true } : {}),
});
