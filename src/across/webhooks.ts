/** Webhooks with their status, and deliveries of several webhooks in one list. */
import type { Env } from '../config';
import { inParallel } from '../durable/parallel';
import { notFound, unwrap } from '../job/errors';
import { readDeliveryId } from '../notifications/webhook/ids';
import type { Webhook } from '../notifications/webhook/subscription';
import { directoryObject, webhookObject } from '../rpc/stubs';
import type { ChangedWebhook, DeliveriesRequest, Delivery, DeliveryPage, WebhookStats } from '../rpc/webhooks';

export interface WebhookView {
  webhook: Webhook;
  stats: WebhookStats;
  /** Objects that have not received its change yet. */
  untold?: number;
}

export const viewsOf = (env: Env, webhooks: readonly Webhook[]): Promise<WebhookView[]> =>
  inParallel(webhooks, async (webhook) => ({
    webhook,
    stats: await webhookObject(env, webhook.id).webhookStats(),
  }));

/** One webhook. @throws {ApiError} 404 */
export async function readWebhook(env: Env, id: string): Promise<Webhook> {
  const webhook = await directoryObject(env).webhook(id);
  if (!webhook) throw notFound('webhook', id);
  return webhook;
}

/** A webhook after a change. @throws {ApiError} 404, 409 */
export async function viewOfChanged(
  env: Env,
  change: Promise<Parameters<typeof unwrap<ChangedWebhook>>[0]>,
): Promise<WebhookView> {
  const { webhook, untold } = unwrap(await change);
  const [view] = await viewsOf(env, [webhook]);
  return { ...(view as WebhookView), untold };
}

/** Deliveries, newest first: of one webhook, or of all. */
export async function listDeliveries(
  env: Env,
  request: DeliveriesRequest,
  subscription?: string,
): Promise<DeliveryPage> {
  if (subscription !== undefined) return webhookObject(env, subscription).deliveries(request);
  const webhooks = await directoryObject(env).webhooks();
  // Each may have all that the page shows.
  const limit = request.offset + request.limit;
  const pages = await inParallel(webhooks, ({ id }) =>
    webhookObject(env, id).deliveries({ ...request, offset: 0, limit }),
  );
  const all = pages.flatMap(({ deliveries }) => deliveries).sort((a, b) => (a.event_id < b.event_id ? 1 : -1));
  return {
    deliveries: all.slice(request.offset, limit),
    total: pages.reduce((sum, { total }) => sum + total, 0),
  };
}

export const findDelivery = (env: Env, id: string): Promise<Delivery> =>
  withDelivery(env, id, (sender, event) => sender.delivery(event));

/** Delivers once more, at once. @throws {ApiError} 404 */
export const redeliver = (env: Env, id: string): Promise<Delivery> =>
  withDelivery(env, id, (sender, event) => sender.redeliver(event));

async function withDelivery(
  env: Env,
  id: string,
  act: (sender: ReturnType<typeof webhookObject>, event: string) => Promise<Delivery | null>,
): Promise<Delivery> {
  const named = readDeliveryId(id);
  const found = named && (await act(webhookObject(env, named.webhook), named.event));
  if (!found) throw notFound('delivery', id);
  return found;
}
