/** What the directory, and the object of a subscription, answer about webhooks. */
import { v7 as uuidv7 } from 'uuid';
import type { Verbs } from '../../durable/answering';
import { type Outcome, outcomeOf } from '../../job/errors';
import { webhookId } from '../../job/webhook/ids';
import type { Webhook } from '../../job/webhook/subscription';
import type { ChangedWebhook, WebhookListApi, WebhookSenderApi } from '../../rpc/webhooks';
import type { Webhooks } from './part';

/** What stands behind them. */
export interface WebhookLife {
  readonly webhooks: Pick<Webhooks, 'list' | 'sender' | 'disabled'>;
  /** Tells whom it concerns, and waits a moment for that. @returns how many have not confirmed yet */
  spreadWebhooks(): Promise<number>;
}

async function change(life: WebhookLife, write: (now: number) => Webhook): Promise<Outcome<ChangedWebhook>> {
  const changed = outcomeOf(() => write(Date.now()));
  return changed.ok ? { ok: true, value: { webhook: changed.value, untold: await life.spreadWebhooks() } } : changed;
}

export const WEBHOOK_VERBS: Verbs<WebhookLife, WebhookListApi & WebhookSenderApi> = {
  webhooks: ({ webhooks }) => [...webhooks.list.all()],
  webhook: ({ webhooks }, id) => webhooks.list.find(id) ?? null,
  createWebhook: (life, members, secret) =>
    change(life, (now) => life.webhooks.list.create(webhookId(uuidv7()), members, secret, now)),
  changeWebhook: (life, id, members) => change(life, (now) => life.webhooks.list.change(id, members, now)),
  rotateWebhook: (life, id, secret) => change(life, (now) => life.webhooks.list.rotate(id, secret, now)),
  deleteWebhook: async (life, id) => {
    const existed = life.webhooks.list.remove(id, Date.now());
    if (existed) await life.spreadWebhooks();
    return existed;
  },
  webhookDisabled: (life, id, disabled, version) => {
    const now = Date.now();
    const webhook = life.webhooks.list.disable(id, disabled, version, now);
    if (webhook) life.webhooks.disabled(webhook, now);
  },

  configureWebhook: ({ webhooks: { sender } }, webhook) => sender.configure(webhook),
  takeNotices: ({ webhooks: { sender } }, id, notices) => sender.take(id, notices),
  webhookStats: ({ webhooks: { sender } }) => sender.stats(),
  deliveries: ({ webhooks: { sender } }, request) => sender.page(request),
  delivery: ({ webhooks: { sender } }, event) => sender.delivery(event),
  redeliver: ({ webhooks: { sender } }, event) => sender.redeliver(event),
  testWebhook: ({ webhooks: { sender } }, id) => sender.test(id),
};
