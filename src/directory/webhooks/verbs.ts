/** Verbs about webhooks and alert rules, of the directory and of a webhook's object. */
import { v7 as uuidv7 } from 'uuid';
import type { Verbs } from '../../durable/answering';
import { conflict, type Outcome, outcomeOf } from '../../job/errors';
import { webhookId } from '../../job/webhook/ids';
import type { Webhook } from '../../job/webhook/subscription';
import type { AlertsApi, AlertView, ChangedAlert } from '../../rpc/alerts';
import type { ChangedWebhook, WebhookListApi, WebhookSenderApi } from '../../rpc/webhooks';
import type { AlertList } from '../alerts';
import { changing } from '../changing';
import type { Webhooks } from './part';

/** What these verbs need. */
export interface WebhookLife {
  readonly webhooks: Pick<Webhooks, 'list' | 'sender' | 'disabled'>;
  readonly alerts: AlertList;
  /** Notifies the queues, and waits a moment for that. @returns how many have not confirmed yet */
  spread(): Promise<number>;
  /** Notifies the objects concerned, and waits a moment for that. @returns how many have not confirmed yet */
  spreadWebhooks(): Promise<number>;
}

const change = (life: WebhookLife, write: (now: number) => Webhook): Promise<Outcome<ChangedWebhook>> =>
  changing(
    (now) => ({ webhook: write(now) }),
    () => life.spreadWebhooks(),
  );

export const WEBHOOK_VERBS: Verbs<WebhookLife, WebhookListApi & WebhookSenderApi> = {
  webhooks: ({ webhooks }) => [...webhooks.list.all()],
  webhook: ({ webhooks }, id) => webhooks.list.find(id) ?? null,
  createWebhook: (life, members, secret) =>
    change(life, (now) => life.webhooks.list.create(webhookId(uuidv7()), members, secret, now)),
  changeWebhook: (life, id, members) => change(life, (now) => life.webhooks.list.change(id, members, now)),
  rotateWebhook: (life, id, secret) => change(life, (now) => life.webhooks.list.rotate(id, secret, now)),
  deleteWebhook: async (life, id) => {
    const removed = outcomeOf(() => {
      const alerts = life.alerts.telling(id);
      if (alerts.length === 0) return life.webhooks.list.remove(id, Date.now());
      throw conflict('Alert rules notify only this subscription.', { alerts }, 'Change or delete these rules first.');
    });
    if (removed.ok && removed.value) await life.spreadWebhooks();
    return removed;
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

const changeAlert = (life: WebhookLife, write: (now: number) => AlertView): Promise<Outcome<ChangedAlert>> =>
  changing(write, () => life.spread());

export const ALERT_VERBS: Verbs<WebhookLife, AlertsApi> = {
  alerts: ({ alerts }) => alerts.all(),
  alert: ({ alerts }, id) => alerts.find(id) ?? null,
  createAlert: (life, members) => changeAlert(life, (now) => life.alerts.create(`al_${uuidv7()}`, members, now)),
  changeAlert: (life, id, members) => changeAlert(life, (now) => life.alerts.change(id, members, now)),
  deleteAlert: async (life, id) => {
    const existed = life.alerts.remove(id, Date.now());
    if (existed) await life.spread();
    return existed;
  },
  noteAlert: ({ alerts }, id, queue, state) => alerts.note(id, queue, state),
};
