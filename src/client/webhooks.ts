import type * as contract from '../contract/webhooks';
import type { Named } from '../producer/names';
import { member, shaped } from './answers';
import { byOffset, collection, type ListOptions, matching } from './pages';
import { pathTo, type Requests } from './requests';

/** A message for Slack, an event for PagerDuty's Events API v2, or JSON of your own with placeholders. */
export type { WebhookFormat } from '../notifications/webhook/parse';

export type WebhookOptions = Omit<Named<contract.WebhookRequest>, 'secret'>;

export type Webhook = Named<contract.Webhook>;

/** An event on its way to a subscription. */
export type WebhookDelivery = Named<contract.WebhookDelivery>;

/** What a receiver answered to a test. */
export type WebhookTest = Named<contract.WebhookTest>;

const ALL = '/webhooks/subscriptions';

/** Webhooks, as `tocsin.webhooks`. Needs `admin:read`, and `admin:write` to change them. */
export interface Webhooks {
  /** Every subscription, read page by page. */
  list(options?: ListOptions): AsyncGenerator<Webhook>;
  /** @throws {NotFoundError} */
  get(id: string): Promise<Webhook>;
  /**
   * Subscribes. The secret that signs is in this answer, and never again.
   * @param webhook `secret`: one of your own; default: a new one
   * @throws {InvalidJobError} for a URL that may not be called, or an event that does not exist
   * @example
   * const url = 'https://ops.example/tocsin';
   * const { id, secret } = await tocsin.webhooks.create({ url, events: ['job.discarded'] });
   */
  create(webhook: WebhookOptions & { secret?: string }): Promise<Webhook & { secret: string }>;
  /** Changes the members that are named; `null` removes one. @throws {NotFoundError} {@link InvalidJobError} */
  change(id: string, change: Partial<WebhookOptions>): Promise<Webhook>;
  /** Unsubscribes and drops pending deliveries. @throws {NotFoundError} {@link ConflictError} an alert rule needs it */
  delete(id: string): Promise<void>;
  /** Sends `webhook.test` once, also while inactive; the answer reports a failing receiver. @throws {NotFoundError} */
  test(id: string): Promise<WebhookTest>;
  /** Makes another secret; the former one signs as well for a day. @throws {NotFoundError} */
  rotateSecret(id: string, secret?: string): Promise<string>;
  /** Deliveries, the newest first. Those that come meanwhile may shift the pages. */
  deliveries(
    query?: { subscription?: string; status?: WebhookDelivery['status'] },
    options?: ListOptions,
  ): AsyncGenerator<WebhookDelivery>;
  /** @throws {NotFoundError} */
  delivery(id: string): Promise<WebhookDelivery>;
  /** Delivers an event again at once, under the same id. @throws {NotFoundError} */
  redeliver(id: string): Promise<WebhookDelivery>;
}

export function createWebhooks(requests: Requests): Webhooks {
  const { once, safely } = requests;
  return {
    ...collection(requests, ALL, 'subscriptions', webhookIn),
    create: async (webhook) => {
      const answer = await once('POST', ALL, bodyOf(webhook));
      return { ...webhookIn(answer), secret: secretIn(answer) };
    },
    change: async (id, change) => webhookIn(await safely('PATCH', ALL + pathTo`/${id}`, bodyOf(change))),
    test: async (id) => shaped<WebhookTest>(await once('POST', ALL + pathTo`/${id}/test`), 'success', 'the outcome'),
    rotateSecret: async (id, secret) =>
      secretIn(await once('POST', ALL + pathTo`/${id}/rotate-secret`, bodyOf({ secret }))),
    deliveries: (query = {}, options = {}) => {
      const conditions = matching(query, { subscription: true, status: true });
      return byOffset(safely, { path: '/webhooks/deliveries', conditions, member: 'deliveries' }, options);
    },
    delivery: async (id) => deliveryIn(await safely('GET', pathTo`/webhooks/deliveries/${id}`)),
    redeliver: async (id) => deliveryIn(await once('POST', pathTo`/webhooks/deliveries/${id}/retry`)),
  };
}

/** All other names are single words, and those in `metadata` and templates are the user's. */
const bodyOf = ({ routingKey, ...rest }: Partial<WebhookOptions> & { secret?: string | undefined }): string =>
  JSON.stringify({ ...rest, routing_key: routingKey });

const webhookIn = (answer: unknown) => shaped<Webhook>(member(answer, 'subscription'), 'id', 'the subscription');

const secretIn = (answer: unknown) => shaped<{ secret: string }>(answer, 'secret', 'the secret').secret;

const deliveryIn = (answer: unknown) =>
  shaped<{ delivery: WebhookDelivery }>(answer, 'delivery', 'the delivery').delivery;
