import { gatherNotices, noticeMessages } from '../../across/feed/notices';
import { allowsOf, type Env } from '../../config';
import type { EventLog, QueueEvent } from '../../durable/event-log';
import { Outbox } from '../../durable/outbox';
import type { MessageKind } from '../../durable/outbox-relay';
import type { Schema } from '../../durable/schema';
import { maskedUrl } from '../../job/secrets';
import type { Webhook } from '../../job/webhook/subscription';
import { directoryObject, webhookObject } from '../../rpc/stubs';
import { WebhookList } from './list';
import { type SenderHost, WebhookSender } from './sender';

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
    const tell = (id: string, webhook: Webhook | null) => webhookObject(env, id).configureWebhook(webhook);
    this.list = new WebhookList({ ...host, tell }, tables);
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
