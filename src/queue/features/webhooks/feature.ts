/** Telling subscriptions of what happens here. The state gathers the notices where it ends a transaction; this sends them. */
import { noticeMessages } from '../../../across/feed/notices';
import type { Feature, Host } from '../../feature';

/** The feature: it does nothing but tell. */
export function webhooks({ q, write, others }: Host): Feature {
  return { messages: [noticeMessages(q.store.outbox, write, (id) => others.webhook(id))] };
}
