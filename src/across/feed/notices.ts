/** Notices of events for webhooks, gathered in the events' transaction if a webhook matches, and sent to its object. */

import type { QueueEvent } from '../../durable/event-log';
import type { Outbox, OutboxMessage } from '../../durable/outbox';
import { type MessageKind, posted } from '../../durable/outbox-relay';
import { isFor, type WebhookRoute } from '../../notifications/webhook/subscription';
import type { DirectoryApi } from '../../rpc/directory';
import type { Notice } from '../../rpc/webhooks';
import { renderEvent } from './written';

/** The kind of these messages. Their address is the id of the webhook, their data a JSON array of {@link Notice}. */
const NOTICE = 'notice';

/** Notices sent at once, unless a single outbox message has more. */
const MAX_NOTICES = 200;

/** Waiting messages to a webhook, at most: while its object cannot be reached, the oldest are dropped. */
export const MAX_MESSAGES = 1_000;

/** Gathers notices: a row for up to a hundred events per webhook. A failure drops them, not the transaction. */
export function gatherNotices(outbox: Outbox, routes: readonly WebhookRoute[], events: Iterable<QueueEvent>): void {
  try {
    gather(outbox, routes, events);
  } catch (error) {
    console.error('tocsin: subscriptions are not notified of some events:', error);
  }
}

function gather(outbox: Outbox, routes: readonly WebhookRoute[], events: Iterable<QueueEvent>): void {
  const noticed = new Set<string>();
  for (const event of events) {
    const wanting = routes.filter((route) => isFor(route, event));
    if (wanting.length === 0) continue;
    const notice: Notice = { id: event.id, type: event.type, body: JSON.stringify(renderEvent(event)) };
    const json = JSON.stringify(notice);
    for (const { id } of wanting) {
      outbox.gather(NOTICE, id, json, event.time);
      noticed.add(id);
    }
  }
  for (const id of noticed) {
    const lost = outbox.dropOldest(NOTICE, id, MAX_MESSAGES);
    if (lost > 0)
      console.error(`tocsin: subscription ${id} cannot be reached: ${lost} outbox messages with events are dropped`);
  }
}

const read = ({ data }: OutboxMessage) => JSON.parse(data) as Notice[];

/** The outbox messages of an object that has events. */
export const noticeMessages = (
  outbox: Outbox,
  write: <T>(operation: (now: number) => T) => Promise<T>,
  senderOf: (id: string) => Pick<DirectoryApi, 'takeNotices'>,
): MessageKind =>
  posted(outbox, write, {
    kind: NOTICE,
    together: { most: MAX_NOTICES, itemsIn: (message) => read(message).length },
    send: async (id, messages, taken) => {
      await senderOf(id).takeNotices(id, messages.flatMap(read));
      await taken(() => undefined);
    },
  });
