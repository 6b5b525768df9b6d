/**
 * One webhook in its own object: sends notices until they arrive, and keeps the log, so a slow receiver delays
 * nothing else. `notifications/webhook/schedule` decides about retries; `dispatch/health` limits an unresponsive
 * receiver to one delivery at a time.
 */
import { v7 as uuidv7 } from 'uuid';
import { renderEvent } from '../../across/feed/written';
import { TargetHealth } from '../../dispatch/health';
import { MAX_CONNECTIONS } from '../../dispatch/remote';
import { sendWebhook, type WebhookAttempt } from '../../dispatch/webhook';
import { derived, type MessageKind, OutboxRelay, type RelayHost } from '../../durable/outbox-relay';
import type { Schema } from '../../durable/schema';
import type { After } from '../../durable/timers';
import { waitAtMost } from '../../durable/wait';
import { defined } from '../../job/envelope/fields';
import { notFound, type Outcome } from '../../job/errors';
import { bodyIn } from '../../notifications/webhook/form';
import { deliveryOf } from '../../notifications/webhook/ids';
import { DISABLE_AFTER_MS, verdictOn } from '../../notifications/webhook/schedule';
import { type Disabled, secretsAt, type Webhook } from '../../notifications/webhook/subscription';
import type { DirectoryApi } from '../../rpc/directory';
import type { DeliveriesRequest, Delivery, DeliveryPage, Notice, TestAnswer, WebhookStats } from '../../rpc/webhooks';
import { Deliveries, type LoggedDelivery, type Sendable } from './deliveries';

/** Attempts at once: a test always finds a connection. */
const WIDTH = MAX_CONNECTIONS - 1;

/** The alarm waits at most this long for running deliveries, ms; then the next one continues. */
const ALARM_WAITS_MS = 25_000;

const WEBHOOK = 'webhook';
const FAILING = 'webhook_failing';

interface Known {
  webhook: Webhook;
  /** It was given up here, and the directory was not notified yet. */
  untold?: true;
}

export interface SenderHost extends RelayHost {
  readonly storage: Pick<DurableObjectStorage, 'sql' | 'transactionSync'>;
  readonly after: After;
  /** In [0, 1). */
  random(): number;
  readonly directory: Pick<DirectoryApi, 'webhook' | 'webhookDisabled'>;
  /** May receivers be on this machine? */
  allowsLoopback(): boolean;
  /** Leaves nothing behind. */
  reset(): Promise<void>;
}

export class WebhookSender {
  private readonly deliveries: Deliveries;
  private readonly relay: OutboxRelay;
  private readonly health = new TargetHealth();
  private known: Known | undefined;
  private failingSince: number | undefined;
  private isLoaded = false;

  constructor(
    private readonly host: SenderHost,
    private readonly tables: Schema,
  ) {
    this.deliveries = new Deliveries(host.storage);
    const disabled = derived({
      kind: 'end of webhook',
      open: () => (this.load()?.untold ? ['directory'] : []),
      deliver: () => this.tellDisabled(),
    });
    this.relay = new OutboxRelay([this.sending(), disabled], host, { width: WIDTH });
  }

  /** When it must next act, epoch ms. */
  due(now: number): number | undefined {
    return this.load() ? this.relay.due(now) : undefined;
  }

  /** The alarm has fired: sends what is due, and waits a while for that. Never rejects. */
  async alarm(): Promise<void> {
    if (!this.load()) return;
    this.relay.startAnew();
    await waitAtMost(this.host.after, ALARM_WAITS_MS, this.relay.idle());
  }

  /** The object is being emptied: nothing more is sent, and nothing written. */
  close(): void {
    this.known = undefined;
    this.isLoaded = true;
    this.relay.close();
  }

  // ---- the webhook -----------------------------------------------------------------------------

  /** Its new state; null: it was deleted. */
  async configure(webhook: Webhook | null): Promise<void> {
    if (webhook === null) return this.host.reset();
    const before = this.load()?.webhook;
    if (before && before.version >= webhook.version) return;
    this.store({ webhook });
    // An operator has changed it: earlier failures do not count.
    if (webhook.active) this.setFailing(undefined);
    this.goOn();
  }

  private load(): Known | undefined {
    if (!this.isLoaded && this.tables.exist()) {
      this.known = this.tables.fact(WEBHOOK);
      this.failingSince = this.tables.fact(FAILING);
      this.isLoaded = true;
    }
    return this.known;
  }

  private store(known: Known): void {
    this.tables.writeFact(WEBHOOK, known);
    this.isLoaded = true;
    this.known = known;
  }

  /** The webhook; asks the directory if it is unknown here. Undefined: there is none. */
  private async find(id: string): Promise<Webhook | undefined> {
    const here = this.load()?.webhook;
    if (here) return here;
    const webhook = await this.host.directory.webhook(id);
    if (webhook && !this.load()) this.store({ webhook });
    return this.load()?.webhook;
  }

  // ---- notices and deliveries ------------------------------------------------------------------

  /** Takes notices to deliver. A deleted webhook takes none. */
  async take(id: string, notices: readonly Notice[]): Promise<void> {
    if (!(await this.find(id))) return;
    this.deliveries.add(notices, this.host.now());
    this.goOn();
  }

  stats(): WebhookStats {
    if (!this.load()) return { success_count: 0, failure_count: 0, pending_count: 0 };
    const { failingSince } = this;
    return { ...this.deliveries.stats(), ...(failingSince !== undefined && { failing_since: failingSince }) };
  }

