/** Notifies webhooks of events. The state gathers the notices where it ends a transaction; this feature sends them. */
import { noticeMessages } from '../../../across/feed/notices';
import type { Feature, Host } from '../../feature';

export function webhooks({ q, write, others }: Host): Feature {
  return { messages: [noticeMessages(q.store.outbox, write, (id) => others.webhook(id))] };
}
