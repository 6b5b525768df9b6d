/** Ids of subscriptions and deliveries. A delivery's id names both subscription and event, so no index is needed. */
import { isUuidV7 } from '../../job/ids';

const WEBHOOK = 'wh_';
const DELIVERY = 'whd_';
const EVENT = 'evt_';

export const webhookId = (uuid: string): string => WEBHOOK + uuid;

export const isWebhookId = (id: string): boolean => id.startsWith(WEBHOOK) && isUuidV7(id.slice(WEBHOOK.length));

export const deliveryOf = (webhook: string, event: string): string =>
  `${DELIVERY}${webhook.slice(WEBHOOK.length)}_${event.slice(EVENT.length)}`;

/** What the id of a delivery names; undefined when it is none. */
export function readDeliveryId(id: string): { webhook: string; event: string } | undefined {
  if (!id.startsWith(DELIVERY)) return undefined;
  const [webhook = '', event = '', ...more] = id.slice(DELIVERY.length).split('_');
  if (more.length > 0 || !isUuidV7(webhook) || !isUuidV7(event)) return undefined;
  return { webhook: WEBHOOK + webhook, event: EVENT + event };
}
