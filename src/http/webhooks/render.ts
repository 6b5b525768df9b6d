/** Webhooks and deliveries for clients. */

import type { WebhookView } from '../../across/webhooks';
import { WEBHOOK_SECRETS, type Webhook, type WebhookAnswer, type WebhookDelivery } from '../../contract/webhooks';
import { defined, given } from '../../job/envelope/fields';
import { withoutSecrets } from '../../job/secrets';
import { formatInstant } from '../../job/time';
import type { Delivery } from '../../rpc/webhooks';
import { pendingQueues } from '../queues/render';

/** A webhook, without its secret. @param revealed may the caller see the other secrets in it? */
export function renderWebhook({ webhook, stats }: WebhookView, revealed: boolean): Webhook {
  const { filter, metadata, disabled } = webhook;
  const shown: Webhook = defined({
    id: webhook.id,
    url: webhook.url,
    events: webhook.events,
    filter: filter && { ...filter, ...(filter.types && { job_types: filter.types }) },
    active: webhook.active,
    declared: webhook.declared,
    metadata,
    format: formatOf(webhook),
    created_at: formatInstant(webhook.created_at),
    updated_at: formatInstant(webhook.updated_at),
    last_delivery_at: given(stats.last_delivery_at, formatInstant) ?? null,
    last_delivery_status: stats.last_delivery_status ?? null,
    success_count: stats.success_count,
    failure_count: stats.failure_count,
    pending_count: stats.pending_count,
    failing_since: given(stats.failing_since, formatInstant),
    disabled_reason: disabled?.reason,
    disabled_at: given(disabled?.at, formatInstant),
    former_secret_until: given(webhook.former?.until, formatInstant),
  });
  return revealed ? shown : withoutSecrets(shown, WEBHOOK_SECRETS);
}

/** As a client wrote it, without the key. */
function formatOf({ format }: WebhookView['webhook']): Webhook['format'] {
  return typeof format === 'object' && 'routing_key' in format ? 'pagerduty' : format;
}

/** The answer about one webhook: as a member, and flat for clients that read it flat. */
export function webhookAnswer<More extends object>(view: WebhookView, revealed: boolean, more?: More) {
  const shown = { ...renderWebhook(view, revealed), ...(more as More) };
  return { subscription: shown, ...shown, ...pendingQueues(view.untold) } satisfies WebhookAnswer;
}

/** @param withResponse may the caller see the receiver's answer? */
export function renderDelivery(delivery: Delivery, withResponse: boolean): WebhookDelivery {
  return defined({
    id: delivery.id,
    subscription_id: delivery.subscription_id,
    event_id: delivery.event_id,
    event_type: delivery.event_type,
    job_id: delivery.job_id,
    status: delivery.status,
    attempt: delivery.tries,
    attempts: delivery.attempts.map(({ at, ...attempt }) => ({ at: formatInstant(at), ...attempt })),
    next_attempt_at: given(delivery.next_attempt_at, formatInstant) ?? null,
    created_at: formatInstant(delivery.created_at),
    response_body: withResponse ? delivery.response_body : undefined,
  });
}
