/**
 * Ids of subscriptions and deliveries. That of a delivery names both its subscription and its event, so no index leads
 * to it.
 */
import { isUuidV7 } from '../ids';

const WEBHOOK = 'wh_';
const DELIVERY = 'whd_';
const EVENT = 'evt_';

/** @param uuid a UUIDv7 */
export function webhookId(uuid: string): string {
  return WEBHOOK + uuid;
}

export function isWebhookId(id: string): boolean {
  return id.startsWith(WEBHOOK) && isUuidV7(id.slice(WEBHOOK.length));
}

/** The id of an event's delivery to a subscription. */
export function deliveryOf(webhook: string, event: string): string {
  return `${DELIVERY}${webhook.slice(WEBHOOK.length)}_${event.slice(EVENT.length)}`;
}

/** What the id of a delivery names; undefined when it is none. */
export function readDeliveryId(id: string): { webhook: string; event: string } | undefined {
  if (!id.startsWith(DELIVERY)) return undefined;
  const [webhook = '', event = '', ...more] = id.slice(DELIVERY.length).split('_');
  if (more.length > 0 || !isUuidV7(webhook) || !isUuidV7(event)) return undefined;
  return { webhook: WEBHOOK + webhook, event: EVENT + event };
}
