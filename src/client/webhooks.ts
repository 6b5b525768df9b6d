import type * as contract from '../contract/webhooks';
import type { Named } from '../producer/names';
import { member, shaped } from './answers';
import { checked } from './conditions';
import { byCursor, byOffset, type ListOptions, parametersFrom } from './pages';
import type { Requests } from './requests';
import { pathTo } from './transport';

/** A message for Slack, an event for PagerDuty's Events API v2, or JSON of your own with placeholders. */
export type { WebhookFormat } from '../job/webhook/parse';

export type WebhookOptions = Omit<Named<contract.WebhookRequest>, 'secret'>;

export type Webhook = Named<contract.Webhook>;

/** An event on its way to a subscription. */
export type WebhookDelivery = Named<contract.WebhookDelivery>;

/** What a receiver answered to a test. */
export type WebhookTest = Named<contract.WebhookTest>;

const ALL = '/webhooks/subscriptions';

/** Webhooks, as `tocsin.webhooks`. Needs `admin:read`, and `admin:write` to change them. */
export class Webhooks {
  constructor(private readonly requests: Requests) {}

  /** Every subscription, read page by page. */
  async *list(options: ListOptions = {}): AsyncGenerator<Webhook> {
    yield* byCursor<Webhook>(this.requests.safely, { path: ALL, member: 'subscriptions' }, options);
  }

  /** @throws {NotFoundError} */
  async get(id: string): Promise<Webhook> {
    return webhookIn(await this.requests.safely('GET', pathTo`/webhooks/subscriptions/${id}`));
  }

  /**
   * Subscribes. The secret that signs is in this answer, and never again.
   * @param webhook `secret`: one of your own; default: a new one
   * @throws {InvalidJobError} for a URL that may not be called, or an event that does not exist
   * @example
   * const url = 'https://ops.example/tocsin';
   * const { id, secret } = await tocsin.webhooks.create({ url, events: ['job.discarded'] });
   */
  async create(webhook: WebhookOptions & { secret?: string }): Promise<Webhook & { secret: string }> {
    const answer = await this.requests.once('POST', ALL, bodyOf(webhook));
    return { ...webhookIn(answer), ...secretIn(answer) };
  }

  /** Changes the members that are named; `null` removes one. @throws {NotFoundError} {@link InvalidJobError} */
  async change(id: string, change: Partial<WebhookOptions>): Promise<Webhook> {
    return webhookIn(await this.requests.safely('PATCH', pathTo`/webhooks/subscriptions/${id}`, bodyOf(change)));
  }

  /** Unsubscribes and drops pending deliveries. @throws {NotFoundError} {@link ConflictError} an alert rule needs it */
  async delete(id: string): Promise<void> {
    await this.requests.remove(pathTo`/webhooks/subscriptions/${id}`);
  }

  /** Sends `webhook.test` once, also while inactive; the answer reports a failing receiver. @throws {NotFoundError} */
  async test(id: string): Promise<WebhookTest> {
    const answer = await this.requests.once('POST', pathTo`/webhooks/subscriptions/${id}/test`);
    return shaped<WebhookTest>(answer, 'success', 'the outcome');
  }

  /** Makes another secret; the former one signs as well for a day. @throws {NotFoundError} */
  async rotateSecret(id: string, secret?: string): Promise<string> {
    const path = pathTo`/webhooks/subscriptions/${id}/rotate-secret`;
    return secretIn(await this.requests.once('POST', path, bodyOf({ secret }))).secret;
  }

  /** Deliveries, the newest first. Those that come meanwhile may shift the pages. */
  async *deliveries(
    query: { subscription?: string; status?: WebhookDelivery['status'] } = {},
    options: ListOptions = {},
  ): AsyncGenerator<WebhookDelivery> {
    const list = {
      path: '/webhooks/deliveries',
      conditions: parametersFrom({ ...checked(query, { subscription: true, status: true }) }),
      member: 'deliveries',
    };
    yield* byOffset<WebhookDelivery>(this.requests.safely, list, options);
  }

  /** @throws {NotFoundError} */
  async delivery(id: string): Promise<WebhookDelivery> {
    const answer = await this.requests.safely('GET', pathTo`/webhooks/deliveries/${id}`);
    return shaped<{ delivery: WebhookDelivery }>(answer, 'delivery', 'the delivery').delivery;
  }

  /** Delivers an event again at once, under the same id. @throws {NotFoundError} */
  async redeliver(id: string): Promise<WebhookDelivery> {
    const answer = await this.requests.once('POST', pathTo`/webhooks/deliveries/${id}/retry`);
    return shaped<{ delivery: WebhookDelivery }>(answer, 'delivery', 'the delivery').delivery;
  }
}

/** All other names are single words, and those in `metadata` and templates are the user's. */
const bodyOf = (content: Partial<WebhookOptions> & { secret?: string | undefined }): string => {
  const { routingKey, ...rest } = content;
  return JSON.stringify({ ...rest, routing_key: routingKey });
};

const webhookIn = (answer: unknown): Webhook =>
  shaped<Webhook>(member(answer, 'subscription'), 'id', 'the subscription');

const secretIn = (answer: unknown): { secret: string } => ({
  secret: shaped<{ secret: string }>(answer, 'secret', 'the secret').secret,
});
