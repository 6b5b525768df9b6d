import type * as contract from '../contract/audit';
import type { Moment } from '../producer/job';
import { momentText } from '../producer/job';
import type { Named } from '../producer/names';
import { checked } from './conditions';
import { byOffset, type ListOptions, parametersFrom } from './pages';
import type { Requests } from './requests';

/** Which entries. Conditions must all hold; of a list any value may match. */
export interface AuditQuery {
  actor?: string;
  /** `queue.pause`, or `queue.*`. */
  action?: string | readonly string[];
  queue?: string;
  job?: string;
  since?: Moment;
  until?: Moment;
}

/** A write of an operator. `filter` and `change` are in the wire's names. */
export type AuditEntry = Named<contract.AuditEntry>;

const CONDITIONS = { actor: true, action: true, queue: true, job: true, since: true, until: true };

export class Audit {
  constructor(private readonly requests: Requests) {}

  /**
   * Every entry that matches, the newest first. Entries that come meanwhile may shift the pages.
   * @example
   * for await (const { at, actor, action, target } of tocsin.audit.list({ since: '24h' })) {
   *   console.log(at, actor, action, target);
   * }
   */
  async *list(conditions: AuditQuery = {}, options: ListOptions = {}): AsyncGenerator<AuditEntry> {
    const { since, until, ...query } = checked(conditions, CONDITIONS);
    const times = { since: momentText(since, 'since'), until: momentText(until, 'until') };
    const list = { path: '/admin/audit', conditions: parametersFrom({ ...query, ...times }), member: 'items' };
    yield* byOffset<AuditEntry>(this.requests.safely, list, options);
  }
}
