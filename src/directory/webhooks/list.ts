/**
 * The list of webhooks. A change is one row; the outbox relay notifies the webhook's object, queues' settings carry
 * the rest. A deleted one stays as an empty row until its object is notified.
 */

import { maskedUrl } from '../../access/secrets';
import { gatherNotices, noticeMessages } from '../../across/feed/notices';
import { allowsOf, type Env } from '../../config';
import type { EventLog, QueueEvent } from '../../durable/event-log';
import { Outbox, STANDBY_MS } from '../../durable/outbox';
import { derived, type MessageKind } from '../../durable/outbox-relay';
import type { Schema } from '../../durable/schema';
import { conflict, notFound } from '../../job/errors';
import {
  type DeclarableWebhook,
  type Disabled,
  rotated,
  routeFor,
  type Webhook,
  type WebhookRoute,
} from '../../notifications/webhook/subscription';
import { directoryObject, webhookObject } from '../../rpc/stubs';
import type { WebhookChange } from '../../rpc/webhooks';
import { type SenderHost, WebhookSender } from './sender';

/** Webhooks of a deployment, and the characters that every queue must remember of them. */
const MAX_WEBHOOKS = 100;
const MAX_ROUTES_CHARS = 128 * 1024;

/** Objects notified of a change at a time. */
const TOLD_AT_ONCE = 20;

type Row = { id: string; told: number; data: string };

export class WebhookList {
  readonly messages: MessageKind<void>;
  /** Kept in memory: they are read for every event of the directory. */
  private known: Webhook[] | undefined;

  constructor(
    private readonly host: Pick<WebhooksHost, 'env' | 'wakeAt' | 'routesChanged'>,
    private readonly tables: Schema,
  ) {
    this.messages = derived({ kind: 'webhook', open: () => this.untold(), deliver: (id) => this.tell(id) });
  }

  /** Every webhook, the oldest first. */
  all(): readonly Webhook[] {
    if (!this.tables.exist()) return [];
    this.known ??= this.tables
      .rows<Row>("SELECT * FROM webhooks WHERE data <> '' ORDER BY id")
      .map(({ data }) => JSON.parse(data));
    return this.known;
  }

  find(id: string): Webhook | undefined {
    return this.all().find((webhook) => webhook.id === id);
  }

  /** The part for a queue; for all queues, when none is named. */
  routes(queue?: string): WebhookRoute[] {
    return this.all().flatMap((webhook) => routeFor(webhook, queue) ?? []);
  }

  /** The objects that were not notified of a change. */
  untold(): string[] {
    const query = 'SELECT id FROM webhooks WHERE told = 0 LIMIT ?';
    return this.tables.rows<{ id: string }>(query, TOLD_AT_ONCE).map(({ id }) => id);
  }

  /** @throws {ApiError} 409 when there are too many */
  create(id: string, members: DeclarableWebhook, secret: string, now: number): Webhook {
    const { declared } = members;
    // Two isolates may apply the same declaration at once.
    const same = declared === undefined ? undefined : this.all().find((one) => one.declared === declared);
    if (same) return this.change(same.id, members, now);
    const webhook = { ...members, id, secret, created_at: now, updated_at: now, version: 1 };
    this.write(webhook, now);
    return webhook;
  }

  /** @throws {ApiError} 404, 409 */
  change(id: string, change: WebhookChange, now: number): Webhook {
    const { disabled, ...before } = this.must(id);
    const after: Record<string, unknown> = { ...before };
    for (const [name, value] of Object.entries(change)) {
      if (value === null) delete after[name];
      else if (value !== undefined) after[name] = value;
    }
    // An operator has decided: once it is active again, why it was given up no longer matters.
    if (after.active === false && disabled) after.disabled = disabled;
    return this.write(changed(after as unknown as Webhook, now), now);
  }

  /** @throws {ApiError} 404, 409 when too many former secrets still sign */
  rotate(id: string, secret: string, now: number): Webhook {
    const before = this.must(id);
    return this.write(changed({ ...before, ...rotated(before, secret, now) }, now), now);
  }

  /** Its receiver was given up. @returns undefined when it was changed since, or is gone */
  disable(id: string, disabled: Disabled, version: number, now: number): Webhook | undefined {
    const before = this.find(id);
    if (before?.version !== version || !before.active) return undefined;
    return this.write(changed({ ...before, active: false, disabled }, now), now);
  }

