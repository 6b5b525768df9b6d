/**
 * Records each write of an operator. The order is a decision: first the operation, then its row, then the answer. So
 * the log prevents no operation, and contains nothing that did not happen.
 *
 * If the row cannot be written, even the second time, the operation stands. The answer has a `Warning`, and the whole
 * entry goes to the Worker's logs.
 */
import { withoutSecrets } from '../../access/secrets';
import { defined, isObject } from '../../job/envelope/fields';
import { cut } from '../../job/text';
import { safely } from '../../job/thrown';
import type { AuditEntry } from '../../rpc/audit';
import { directoryObject } from '../../rpc/stubs';
import { describeWrite } from '../audit/entry';
import type { AppContext, Caller } from '../context';
import { viaTool } from '../mcp/call';
import type { Rules } from '../route';

const REASON_HEADER = 'X-Audit-Reason';
const MAX_REASON = 500;
const NOT_RECORDED = '299 - "This change could not be recorded in the audit log."';

/** Records the answer, if the route is audited. @returns the answer */
export async function audit(c: AppContext, { audit: action, secrets }: Rules, response: Response): Promise<Response> {
  if (action === undefined || action === 'none' || !mayHaveChanged(c, response)) return response;
  const entry = entryOf(c, action, response.status, secrets);
  try {
    await record(c, entry);
  } catch (error) {
    console.error(`${entry.request_id} not in the audit log: ${JSON.stringify(entry)}`, error);
    response.headers.append('Warning', NOT_RECORDED);
  }
  return response;
}

/** A connection that broke is another one the second time. */
async function record(c: AppContext, entry: AuditEntry): Promise<void> {
  try {
    await directoryObject(c.env).recordAudit(entry);
  } catch {
    await directoryObject(c.env).recordAudit(entry);
  }
}

/** Refusals, previews, repeated answers and existing states changed nothing; for a failure that is unknown. */
function mayHaveChanged(c: AppContext, { status, headers }: Response): boolean {
  if ((status >= 400 && status < 500) || c.get('unchanged')) return false;
  return headers.get('Idempotency-Replayed') === null && c.get('answer')?.dry_run !== true;
}

function entryOf(c: AppContext, action: string, status: number, secrets: Rules['secrets'] = {}): AuditEntry {
  const { name, role, key_hint, via, key_id, subject } = c.get('caller') as Caller;
  const [sent, answer] = [c.get('sent'), c.get('answer')];
  return {
    at: Date.now(),
    actor: { name, role, key_hint, ...defined({ via: viaTool(c) ? ('mcp' as const) : via, key_id, subject }) },
    ...describeWrite({
      action,
      named: c.get('named') ?? Object.values(c.req.param() as Record<string, string>)[0],
      query: c.req.query(),
      sent: isObject(sent) ? withoutSecrets(sent, secrets) : {},
      answer: answer ?? {},
    }),
    status,
    request_id: c.get('requestId'),
    ...(viaTool(c) && { via: 'mcp' as const }),
    reason: reasonIn(c.req.header(REASON_HEADER)),
  };
}

/** A header holds Latin letters alone; others come percent-encoded. */
function reasonIn(header: string | undefined): string | null {
  if (header === undefined || header.trim() === '') return null;
  return cut(
    safely(() => decodeURIComponent(header), header),
    MAX_REASON,
  );
}
