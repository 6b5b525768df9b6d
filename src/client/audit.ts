/** The audit log through the client: who changed what. */
import type { Moment } from '../producer/job';
import { momentText } from '../producer/job';
import { byOffset, type ListOptions, parametersFrom } from './pages';
import type { Requests } from './requests';

/** Which entries. Conditions must all hold; of a list any value may match. */
export interface AuditQuery {
  /** Name of the key. */
  actor?: string;
  /** `queue.pause`, or `queue.*`. */
  action?: string | readonly string[];
  queue?: string;
  job?: string;
  /** A bare duration counts back from now. */
  since?: Moment;
  until?: Moment;
}

/** A write of an operator. */
export interface AuditEntry {
  id: string;
  /** RFC 3339. */
  at: string;
  actor: { name: string | null; role: string; keyHint: string | null };
  action: string;
  /** What was changed: the name of a queue, the id of a job, … */
  target: string | null;
  /** Which jobs were meant, in the wire's names. */
  filter: unknown;
  /** The members of the request, in the wire's names. */
  change: unknown;
  /** How many were changed, where that was known. */
  count: number | null;
  operationId: string | null;
  /** HTTP status of the answer. */
  status: number;
  requestId: string;
  /** The header `X-Audit-Reason` of the request. */
  reason: string | null;
}

/** The audit log, as `tocsin.audit`. Needs `admin:read`. */
export class Audit {
  constructor(private readonly requests: Requests) {}

  /**
   * Every entry that matches, the newest first. Entries that come meanwhile may shift the pages.
   * @example
   * for await (const { at, actor, action, target } of tocsin.audit.list({ since: '24h' })) console.log(at, actor, action, target);
   */
  async *list({ since, until, ...query }: AuditQuery = {}, options: ListOptions = {}): AsyncGenerator<AuditEntry> {
    const times = { since: momentText(since, 'since'), until: momentText(until, 'until') };
    const list = { path: '/admin/audit', conditions: parametersFrom({ ...query, ...times }), member: 'items' };
    yield* byOffset<AuditEntry>(this.requests.safely, list, options);
  }
}
