import { withoutSecrets } from '../../access/secrets';
import { type AuditEntry, audit } from '../../contract/audit';
import type { RouteRules } from '../../contract/route';
import { webhooks } from '../../contract/webhooks';
import { defined, given, isObject, readQueueName } from '../../job/envelope/fields';
import { invalidRequest } from '../../job/errors';
import { own } from '../../job/own';
import { formatInstant } from '../../job/time';
import type { StoredAudit } from '../../rpc/audit';
import { directoryObject } from '../../rpc/stubs';
import { type AppContext, json } from '../context';
import { pagination, readPaging } from '../request/pagination';
import { listParam, pastParam, textParam } from '../request/query';
import { serve } from '../route';

export const adminAuditRoutes = serve(audit, { list });

/** An action, or its beginning followed by `*`. */
const ACTION = /^[a-z_]+(\.[a-z_]+)*(\.?\*)?$/;
const MAX_ACTIONS = 50;

async function list(c: AppContext) {
  const paging = readPaging(c, 'page');
  if (paging.cursor !== undefined) throw invalidRequest('cursor', 'This list is read with page and per_page.');
  const now = Date.now();
  const actions = listParam(c, 'action');
  const wrong = actions?.find((action) => !ACTION.test(action));
  if (wrong !== undefined || (actions?.length ?? 0) > MAX_ACTIONS) {
    throw invalidRequest(
      'action',
      `action must be such as "queue.pause", or "queue.*"; at most ${MAX_ACTIONS} of them.`,
    );
  }
  const request = defined({
    actor: textParam(c, 'actor'),
    actions,
    queue: given(textParam(c, 'queue'), (name) => readQueueName(name, 'queue')),
    job: textParam(c, 'job'),
    since: pastParam(c, 'since', now),
    until: pastParam(c, 'until', now),
    offset: paging.offset,
    limit: paging.limit,
  });
  const { entries, total } = await directoryObject(c.env).auditLog(request);
  const hasMore = total > paging.offset + entries.length;
  const items = entries.map(render);
  return json(c, { items, total, pagination: pagination(paging, { total, hasMore, nextCursor: null }) });
}

/** Entries of earlier releases have secrets in them, cut ones as text. By action. */
const SECRETS: Readonly<Record<string, RouteRules['secrets']>> = Object.fromEntries(
  Object.values(webhooks).flatMap(({ audit: action, secrets }: RouteRules) =>
    action && secrets ? [[action, { ...secrets, text: 'whole' }]] : [],
  ),
);

function render({ id, at, queue: _, job: __, ...entry }: StoredAudit): AuditEntry {
  const { change, action } = entry;
  const shown = isObject(change) ? withoutSecrets(change, own(SECRETS, action) ?? {}) : change;
  return { id: `audit-${id}`, at: formatInstant(at), ...entry, change: shown };
}
