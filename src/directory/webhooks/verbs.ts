import { v7 as uuidv7 } from 'uuid';
import type { Verbs } from '../../durable/answering';
import { conflict, type Outcome, outcomeOf } from '../../job/errors';
import type { AlertMembers } from '../../notifications/alert/parse';
import type { AlertState } from '../../notifications/alert/rule';
import { webhookId } from '../../notifications/webhook/ids';
import type { DeclarableWebhook, Webhook } from '../../notifications/webhook/subscription';
import type { ChangedWebhook, DeliveriesRequest, Notice, WebhookChange } from '../../rpc/webhooks';
import type { AlertList } from '../alerts';
import type { Webhooks } from './list';

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

export const WEBHOOK_VERBS = {
  webhooks: ({ webhooks }) => [...webhooks.list.all()],
  webhook: ({ webhooks }, id: string) => webhooks.list.find(id) ?? null,
  /** 409 when there are too many. */
  createWebhook: (life, members: DeclarableWebhook, secret: string) =>
    change(life, (now) => life.webhooks.list.create(webhookId(uuidv7()), members, secret, now)),
  /** Replaces the members that are given; null removes one. 404. */
  changeWebhook: (life, id: string, members: WebhookChange) =>
    change(life, (now) => life.webhooks.list.change(id, members, now)),
  /** Each former secret signs for another day. 404; 409 when too many do. */
  rotateWebhook: (life, id: string, secret: string) =>
    change(life, (now) => life.webhooks.list.rotate(id, secret, now)),
  /** Whatever waits to be delivered is dropped. 409 while alert rules name it. @returns whether there was one */
  deleteWebhook: async (life, id: string) => {
    const removed = outcomeOf(() => {
      const alerts = life.alerts.telling(id);
      if (alerts.length === 0) return life.webhooks.list.remove(id, Date.now());
      throw conflict('Alert rules notify only this subscription.', { alerts }, 'Change or delete these rules first.');
    });
    if (removed.ok && removed.value) await life.spreadWebhooks();
    return removed;
  },
  /** The object of a subscription has given its receiver up. */
  webhookDisabled: (life, id: string, disabled: NonNullable<Webhook['disabled']>, version: number) => {
    const now = Date.now();
    const webhook = life.webhooks.list.disable(id, disabled, version, now);
    if (webhook) life.webhooks.disabled(webhook, now);
  },

  /** How it is from now on; null: it was deleted, and with it whatever waits. An older version changes nothing. */
  configureWebhook: ({ webhooks: { sender } }, webhook: Webhook | null) => sender.configure(webhook),
  /** Takes notices to deliver. Each notice is delivered once, however often it arrives. */
  takeNotices: ({ webhooks: { sender } }, id: string, notices: Notice[]) => sender.take(id, notices),
  webhookStats: ({ webhooks: { sender } }) => sender.stats(),
  deliveries: ({ webhooks: { sender } }, request: DeliveriesRequest) => sender.page(request),
  /** By the id of its event. */
  delivery: ({ webhooks: { sender } }, event: string) => sender.delivery(event),
  /** Delivers once more, at once. null: there is no such delivery. */
  redeliver: ({ webhooks: { sender } }, event: string) => sender.redeliver(event),
  /** Sends a test, whether the subscription is active or not. 404. */
  testWebhook: ({ webhooks: { sender } }, id: string) => sender.test(id),
} satisfies Verbs<WebhookLife>;

export const ALERT_VERBS = {
  alerts: ({ alerts }) => alerts.all(),
  alert: ({ alerts }, id: string) => alerts.find(id) ?? null,
  /** 409 when there are too many; 400 when the subscription does not exist. */
  createAlert: (life, members: AlertMembers) =>
    spreading(life, (now) => life.alerts.create(`al_${uuidv7()}`, members, now)),
  /** 404, 400. */
  changeAlert: (life, id: string, members: AlertMembers) =>
    spreading(life, (now) => life.alerts.change(id, members, now)),
  /** @returns whether there was one */
  deleteAlert: async (life, id: string) => {
    const existed = life.alerts.remove(id, Date.now());
    if (existed) await life.spread();
    return existed;
  },
  /** A queue tells how a rule stands there. */
  noteAlert: ({ alerts }, id: string, queue: string, state: AlertState) => alerts.note(id, queue, state),
} satisfies Verbs<WebhookLife>;

/** Makes a change, then notifies the queues. */
export const spreading = <T extends object>(life: Pick<WebhookLife, 'spread'>, change: (now: number) => T) =>
  changing(change, () => life.spread());

/** Makes a change, then notifies the objects concerned. @param spread returns how many have not confirmed yet */
async function changing<T extends object>(
  change: (now: number) => T,
  spread: () => Promise<number>,
): Promise<Outcome<T & { untold: number }>> {
  const changed = outcomeOf(() => change(Date.now()));
  return changed.ok ? { ok: true, value: { ...changed.value, untold: await spread() } } : changed;
}