  page(request: DeliveriesRequest): DeliveryPage {
    const known = this.load();
    if (!known) return { deliveries: [], total: 0 };
    const { deliveries, total } = this.deliveries.page(request);
    return { deliveries: deliveries.map((one) => named(known.webhook.id, one)), total };
  }

  delivery(event: string): Delivery | null {
    const known = this.load();
    const found = known && this.deliveries.find(event);
    return found ? named(known.webhook.id, found) : null;
  }

  /** Delivers once more, from the first attempt on. */
  redeliver(event: string): Delivery | null {
    if (!this.load() || !this.deliveries.again(event, this.host.now())) return null;
    this.goOn();
    return this.delivery(event);
  }

  /** Sends a test, which is not kept. */
  async test(id: string): Promise<Outcome<TestAnswer>> {
    const webhook = await this.find(id);
    if (!webhook) return { ok: false, error: notFound('webhook', id).data };
    const event = `evt_${uuidv7()}`;
    const data = { message: 'This is a test.' };
    const shown = renderEvent({ id: event, type: TEST_EVENT, queue: '', subject: id, time: this.host.now(), data });
    const body = JSON.stringify(shown);
    const attempt = await this.send(webhook, { event, type: TEST_EVENT, body, tries: 0 });
    const { status, error, duration_ms, response } = attempt;
    const success = status !== undefined && status >= 200 && status < 300;
    const result = defined({ status_code: status, error });
    return { ok: true, value: { success, ...result, response_time_ms: duration_ms, response_body: response } };
  }

  private goOn(): void {
    this.relay.start();
    const due = this.relay.due(this.host.now());
    if (due !== undefined) this.host.wakeAt(due);
  }

  // ---- sending ---------------------------------------------------------------------------------

  private sending(): MessageKind<void> {
    const isOpen = () => this.load()?.webhook.active === true;
    return {
      kind: 'delivery of',
      due: (now, except, limit) => {
        if (!isOpen() || !this.health.allows(now)) return [];
        // A receiver that did not answer recently is tried with a single delivery.
        return this.deliveries.due(now, except, this.health.isStopped ? 1 : limit);
      },
      nextAt: (except) => {
        if (!isOpen()) return Number.POSITIVE_INFINITY;
        return Math.max(this.deliveries.nextAt(except), this.health.resumesAt(this.host.now()) ?? 0);
      },
      deliver: (event) => this.deliver(event),
    };
  }

  private async deliver(event: string): Promise<void> {
    const webhook = this.load()?.webhook;
    const sendable = this.deliveries.sendable(event);
    if (!webhook?.active || !sendable) return;
    // Since the check for work the receiver may have failed with another delivery.
    if (!this.health.allows(this.host.now())) return;
    this.health.started();
    try {
      this.settle(sendable, await this.send(webhook, sendable));
    } finally {
      this.health.trialEnded();
    }
  }

  private send(webhook: Webhook, { event, type, body }: Sendable): Promise<WebhookAttempt> {
    const call = {
      url: webhook.url,
      id: deliveryOf(webhook.id, event),
      subscription: webhook.id,
      eventType: type,
      body: bodyIn(webhook.format, body),
      secrets: secretsAt(webhook, this.host.now()),
    };
    const { host } = this;
    const world = { fetch: (request: Request) => fetch(request), now: () => host.now(), after: host.after };
    return sendWebhook(call, { loopback: host.allowsLoopback() }, world);
  }

  private settle({ event, tries }: Sendable, attempt: WebhookAttempt): void {
    const { host } = this;
    // It was deleted meanwhile.
    if (!this.load()) return;
    const now = host.now();
    const verdict = verdictOn(attempt, tries + 1, host.random());
    const { at, status, error, duration_ms, response } = attempt;
    const result = defined({ at, status_code: status, error, duration_ms, response });
    host.storage.transactionSync(() => {
      this.deliveries.settle(event, result, verdict, now);
      this.note(verdict.state === 'delivered', now);
      if (verdict.state === 'failed' && verdict.isGone) this.disable({ reason: 'gone', at: now });
    });
    // Only failures that a retry may cure show that the receiver is unhealthy.
    if (verdict.state === 'pending' || verdict.state === 'dead') this.health.failed(now, error);
    else this.health.succeeded();
  }

  /** How long has every attempt failed? */
  private note(isSuccess: boolean, now: number): void {
    this.setFailing(isSuccess ? undefined : (this.failingSince ?? now));
    if (now - (this.failingSince ?? now) >= DISABLE_AFTER_MS) this.disable({ reason: 'failing', at: now });
  }

  private setFailing(since: number | undefined): void {
    if (this.failingSince === since) return;
    this.tables.writeFact(FAILING, since);
    this.failingSince = since;
  }

  /** Waiting deliveries are kept until an operator makes the webhook active again. */
  private disable(disabled: Disabled): void {
    const known = this.load();
    if (!known?.webhook.active) return;
    this.store({ webhook: { ...known.webhook, active: false, disabled }, untold: true });
  }

  private async tellDisabled(): Promise<void> {
    const { webhook } = this.load() ?? {};
    if (!webhook?.disabled) return;
    await this.host.directory.webhookDisabled(webhook.id, webhook.disabled, webhook.version);
    const now = this.load();
    if (now?.webhook.version === webhook.version) this.store({ webhook: now.webhook });
  }
}

const TEST_EVENT = 'webhook.test';

function named(webhook: string, delivery: LoggedDelivery): Delivery {
  return { id: deliveryOf(webhook, delivery.event_id), subscription_id: webhook, ...delivery };
}