  /** @returns whether there was one */
  remove(id: string, now: number): boolean {
    if (!this.find(id)) return false;
    this.store({ id, told: 0, data: '' }, now);
    return true;
  }

  private must(id: string): Webhook {
    const found = this.find(id);
    if (!found) throw notFound('webhook', id);
    return found;
  }

  private write(webhook: Webhook, now: number): Webhook {
    const others = this.all().filter(({ id }) => id !== webhook.id);
    const routes = [...others, webhook].map((one) => routeFor({ ...one, active: true }));
    if (others.length >= MAX_WEBHOOKS || JSON.stringify(routes).length > MAX_ROUTES_CHARS) {
      const most = { max_subscriptions: MAX_WEBHOOKS, max_filter_characters: MAX_ROUTES_CHARS };
      throw conflict('The maximum number of subscriptions, or the maximum size of their filters, is reached.', most);
    }
    this.store({ id: webhook.id, told: 0, data: JSON.stringify(webhook) }, now);
    return webhook;
  }

  private store(row: Row, now: number): void {
    const before = JSON.stringify(this.routes());
    this.tables.transaction(() => {
      this.tables.put('webhooks', { ...row });
      this.known = undefined;
      if (JSON.stringify(this.routes()) !== before) this.host.routesChanged(now);
    });
    this.host.wakeAt(now + STANDBY_MS);
  }

  private async tell(id: string): Promise<void> {
    const [row] = this.tables.rows<Row>('SELECT * FROM webhooks WHERE id = ? AND told = 0', id);
    if (!row) return;
    const webhook = row.data === '' ? null : (JSON.parse(row.data) as Webhook);
    await webhookObject(this.host.env, id).configureWebhook(webhook);
    // A confirmation means nothing once there is something else to send.
    this.tables.rows("DELETE FROM webhooks WHERE id = ? AND data = '' AND ? = ''", id, row.data);
    this.tables.rows("UPDATE webhooks SET told = 1 WHERE id = ? AND data = ? AND data <> ''", id, row.data);
  }
}

function changed(webhook: Webhook, now: number): Webhook {
  return { ...webhook, updated_at: now, version: webhook.version + 1 };
}

export interface WebhooksHost extends Omit<SenderHost, 'directory' | 'random' | 'allowsLoopback'> {
  readonly env: Env;
  /** An event that belongs to no queue. */
  readonly events: EventLog;
  /** The queues must receive other webhooks. */
  routesChanged(now: number): void;
  /** There are outbox messages to be sent. */
  send(): void;
}

export class Webhooks {
  readonly list: WebhookList;
  readonly sender: WebhookSender;
  readonly messages: readonly MessageKind[];
  private readonly outbox: Outbox;

  constructor(
    private readonly host: WebhooksHost,
    private readonly tables: Schema,
  ) {
    const { env, storage, events } = host;
    this.outbox = new Outbox(storage.sql, (at) => host.wakeAt(at));
    this.list = new WebhookList(host, tables);
    this.sender = new WebhookSender(
      {
        ...host,
        random: Math.random,
        // Where there is none in reach, each call says so.
        get directory() {
          return directoryObject(env);
        },
        allowsLoopback: () => allowsOf(env).loopback,
      },
      tables,
    );
    this.messages = [this.list.messages, this.notices()];
    events.listen((published) => this.tell(published.map((one) => events.shown(one))));
  }

  /** A receiver was given up: nothing more is sent there. */
  disabled({ id, url, disabled }: Webhook, now: number): void {
    this.host.events.add('webhook.disabled', id, now, { url: maskedUrl(url), reason: disabled?.reason });
    this.host.events.publish();
    this.host.send();
  }

  private tell(events: readonly QueueEvent[]): void {
    const routes = this.list.routes();
    if (routes.length === 0) return;
    gatherNotices(this.outbox, routes, events);
    this.outbox.flush();
    this.host.send();
  }

  private notices(): MessageKind {
    const { host, tables } = this;
    const write = async <T>(operation: (now: number) => T) => host.storage.transactionSync(() => operation(host.now()));
    const messages = noticeMessages(this.outbox, write, (id) => webhookObject(host.env, id));
    return {
      ...messages,
      due: (...asked) => (tables.exist() ? messages.due(...asked) : []),
      nextAt: (except) => (tables.exist() ? messages.nextAt(except) : Number.POSITIVE_INFINITY),
    };
  }
}
