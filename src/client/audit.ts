import type * as contract from '../contract/audit';
import type { Moment } from '../producer/job';
import type { Named } from '../producer/names';
import { byOffset, type ListOptions, matching } from './pages';
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

export interface Audit {
  /**
   * Every entry that matches, the newest first. Entries that come meanwhile may shift the pages.
   * @example
   * for await (const { at, actor, action, target } of tocsin.audit.list({ since: '24h' })) {
   *   console.log(at, actor, action, target);
   * }
   */
  list(query?: AuditQuery, options?: ListOptions): AsyncGenerator<AuditEntry>;
}

export const createAudit = ({ safely }: Requests): Audit => ({
  list: (query = {}, options = {}) =>
    byOffset(safely, { path: '/admin/audit', conditions: matching(query, CONDITIONS), member: 'items' }, options),
});
